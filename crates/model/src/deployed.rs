//! How a generator is set up for a search: what the deployment says of sampling, and how much
//! memory goes into it.

use catamount_search::Deployment;

use crate::{Config, GeneratorConfig, Sampling};

/// Longest prompt, whatever the model could read: a longer state is cut off at its end.
const PROMPT: usize = 4096;

/// Numbers of keys and values to spend on states that are asked about again: a GiB of 16-bit ones
/// each.
const REMEMBERED: usize = 1 << 29;

impl GeneratorConfig {
    /// For a deployment with so many samples decoded together and so many searches in flight. The
    /// last two change how fast tactics are sampled, never which.
    pub fn deployed(
        model: &Config,
        deployment: &Deployment,
        batch: usize,
        concurrency: usize,
    ) -> Self {
        let max_tokens = fitting(model, deployment.max_tokens());
        let max_prompt = model.positions.saturating_sub(max_tokens).min(PROMPT);
        // A search asks about the same states again and again: several for each search.
        let affordable = REMEMBERED / (2 * model.layers * model.heads.kv()).max(1);
        let least = (concurrency * 96).max(batch * max_tokens + 8 * max_prompt);
        let (temperature, top_p) = (deployment.temperature() as f32, deployment.top_p() as f32);
        GeneratorConfig {
            sampling: Sampling { temperature, top_p },
            max_tokens,
            max_prompt,
            batch,
            cache: (concurrency * 512).min(affordable).max(least),
        }
    }
}

/// The longest tactic of a model: as asked for, or half of its positions where that would leave the
/// state less than a quarter of them.
pub fn fitting(model: &Config, max_tokens: usize) -> usize {
    match max_tokens <= model.positions - model.positions / 4 {
        true => max_tokens.max(1),
        false => (model.positions / 2).max(1),
    }
}
