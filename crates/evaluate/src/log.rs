//! The cell log: one JSON line per theorem, append-only, beside a manifest that says what the cell
//! is a function of.
//!
//! `NAME.jsonl` holds [`Record`]s, `NAME.manifest.json` the [`Manifest`], `NAME.times.jsonl`
//! [`TimeRecord`]s, `NAME.timing.json` a [`Timing`](crate::Timing), and `NAME.trees.jsonl`
//! (optional) [`TreeRecord`]s. Clock readings are kept apart so that the same seed gives the same
//! log, byte for byte.

use catamount_search::{Setup, StrategyKind};
use serde::{Deserialize, Serialize};

use crate::identity::CellIdentity;

/// How a search ended. Closed, and an `Error` is never an unproved theorem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// A proof was found and passed the final check.
    Proved,
    /// The strategy had nothing left to expand.
    Exhausted,
    /// The budget of expansions was spent.
    Budget,
    /// A wall-clock cap cut the search off.
    Time,
    /// The prover or the policy failed; tried again on resume.
    Error,
}

impl Outcome {
    /// As logs write it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Proved => "proved",
            Outcome::Exhausted => "exhausted",
            Outcome::Budget => "budget",
            Outcome::Time => "time",
            Outcome::Error => "error",
        }
    }
}

/// One theorem of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The cell it belongs to: the hash of its identity, of which a log holds one only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cell: String,
    /// The theorem's name; the key of the log.
    pub theorem: String,
    /// How the search ended.
    pub outcome: Outcome,
    /// Expansions spent: sampled tactics with their check. For a proved theorem, the expansion that
    /// found the proof.
    pub expansions: u64,
    /// The proof, for a proved theorem.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tactics: Vec<String>,
    /// Axioms that the proof rests on, where the prover names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axioms: Vec<String>,
    /// What the check of the proof does not vouch for, and what a second kernel said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Library statements that a second kernel had to take on trust.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relative_to: Vec<String>,
    /// Number of steps of the demonstrated proof, where the pool's file has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demonstrated: Option<usize>,
    /// Sampled tactics the prover accepted.
    pub valid: u64,
    /// Sampled tactics the prover rejected.
    pub rejected: u64,
    /// Of these, tactics that the prover took for the end of a proof, and the final check did not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// Tactics that were tried: each counts once at a node.
    pub distinct: u64,
    /// Sampled tactics already tried at the same node.
    pub duplicates: u64,
    /// With distinct samples: draws that repeated a tactic and were drawn again. They cost tokens,
    /// not expansions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redrawn: u64,
    /// With distinct samples: nodes at which nothing is left to draw.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drawn_out: u64,
    /// Expansions spent at each depth, the root first: where the strategy spends its budget.
    pub depths: Vec<u64>,
    /// Tokens generated.
    pub tokens: u64,
    /// Why, for an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How long one theorem of one cell took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeRecord {
    /// The theorem's name.
    pub theorem: String,
    /// Wall-clock seconds between opening the theorem and the outcome.
    pub seconds: f64,
    /// Of these, seconds in which the prover worked on it.
    pub prover_seconds: f64,
    /// Verdicts that an earlier search of the theorem had been told, so that no prover was asked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recalled: u64,
}

/// What a cell is, and how it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// What the cell is a function of. Everything below is for people.
    pub identity: CellIdentity,
    /// Objective the policy was trained with (`ce`, `bfs`, `bfs+kappa5+q0.02`, or the policy's own
    /// name).
    pub objective: String,
    /// What the policy says of itself.
    pub policy: String,
    /// What the environment says of itself.
    pub environment: String,
    /// How to open the environment again, where it can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// Where the theorems came from.
    pub pool: Pool,
    /// Who made it.
    #[serde(flatten)]
    pub provenance: Provenance,
}

impl Manifest {
    /// The deployed strategy.
    pub fn strategy(&self) -> StrategyKind {
        self.identity.deployment.strategy()
    }

    /// Expansions per theorem.
    pub fn budget(&self) -> u64 {
        self.identity.deployment.budget()
    }

    /// Seed of every random stream.
    pub fn seed(&self) -> u64 {
        self.identity.seed
    }
}

/// How something was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of Catamount.
    pub version: String,
    /// Commit of Catamount, where it was built from a checkout.
    pub commit: Option<String>,
    /// The command that made it.
    pub command: String,
}

/// The theorems of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// The file they were read from.
    pub file: String,
    /// How many.
    pub theorems: usize,
    /// The filter on demonstrated steps, such as `2-5`.
    pub steps: Option<String>,
    /// Their names, in order: a log holds no others.
    pub names: Vec<String>,
}

/// The search tree of one theorem, in the order of expansion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeRecord {
    /// The theorem's name.
    pub theorem: String,
    /// Text of the root state.
    pub root: String,
    /// Every expansion, in order; expansion `i` (counted from 1) is `expansions[i - 1]`.
    pub expansions: Vec<TreeExpansion>,
}

/// What came of a sampled tactic, without what it led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TreeVerdict {
    /// Valid, and something is left to prove.
    Open,
    /// Valid, and nothing is.
    Proved,
    /// Invalid.
    Rejected,
}

/// One sampled tactic in a tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TreeExpansion {
    /// The expansion whose valid tactic made the node sampled at; 0 for the root.
    pub parent: u64,
    /// The sampled tactic.
    pub tactic: String,
    /// Its log-probability.
    pub log_p: f64,
    /// What came of it.
    pub verdict: TreeVerdict,
    /// State reached (open) or reason (rejected).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The strategy's score of the node reached, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}
