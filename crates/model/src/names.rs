//! What the parameters are called outside: Hugging Face's names and GGUF's, as pieces of the fused
//! matrices here.

use crate::{Config, TARGETS, target_rows};

/// A named tensor of a checkpoint: `shape` numbers of parameter `parameter`, from element `offset`
/// on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The name in safetensors files.
    pub hugging_face: String,
    /// The name in GGUF files.
    pub gguf: String,
    /// The name of the [`crate::Parameter`] that holds it.
    pub parameter: String,
    /// Where it starts in there.
    pub offset: usize,
    /// Its own shape.
    pub shape: Vec<usize>,
    /// Heads whose rows llama's GGUF files interleave; 0 where they do not.
    pub interleaved_heads: usize,
}

/// Every tensor of a model's checkpoint.
pub fn pieces(config: &Config) -> Vec<Piece> {
    let (d, v) = (config.hidden, config.vocab);
    let piece = |hugging_face: String,
                 gguf: String,
                 parameter: String,
                 offset: usize,
                 shape: Vec<usize>| Piece {
        hugging_face,
        gguf,
        parameter,
        offset,
        shape,
        interleaved_heads: 0,
    };
    let plain = |hf: &str, gguf: &str, parameter: &str, shape: Vec<usize>| {
        piece(hf.into(), gguf.into(), parameter.into(), 0, shape)
    };
    let mut all = vec![plain(
        "model.embed_tokens.weight",
        "token_embd.weight",
        "embedding.weight",
        vec![v, d],
    )];
    let rows = target_rows(config);
    for l in 0..config.layers {
        let norm = |hf: &str, gguf: &str, name: &str| {
            plain(
                &format!("model.layers.{l}.{hf}.weight"),
                &format!("blk.{l}.{gguf}.weight"),
                &format!("layers.{l}.{name}.weight"),
                vec![d],
            )
        };
        all.push(norm("input_layernorm", "attn_norm", "norm1"));
        all.push(norm("post_attention_layernorm", "ffn_norm", "norm2"));
        for (i, (target, fused)) in TARGETS.into_iter().enumerate() {
            let gguf =
                ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"][i];
            let (module, name) = (fused.module(), fused.name());
            let inputs = fused.shape(config).inputs;
            let mut both = vec![("weight", rows[i].start * inputs, vec![rows[i].len(), inputs])];
            if fused.biased(config) {
                both.push(("bias", rows[i].start, vec![rows[i].len()]));
            }
            for (kind, offset, shape) in both {
                let mut p = piece(
                    format!("model.layers.{l}.{module}.{target}.{kind}"),
                    format!("blk.{l}.{gguf}.{kind}"),
                    format!("layers.{l}.{name}.{kind}"),
                    offset,
                    shape,
                );
                p.interleaved_heads = [config.heads.heads, config.heads.kv_heads, 0, 0, 0, 0, 0][i];
                all.push(p);
            }
        }
    }
    all.push(plain("model.norm.weight", "output_norm.weight", "norm.weight", vec![d]));
    if !config.tied {
        all.push(plain("lm_head.weight", "output.weight", "head.weight", vec![v, d]));
    }
    all
}

/// PEFT's name for one of an adapter's matrices.
pub fn peft_name(layer: usize, target: usize, matrix: &str) -> String {
    let (name, fused) = TARGETS[target];
    let module = fused.module();
    format!("base_model.model.model.layers.{layer}.{module}.{name}.lora_{matrix}.weight")
}
