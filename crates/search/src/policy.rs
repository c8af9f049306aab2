//! The generator's side: a policy samples tactics at a state, with their log-probabilities.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use catamount_base::Stream;

use crate::{Fault, Identity, Urn};

/// Ties an answer to its question.
pub type RequestId = u64;

/// A question to the policy: some tactics for a state.
#[derive(Clone, Debug)]
pub struct Request {
    /// Chosen by the asker; comes back with the answer.
    pub id: RequestId,
    /// The state, as the environment prints it.
    pub state: String,
    /// How many tactics to sample: independently, or without replacement if there is an urn.
    pub samples: usize,
    /// Where the randomness comes from.
    pub stream: Stream,
    /// With an urn, only tactics are drawn that are not in it, one after the other, and put into
    /// it. Draw `k` of the urn, counted over all questions that carry it, then comes from
    /// `(stream, k)`, and the stream is the same for all of them. An answer with fewer samples says
    /// that there is nothing left to draw. Only a policy that [`Policy::draws_without_replacement`]
    /// looks at it.
    pub urn: Option<Urn>,
}

/// One sampled tactic y ~ pi(. | x).
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The tactic's text.
    pub tactic: String,
    /// log pi(y | x) of the whole tactic under the model (temperature 1), end-of-tactic token
    /// included.
    pub log_p: f64,
    /// Tokens generated, for accounting: with an urn, also for draws before it that gave a tactic
    /// which had been drawn already.
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
    /// What the policy is, for people: names, places, devices.
    fn describe(&self) -> String;
    /// What the policy is by content, apart from how it is sampled, which the deployment says. What
    /// it says of itself, unless it knows better.
    fn identity(&self) -> Identity {
        Identity::new("policy").with("description", self.describe())
    }
    /// Whether it heeds [`Request::urn`], exactly. For a policy that does not, whoever asks has to
    /// draw again where a tactic is repeated.
    fn draws_without_replacement(&self) -> bool {
        false
    }
}
