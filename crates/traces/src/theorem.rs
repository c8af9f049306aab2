//! The paper's tau*: a theorem, and the linear sequence of states and tactics that proves it.

use serde::{Deserialize, Serialize};

use crate::Origin;
use crate::premise::{self, Annotated};

/// A theorem to prove. What identifies it depends on the environment: Metamath needs the label
/// alone, Lean needs either the file it stands in or the header commands that precede its
/// statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Theorem {
    /// The full name; unique within a pool.
    pub name: String,
    /// The statement as the prover prints it.
    #[serde(default)]
    pub statement: String,
    /// Lean commands that precede the statement (`open`, `variable`, `namespace`...), where there
    /// is no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The source file, relative to the library's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of `file` on which the theorem starts, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column of its first character, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The line of its last character, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// The column after its last character, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// The repository that the theorem was traced in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The commit of that repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl Theorem {
    /// Where it was traced, if it says so.
    pub fn origin(&self) -> Option<Origin> {
        let commit = self.commit.clone()?;
        Some(Origin { url: self.url.clone().unwrap_or_default(), commit })
    }
}

/// One demonstrated step: tactic y*_t at state x_{t-1}.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The state before the tactic, as the prover prints it.
    #[serde(alias = "state_before")]
    pub state: String,
    /// The tactic, as the prover reads it.
    pub tactic: String,
    /// The state after the tactic, where the source of the trace recorded it; empty once nothing is
    /// left to prove.
    #[serde(default, alias = "state_after", skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The premises that the tactic names, where the source of the trace recorded them.
    #[serde(
        default,
        rename = "annotated_tactic",
        deserialize_with = "premise::if_it_is_one",
        skip_serializing_if = "Option::is_none"
    )]
    pub annotated: Option<Annotated>,
}

/// A demonstrated proof: x_0, y*_1, x_1, ..., y*_L, QED.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// What is proved.
    #[serde(flatten)]
    pub theorem: Theorem,
    /// How, in order.
    #[serde(default)]
    pub steps: Vec<Step>,
}
