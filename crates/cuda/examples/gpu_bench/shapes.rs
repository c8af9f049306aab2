//! What is measured: models of known shapes with random weights, batches of known sizes.

use std::sync::Arc;

use catamount_cuda::Cuda;
use catamount_model::{Batch, Config, Family, Heads, Memory, Model, Result};
use catamount_search::Stream;

/// Enough for many prompts to be computed together.
const POSITIONS: usize = 8320;

/// Qwen2.5-7B's shape.
pub fn seven_b() -> Config {
    Config {
        family: Family::Qwen2,
        vocab: 152_064,
        hidden: 3584,
        intermediate: 18_944,
        layers: 28,
        heads: Heads { heads: 28, kv_heads: 4, dim: 128 },
        norm_eps: 1e-6,
        rope_theta: 1e6,
        rope_scaling: None,
        positions: POSITIONS,
        tied: false,
        qkv_bias: true,
        o_bias: false,
    }
}

/// SmolLM2-135M's shape.
pub fn smol() -> Config {
    let mut config = Config::small(49_152, 576, 30, POSITIONS);
    config.heads = Heads { heads: 9, kv_heads: 3, dim: 64 };
    config.intermediate = 1536;
    config
}

/// The shape that the other figures of the small model in `docs/performance.md` have.
pub fn small() -> Config {
    Config::small(4096, 256, 6, POSITIONS)
}

/// What studies are made with: the same, with a larger vocabulary.
pub fn studies() -> Config {
    Config::small(8192, 256, 6, POSITIONS)
}

/// Weights that are not trained, all normal numbers made on the device; norms are one.
pub fn random_model(cuda: &Arc<Cuda>, config: Config) -> Result<Model<Cuda>> {
    let mut model = Model::zeros(cuda.clone(), config, false)?;
    for (i, p) in model.base_mut().enumerate() {
        if p.name.contains("norm") {
            cuda.upload(&vec![1.0; p.len()], &mut p.value, 0)?;
        } else {
            cuda.randomize(&mut p.value, 0.02, i as u64)?;
        }
    }
    Ok(model)
}

/// `sequences` of `len` rows, every token scored.
pub fn dense(sequences: usize, len: usize) -> Batch {
    let mut batch = Batch::new();
    for i in 0..sequences as u32 {
        let tokens: Vec<u32> = (0..=len as u32).map(|j| (i * 977 + j * 31) % 4096).collect();
        batch.push(&tokens[..1], &tokens[1..]);
    }
    batch
}

/// Batches of up to `rows` rows of examples of realistic length: lognormal with median 130, between
/// 16 and 512 tokens.
pub fn packed(rows: usize, count: usize) -> Vec<Batch> {
    let stream = Stream::new(7);
    let mut draw = 0;
    let mut length = || {
        draw += 2;
        let normal = (-2.0 * (1.0 - stream.uniform(draw)).ln()).sqrt()
            * (std::f64::consts::TAU * stream.uniform(draw + 1)).cos();
        ((4.87 + 0.8 * normal).exp() as usize).clamp(16, 512)
    };
    let mut next = length();
    (0..count)
        .map(|_| {
            let mut batch = Batch::new();
            while batch.len() + next <= rows {
                let tokens: Vec<u32> =
                    (0..=next as u32).map(|j| (j * 31 + next as u32) % 4096).collect();
                batch.push(&tokens[..1], &tokens[1..]);
                next = length();
            }
            batch
        })
        .collect()
}
