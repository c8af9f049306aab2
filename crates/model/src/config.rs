//! The shape of a model, as Hugging Face's `config.json` gives it for the Llama and Qwen2 families.

use std::path::Path;

use serde_json::{Value, json};

use crate::{Error, Heads, Result};

/// The two families: the same network, with different names and defaults in `config.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Llama, SmolLM2, Mistral without a sliding window...
    Llama,
    /// Qwen2 and Qwen2.5: a bias on the query, key and value projections.
    Qwen2,
}

/// Llama 3's stretching of the rotary frequencies to longer contexts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeScaling {
    /// How much longer the context is.
    pub factor: f64,
    /// Wavelengths above `original_positions / low_freq_factor` are stretched fully.
    pub low_freq_factor: f64,
    /// Wavelengths below `original_positions / high_freq_factor` are left alone.
    pub high_freq_factor: f64,
    /// The context before stretching.
    pub original_positions: f64,
}

/// The shape of a decoder-only transformer.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which names and defaults apply.
    pub family: Family,
    /// Rows of the embedding.
    pub vocab: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width inside the feed-forward part.
    pub intermediate: usize,
    /// Transformer blocks.
    pub layers: usize,
    /// Attention's shape.
    pub heads: Heads,
    /// RMSNorm's epsilon.
    pub norm_eps: f32,
    /// The base of the rotary wavelengths.
    pub rope_theta: f64,
    /// Their stretching, for Llama 3.
    pub rope_scaling: Option<RopeScaling>,
    /// Positions the model was made for.
    pub positions: usize,
    /// Whether the head shares the embedding's matrix.
    pub tied: bool,
    /// Whether q, k and v have a bias.
    pub qkv_bias: bool,
    /// Whether attention's output projection has a bias.
    pub o_bias: bool,
}

/// The largest size that is believed: no model has so wide a layer, nor so many tokens.
const LARGEST: usize = 1 << 24;
/// The most positions.
const MOST_POSITIONS: usize = 1 << 20;
/// The largest rotary table, in numbers.
const LARGEST_TABLE: usize = 1 << 28;

impl Config {
    /// A small model to train from scratch: Llama's network, tied head, heads of 64 where the width
    /// allows.
    pub fn small(vocab: usize, hidden: usize, layers: usize, positions: usize) -> Self {
        let dim = if hidden.is_multiple_of(64) { 64 } else { hidden.min(32) };
        let heads = (hidden / dim).max(1);
        Config {
            family: Family::Llama,
            vocab,
            hidden,
            // The usual 8/3 of a gated feed-forward part, rounded up to a multiple of 32.
            intermediate: (hidden * 8 / 3).next_multiple_of(32),
            layers,
            heads: Heads { heads, kv_heads: heads, dim },
            norm_eps: 1e-5,
            rope_theta: 10_000.0,
            rope_scaling: None,
            positions,
            tied: true,
            qkv_bias: false,
            o_bias: false,
        }
    }

