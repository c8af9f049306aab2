//! What a generator has done, and how much of the time its device had something to do.

use std::ops::Sub;
use std::time::Duration;

/// Counts since the generator was made. The difference of two is what happened in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Decoding steps.
    pub steps: u64,
    /// Tokens decoded: rows summed over steps.
    pub tokens: u64,
    /// Prompts computed.
    pub prompts: u64,
    /// Their tokens.
    pub prompt_tokens: u64,
    /// So many of these were in the cache before, at the beginning of another prompt, and copied.
    pub known_tokens: u64,
    /// Time in which a step was queued on the device or computed there.
    pub device: Duration,
    /// Time in which at least one question was open.
    pub total: Duration,
}

impl Sub for Work {
    type Output = Work;

    fn sub(self, before: Work) -> Work {
        Work {
            steps: self.steps - before.steps,
            tokens: self.tokens - before.tokens,
            prompts: self.prompts - before.prompts,
            prompt_tokens: self.prompt_tokens - before.prompt_tokens,
            known_tokens: self.known_tokens - before.known_tokens,
            device: self.device - before.device,
            total: self.total - before.total,
        }
    }
}
