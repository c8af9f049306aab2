//! What a search is charged for, and how much of it.

use std::fmt;

use catamount_evaluate::log::Record;
use serde::{Deserialize, Serialize};

/// What a search is charged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cost {
    /// Sampled tactics, which is what budgets count.
    Expansions,
    /// Tactics that were tried, each once at a node: what the prover is asked.
    Distinct,
    /// Tokens generated: what the model is asked.
    Tokens,
}

impl Cost {
    /// All of them, by name.
    pub const ALL: [(&'static str, Cost); 3] =
        [("expansions", Cost::Expansions), ("distinct", Cost::Distinct), ("tokens", Cost::Tokens)];

    /// What a search was charged, up to its proof if it found one.
    pub fn of(self, record: &Record) -> u64 {
        match self {
            Cost::Expansions => record.expansions,
            Cost::Distinct => record.distinct,
            Cost::Tokens => record.tokens,
        }
    }

    /// The unit, for axes and texts.
    pub fn unit(self) -> &'static str {
        match self {
            Cost::Expansions => "expansions",
            Cost::Distinct => "distinct tactics",
            Cost::Tokens => "tokens",
        }
    }
}

/// So much and no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Within {
    /// Of what.
    pub cost: Cost,
    /// How much.
    pub limit: u64,
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.limit, self.cost.unit())
    }
}
