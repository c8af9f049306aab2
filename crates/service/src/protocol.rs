//! What is said between a service and whoever asks it; docs/guides/lean-service.md lists it for
//! programs that are not this one. `/open` is sent a [`Theorem`].

use catamount_search::{Checked, Identity, Setup, StateId, Verdict};
use catamount_traces::Theorem;
use serde::{Deserialize, Serialize};

/// A theorem is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Names it in later requests.
    pub session: u64,
    /// Its root.
    pub state: u32,
    /// The text of its root.
    pub goals: String,
}

/// A tactic is to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// In which theorem.
    pub session: u64,
    /// At which state.
    #[serde(default)]
    pub state: u32,
    /// Which.
    pub tactic: String,
    /// States that are not asked about any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub release: Vec<u32>,
}

/// What came of a tactic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ran {
    /// Something is left to prove.
    Open {
        /// Names it in later requests.
        state: u32,
        /// As text.
        goals: String,
        /// Never.
        done: bool,
    },
    /// The tactic is invalid here.
    Rejected {
        /// Why.
        rejected: String,
        /// Whether a clock or the memory of a process said so: another time it may be valid.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        momentary: bool,
    },
    /// Nothing is left to prove, in the prover's opinion.
    Proved {
        /// None.
        goals: String,
        /// Always.
        done: bool,
    },
}

impl From<Verdict> for Ran {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Open { state, text } => Ran::Open { state: state.0, goals: text, done: false },
            Verdict::Proved => Ran::Proved { goals: String::new(), done: true },
            Verdict::Rejected { reason } => Ran::Rejected { rejected: reason, momentary: false },
        }
    }
}

impl From<Ran> for Verdict {
    fn from(ran: Ran) -> Self {
        match ran {
            Ran::Open { state, goals, .. } => Verdict::Open { state: StateId(state), text: goals },
            Ran::Proved { .. } => Verdict::Proved,
            Ran::Rejected { rejected, .. } => Verdict::Rejected { reason: rejected },
        }
    }
}

/// A finished proof, to be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Of what.
    #[serde(flatten)]
    pub theorem: Theorem,
    /// The proof.
    pub tactics: Vec<String>,
}

/// The final word on a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// The theorem.
    pub name: String,
    /// The word.
    #[serde(flatten)]
    pub verdict: Judgement,
}

/// Whether a proof stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum Judgement {
    /// It does.
    Proved {
        /// What it rests on.
        axioms: Vec<String>,
        /// What is not vouched for, and what a second kernel said.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
        /// Library statements that a second kernel had to take on trust.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        relative_to: Vec<String>,
    },
    /// It does not.
    Refused {
        /// Why not.
        reason: String,
    },
}

impl From<Checked> for Judgement {
    fn from(checked: Checked) -> Self {
        match checked {
            Checked::Proved { axioms, note, relative_to } => {
                Judgement::Proved { axioms, note, relative_to }
            }
            Checked::Refused { reason } => Judgement::Refused { reason },
        }
    }
}

impl From<Judgement> for Checked {
    fn from(judgement: Judgement) -> Self {
        match judgement {
            Judgement::Proved { axioms, note, relative_to } => {
                Checked::Proved { axioms, note, relative_to }
            }
            Judgement::Refused { reason } => Checked::Refused { reason },
        }
    }
}

/// A theorem is not needed any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Close {
    /// Which.
    pub session: u64,
}

/// A whole Lean file, to be reported on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WholeFile {
    /// What it says.
    pub text: String,
    /// Seconds that it may take, if less than the service's own limit on a check.
    pub limit: Option<f64>,
}

/// How a service is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The prover, for people.
    pub prover: String,
    /// The prover by content: services that are asked together have the same.
    pub identity: Identity,
    /// How the prover was set up, if it can say so.
    pub setup: Option<Setup>,
    /// Theorems that are open.
    pub sessions: usize,
    /// Requests that wait or are being answered.
    pub waiting: usize,
    /// Requests answered so far.
    pub answered: u64,
    /// Seconds in which the prover had something to do.
    pub busy: f64,
    /// Seconds since the service began.
    pub seconds: f64,
}

/// Why a request was not answered with what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// What to do about it.
    pub error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a prover says arrives as it was said.
    #[test]
    fn verdicts_survive_the_way() {
        let verdicts = [
            Verdict::Open { state: StateId(3), text: "⊢ p".into() },
            Verdict::Proved,
            Verdict::Rejected { reason: "no".into() },
        ];
        for verdict in verdicts {
            let text = serde_json::to_string(&Ran::from(verdict.clone())).unwrap();
            assert_eq!(Verdict::from(serde_json::from_str::<Ran>(&text).unwrap()), verdict);
        }
        for (momentary, text) in
            [(false, r#"{"rejected":"no"}"#), (true, r#"{"rejected":"no","momentary":true}"#)]
        {
            let ran = Ran::Rejected { rejected: "no".into(), momentary };
            assert_eq!(serde_json::to_string(&ran).unwrap(), text);
            assert_eq!(serde_json::from_str::<Ran>(text).unwrap(), ran);
        }
        let checks = [
            Checked::proved(vec!["propext".into()]),
            Checked::Proved {
                axioms: Vec::new(),
                note: "nanoda agrees".into(),
                relative_to: vec!["And.left".into()],
            },
            Checked::Refused { reason: "sorry".into() },
        ];
        for checked in checks {
            let judged = Judged { name: "t".into(), verdict: checked.clone().into() };
            let text = serde_json::to_string(&judged).unwrap();
            let read: Judged = serde_json::from_str(&text).unwrap();
            assert_eq!(Checked::from(read.verdict), checked);
        }
    }
}