    /// Reads `config.json`.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
        let value: Value =
            serde_json::from_str(&text).map_err(|e| Error::format(path, e.to_string()))?;
        Self::from_json(&value).map_err(|e| Error::format(path, e.to_string()))
    }

    /// Understands the content of a `config.json`.
    pub fn from_json(v: &Value) -> Result<Self> {
        let need = |key: &str| {
            v[key]
                .as_u64()
                .map(|n| n as usize)
                .ok_or_else(|| Error::Config(format!("`{key}` is missing or not a number")))
        };
        let family = match v["model_type"].as_str() {
            Some("llama") => Family::Llama,
            Some("qwen2") => Family::Qwen2,
            Some("mistral") if v["sliding_window"].is_null() => Family::Llama,
            other => {
                let other = other.unwrap_or("missing");
                return Err(Error::Config(format!(
                    "`model_type` is {other}; the families known here are llama and qwen2"
                )));
            }
        };
        if let Some(act) = v["hidden_act"].as_str().filter(|act| *act != "silu") {
            return Err(Error::Config(format!("`hidden_act` is {act}; only silu is known here")));
        }
        if v["use_sliding_window"].as_bool() == Some(true) || v["mlp_bias"].as_bool() == Some(true)
        {
            return Err(Error::Config(
                "sliding windows and biases in the feed-forward part are not known here".into(),
            ));
        }
        let (hidden, heads) = (need("hidden_size")?, need("num_attention_heads")?);
        // Newer files gather the rotary parameters under `rope_parameters`; older ones keep
        // `rope_theta` and `rope_scaling`.
        let rope = if v["rope_parameters"].is_object() {
            &v["rope_parameters"]
        } else {
            &v["rope_scaling"]
        };
        let rope_scaling = match rope["rope_type"].as_str().or(rope["type"].as_str()) {
            None | Some("default") => None,
            Some("llama3") => {
                let field = |key: &str| {
                    rope[key].as_f64().ok_or_else(|| {
                        Error::Config(format!("`rope_scaling.{key}` is missing or not a number"))
                    })
                };
                Some(RopeScaling {
                    factor: field("factor")?,
                    low_freq_factor: field("low_freq_factor")?,
                    high_freq_factor: field("high_freq_factor")?,
                    original_positions: field("original_max_position_embeddings")?,
                })
            }
            Some(other) => {
                return Err(Error::Config(format!(
                    "rope scaling `{other}` is not known here; llama3 is"
                )));
            }
        };
        let attention_bias = v["attention_bias"].as_bool().unwrap_or(false);
        let config = Config {
            family,
            vocab: need("vocab_size")?,
            hidden,
            intermediate: need("intermediate_size")?,
            layers: need("num_hidden_layers")?,
            heads: Heads {
                heads,
                kv_heads: v["num_key_value_heads"].as_u64().map_or(heads, |n| n as usize),
                dim: v["head_dim"].as_u64().map_or(hidden / heads.max(1), |n| n as usize),
            },
            norm_eps: v["rms_norm_eps"].as_f64().unwrap_or(1e-6) as f32,
            rope_theta: v["rope_theta"]
                .as_f64()
                .or(rope["rope_theta"].as_f64())
                .unwrap_or(10_000.0),
            rope_scaling,
            positions: v["max_position_embeddings"].as_u64().unwrap_or(2048) as usize,
            tied: v["tie_word_embeddings"].as_bool().unwrap_or(false),
            qkv_bias: family == Family::Qwen2 || attention_bias,
            o_bias: family == Family::Llama && attention_bias,
        };
        config.check()?;
        Ok(config)
    }

    /// The content of `config.json`, as transformers reads it.
    pub fn to_json(&self) -> Value {
        let (kind, class) = match self.family {
            Family::Llama => ("llama", "LlamaForCausalLM"),
            Family::Qwen2 => ("qwen2", "Qwen2ForCausalLM"),
        };
        let mut v = json!({
            "architectures": [class], "model_type": kind, "hidden_act": "silu",
            "torch_dtype": "float32",
            "vocab_size": self.vocab, "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers, "num_attention_heads": self.heads.heads,
            "num_key_value_heads": self.heads.kv_heads, "head_dim": self.heads.dim,
            "rms_norm_eps": f64::from(self.norm_eps), "rope_theta": self.rope_theta,
            "max_position_embeddings": self.positions, "tie_word_embeddings": self.tied,
        });
        if self.family == Family::Llama {
            v["attention_bias"] = json!(self.qkv_bias);
        }
        if let Some(s) = self.rope_scaling {
            v["rope_scaling"] = json!({
                "rope_type": "llama3", "factor": s.factor, "low_freq_factor": s.low_freq_factor,
                "high_freq_factor": s.high_freq_factor,
                "original_max_position_embeddings": s.original_positions as u64,
            });
        }
        v
    }

    /// Refuses shapes that no model can have.
    pub fn check(&self) -> Result<()> {
        let Heads { heads, kv_heads, dim } = self.heads;
        let sizes = [
            self.vocab,
            self.hidden,
            self.intermediate,
            self.layers,
            heads,
            kv_heads,
            dim,
            self.positions,
        ];
        if sizes.contains(&0) {
            return Err(Error::Config("a size is zero".into()));
        }
        if !heads.is_multiple_of(kv_heads) {
            return Err(Error::Config(format!(
                "{kv_heads} key/value heads do not divide {heads} attention heads"
            )));
        }
        if !dim.is_multiple_of(2) {
            return Err(Error::Config(format!(
                "heads of {dim} cannot be rotated: the width must be even"
            )));
        }
        if let Some(size) = sizes.iter().find(|&&n| n > LARGEST) {
            return Err(Error::Config(format!(
                "a size is {size}; at most {LARGEST} is known here"
            )));
        }
        // The one table that no file holds, and that a false number would make too large.
        if self.positions > MOST_POSITIONS || self.positions * dim > LARGEST_TABLE {
            return Err(Error::Config(format!(
                "{} positions of heads of {dim}; at most {MOST_POSITIONS} are known here",
                self.positions
            )));
        }
        Ok(())
    }

    /// Parameters of the base model.
    pub fn parameters(&self) -> u64 {
        let [d, f, v] = [self.hidden, self.intermediate, self.vocab].map(|n| n as u64);
        let (q, qkv) = (self.heads.q() as u64, self.heads.qkv() as u64);
        let biases = if self.qkv_bias { qkv } else { 0 } + if self.o_bias { d } else { 0 };
        let layer = 2 * d + qkv * d + biases + d * q + 3 * d * f;
        v * d * if self.tied { 1 } else { 2 } + self.layers as u64 * layer + d
    }

    /// The rotary table: `[positions, 2, dim / 2]`, cosines then sines.
    pub fn rope_table(&self, positions: usize) -> Vec<f32> {
        let half = self.heads.dim / 2;
        let frequencies: Vec<f64> = (0..half).map(|j| self.rope_frequency(j)).collect();
        let mut table = Vec::with_capacity(positions * 2 * half);
        for p in 0..positions {
            // Frequencies are rounded to f32 first, as every implementation these weights were
            // trained with does.
            let angle = |f: &f64| (p as f32 * *f as f32) as f64;
            table.extend(frequencies.iter().map(|f| angle(f).cos() as f32));
            table.extend(frequencies.iter().map(|f| angle(f).sin() as f32));
        }
        table
    }

    fn rope_frequency(&self, j: usize) -> f64 {
        let frequency = self.rope_theta.powf(-2.0 * j as f64 / self.heads.dim as f64);
        let Some(s) = self.rope_scaling else { return frequency };
        let wavelength = 2.0 * std::f64::consts::PI / frequency;
        if wavelength > s.original_positions / s.low_freq_factor {
            frequency / s.factor
        } else if wavelength < s.original_positions / s.high_freq_factor {
            frequency
        } else {
            let smooth = (s.original_positions / wavelength - s.low_freq_factor)
                / (s.high_freq_factor - s.low_freq_factor);
            (1.0 - smooth) * frequency / s.factor + smooth * frequency
        }
    }
}
