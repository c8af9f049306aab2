//! The prover's side: a theorem is opened as a session, tactics are applied to its states, finished
//! proofs are checked.

use catamount_traces::Theorem;
use serde::{Deserialize, Serialize};

use crate::{Identity, Patience, Spent};

/// A state inside one session; the root is always `StateId(0)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

/// What the prover says of one tactic at one state: the paper's transition T(x, y).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is left to prove (x_QED).
    Proved,
    /// The tactic is valid and leaves this state to prove.
    Open {
        /// Names the new state in later calls.
        state: StateId,
        /// The new state as the policy will read it.
        text: String,
    },
    /// The tactic is invalid here (x_err).
    Rejected {
        /// Why, in the prover's words; for logs and viewers, never for decisions.
        reason: String,
    },
}

/// The environment itself failed: a crashed worker, a lost process. Never a property of a tactic,
/// never an unproved theorem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

/// One theorem being proved. Any state handed out stays valid, and may be branched from any number
/// of times, until released.
pub trait Session: Send {
    /// The text of the root state x_0.
    fn root(&self) -> &str;
    /// Applies a tactic to a state.
    fn apply(&mut self, state: StateId, tactic: &str) -> Result<Verdict, Fault>;
    /// Says that a state will not be used again, so that the prover may forget it.
    fn release(&mut self, state: StateId) {
        let _ = state;
    }
    /// Whether its last verdict is the moment's: a clock or the memory of a process gave it, not
    /// the state and the tactic. Another time it may be another one.
    fn momentary(&self) -> bool {
        false
    }
    /// How many of its verdicts were known, so that no prover was asked.
    fn recalled(&self) -> u64 {
        0
    }
}

/// The final word on a claimed proof, from a check that shares nothing with the session that found
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The proof stands.
    Proved {
        /// Axioms it rests on, where the prover reports them.
        axioms: Vec<String>,
        /// What the check does not vouch for, and what a second kernel said; often nothing.
        note: String,
        /// Library statements that a second kernel had to take on trust.
        relative_to: Vec<String>,
    },
    /// It does not.
    Refused {
        /// Why not.
        reason: String,
    },
}

impl Checked {
    /// It stands, and that is all there is to say.
    pub fn proved(axioms: Vec<String>) -> Checked {
        Checked::Proved { axioms, note: String::new(), relative_to: Vec::new() }
    }
}

/// How a prover was set up: its name, and settings that the prover of that name understands. Paths
/// are whole, so that it can be opened from anywhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Which prover.
    pub prover: String,
    /// Its settings.
    pub settings: serde_json::Value,
}

impl Setup {
    /// Of a prover; none if its settings cannot be written down.
    pub fn of(prover: &str, settings: &impl Serialize) -> Option<Self> {
        let settings = serde_json::to_value(settings).ok()?;
        Some(Setup { prover: prover.to_string(), settings })
    }
}

/// A prover.
pub trait Environment: Send + Sync {
    /// Opens a theorem at its root state.
    fn open(&self, theorem: &Theorem) -> Result<Box<dyn Session>, Fault>;
    /// Re-checks a finished proof from scratch, independently of any session.
    fn check(&self, theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault>;
    /// As `open`, for a search that does not wait for ever, for the session's answers neither. A
    /// prover that keeps limits of its own need not know.
    fn open_within(
        &self,
        theorem: &Theorem,
        patience: &Patience,
    ) -> Result<Box<dyn Session>, Fault> {
        let _ = patience;
        self.open(theorem)
    }
    /// As `check`, likewise.
    fn check_within(
        &self,
        theorem: &Theorem,
        tactics: &[String],
        patience: &Patience,
    ) -> Result<Checked, Fault> {
        let _ = patience;
        self.check(theorem, tactics)
    }
    /// What the environment is and which version, for people: name, library, toolchain.
    fn describe(&self) -> String;
    /// What the environment is by content: library, toolchain, limits on a tactic. What it says of
    /// itself, unless it knows better.
    fn identity(&self) -> Identity {
        Identity::new("environment").with("description", self.describe())
    }
    /// How it was set up, so that the same prover can be opened again; none where it cannot say.
    fn setup(&self) -> Option<Setup> {
        None
    }
    /// Where the time of its processes went so far; none where it has none, or does not know.
    fn spent(&self) -> Option<Spent> {
        None
    }
}
