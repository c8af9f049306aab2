//! The generator's side: a policy samples tactics at a state, with their log-probabilities.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::Fault;

/// Names a random stream. A policy draws sample `i` of a request from `(stream, i)` alone, so that
/// batching, threads and the order of completion cannot change a result, and asking for fewer
/// samples gives a prefix of the same samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(pub u64);

impl Stream {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Stream(mix(seed ^ 0x9e37_79b9_7f4a_7c15))
    }

    /// A stream derived from this one by a number.
    pub fn child(self, n: u64) -> Self {
        Stream(mix(self.0.rotate_left(23) ^ mix(n.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// A stream derived from this one by a name.
    pub fn named(self, name: &str) -> Self {
        // FNV-1a: stable across platforms and versions, unlike the standard library's hasher.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        self.child(hash)
    }

    /// The `n`-th uniform number of the stream, in [0, 1).
    pub fn uniform(self, n: u64) -> f64 {
        (self.child(n).0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The finaliser of SplitMix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Ties an answer to its question.
pub type RequestId = u64;

/// A question to the policy: some tactics for a state.
#[derive(Clone, Debug)]
pub struct Request {
    /// Chosen by the asker; comes back with the answer.
    pub id: RequestId,
    /// The state, as the environment prints it.
    pub state: String,
    /// How many tactics to sample, independently.
    pub samples: usize,
    /// Where the randomness comes from.
    pub stream: Stream,
}

/// One sampled tactic y ~ pi(. | x).
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The tactic's text.
    pub tactic: String,
    /// log pi(y | x) of the whole tactic under the model (temperature 1), end-of-tactic token
    /// included.
    pub log_p: f64,
    /// Tokens generated, for accounting.
    pub tokens: usize,
}

/// A tactic generator. Questions are handed in as they arise and answered in any order, so that an
/// implementation may batch whatever is waiting (continuous batching) while the prover works on
/// other theorems.
pub trait Policy: Send {
    /// Hands in a question. Does no work that takes long.
    fn submit(&mut self, request: Request);
    /// Works until at least one question is answered and returns the answers that are ready; empty
    /// only if nothing is waiting. A fault concerns one question.
    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)>;
    /// A flag that, once set by another thread, makes a `poll` under way give up: it answers what
    /// is open with faults, at once. `None` where polls never take long.
    fn interrupt(&self) -> Option<Arc<AtomicBool>> {
        None
    }
    /// What the policy is, for manifests.
    fn describe(&self) -> String;
}
