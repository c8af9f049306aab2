//! The generator's side: a policy samples tactics at a state, with their log-probabilities.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use catamount_base::Stream;

use crate::Fault;

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
