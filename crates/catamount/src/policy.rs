//! `--policy`: where tactics come from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use catamount_model::{Backend, Generator, GeneratorConfig, Sampling};
use catamount_policies::{Http, HttpSettings, Ngram, Replay};
use catamount_search::Policy;
use catamount_traces::read_any;

use crate::device::{Device, OnDevice};
use crate::{environment, model};

#[derive(clap::Args)]
pub struct Arguments {
    /// Where tactics come from: `ngram:TRACES`, `model:FOLDER` (or a GGUF file), `http:URL` (any
    /// OpenAI-compatible completions server), `replay:TRACES`.
    #[arg(long)]
    pub policy: String,
    /// Sampling temperature.
    #[arg(long, default_value_t = 0.8)]
    pub temperature: f64,
    /// A LoRA adapter in PEFT's format, for `model`.
    #[arg(long)]
    pub adapter: Option<PathBuf>,
    /// auto, cpu or cuda:0, for `model`.
    #[arg(long, default_value = "auto")]
    pub device: Device,
    /// Longest tactic in tokens, for `model` and `http`.
    #[arg(long, default_value_t = 64)]
    pub max_tokens: usize,
    /// Samples decoded together, for `model`.
    #[arg(long, default_value_t = 64)]
    pub batch: usize,
    /// Model or LoRA adapter name, for `http`.
    #[arg(long)]
    pub model_name: Option<String>,
    /// Longest wait for one answer, in seconds, for `http`. An answer that does not come is tried
    /// again a few times.
    #[arg(long, default_value_t = 120.0)]
    pub http_timeout: f64,
    /// Prompt for `http`, in which {state} stands for the state.
    #[arg(long)]
    pub prompt: Option<String>,
}

impl Arguments {
    pub fn open(&self) -> Result<Box<dyn Policy>> {
        let Some((kind, rest)) = self.policy.split_once(':') else {
            bail!(
                "--policy {} names no kind; it looks like ngram:train.jsonl or \
                 http://127.0.0.1:8000",
                self.policy
            );
        };
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            bail!("--temperature must be positive, not {}", self.temperature);
        }
        Ok(match kind {
            "ngram" => Box::new(Ngram::open(Path::new(rest), self.temperature)?),
            "replay" => {
                let traces = read_any(Path::new(rest))
                    .with_context(|| format!("--policy {}", self.policy))?
                    .traces;
                Box::new(Replay::new(&traces, 0.9))
            }
            "model" => self.device.run(ModelPolicy { arguments: self, name: rest })?,
            "http" | "https" => {
                let url =
                    if rest.starts_with("//") { self.policy.clone() } else { rest.to_string() };
                let mut settings = HttpSettings::new(url);
                settings.temperature = self.temperature;
                settings.max_tokens = self.max_tokens as u32;
                settings.model = self.model_name.clone();
                settings.timeout = environment::seconds(self.http_timeout, "--http-timeout")?;
                if let Some(prompt) = &self.prompt {
                    settings.prompt = prompt.clone();
                }
                Box::new(Http::new(settings)?)
            }
            other => bail!(
                "unknown kind of policy `{other}`; the known ones are ngram, model, http, replay"
            ),
        })
    }
}

/// A model as a policy, on whichever device.
struct ModelPolicy<'a> {
    arguments: &'a Arguments,
    name: &'a str,
}

impl OnDevice for ModelPolicy<'_> {
    type Output = Box<dyn Policy>;

    fn run<B: Backend>(self, backend: Arc<B>) -> Result<Box<dyn Policy>> {
        let (model, tokenizer) =
            model::open(self.name, self.arguments.adapter.as_deref(), &backend)?;
        let (max_tokens, batch) = (self.arguments.max_tokens, self.arguments.batch);
        let max_prompt = model.config.positions.saturating_sub(max_tokens).min(2048);
        let config = GeneratorConfig {
            sampling: Sampling { temperature: self.arguments.temperature as f32, top_p: 1.0 },
            max_tokens,
            max_prompt,
            batch,
            // Room for the samples in flight and for some hundred states to be asked about again.
            cache: (batch * max_tokens + 8 * max_prompt).max(65_536),
        };
        Ok(Box::new(Generator::new(model, tokenizer, config, self.name)?))
    }
}
