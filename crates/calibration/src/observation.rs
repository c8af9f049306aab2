//! What is known of one theorem.

use serde::{Deserialize, Serialize};

/// One search of one theorem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The theorem. Searches of the same one (under several strategies, say) are resampled and held
    /// out together.
    pub theorem: String,
    /// log p of the demonstrated tactics at the temperature of the search.
    pub log_p: Vec<f64>,
    /// How the search ended.
    pub end: End,
}

/// How a search ended, as far as the demonstration is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The demonstrated proof was found with this expansion.
    Along(u64),
    /// Another proof was found with this expansion.
    Bypass(u64),
    /// No proof within so many expansions.
    Unproved(u64),
}

impl End {
    /// The expansion at which it ended.
    pub fn expansions(self) -> u64 {
        let (End::Along(n) | End::Bypass(n) | End::Unproved(n)) = self;
        n
    }

    /// Whether the theorem was proved within `n` expansions; `None` if the search was cut off
    /// before.
    pub fn proved_by(self, n: u64) -> Option<bool> {
        match self {
            End::Along(at) | End::Bypass(at) => Some(at <= n),
            End::Unproved(at) => (n <= at).then_some(false),
        }
    }
}

impl Observation {
    /// The geometric mean of the tactics' probabilities: how likely the demonstration looks, on a
    /// scale that does not depend on its length.
    pub(crate) fn score(&self) -> f64 {
        (self.log_p.iter().sum::<f64>() / self.log_p.len() as f64).exp()
    }
}
