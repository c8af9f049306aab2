//! Claims: proofs that somebody says to have, and what is ruled on them.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use catamount_search::{Checked, Environment, Fault};
use catamount_traces::Theorem;
use serde::{Deserialize, Serialize};

use crate::environment::Lean;
use crate::reading::misleading;
use crate::source::split_imports;
use crate::worker::Owner;

/// A proof that somebody claims to have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// What to call it in the ruling.
    #[serde(default)]
    pub name: String,
    /// Lean commands before the theorem; `import` lines first, if any.
    #[serde(default)]
    pub header: String,
    /// `theorem t (a : Nat) : ...`, without `:=`.
    pub statement: String,
    /// The proof, in order.
    pub tactics: Vec<String>,
}

/// A proof of a theorem where it stands, in a library of the user's.
#[derive(Deserialize)]
struct Placed {
    #[serde(flatten)]
    theorem: Theorem,
    tactics: Vec<String>,
}

/// Whether a claim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RulingVerdict {
    /// The kernel accepts the proof of the statement as it is written.
    Proved,
    /// It does not, or the claim bends the rules.
    Refused,
    /// Nobody can say: a process of ours failed, again and again.
    Error,
}

/// The ruling on a [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// The claim's name.
    pub name: String,
    /// Whether it stands.
    pub verdict: RulingVerdict,
    /// Why not, or what failed; empty when it stands.
    pub reason: String,
    /// Axioms it rests on.
    pub axioms: Vec<String>,
    /// What the header's `variable` assumes beside what the statement says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hypotheses: Vec<String>,
    /// Whether that list is the whole of it, and what a second kernel says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Library statements that a second kernel had to take on trust, their proofs being absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relative_to: Vec<String>,
}

impl Ruling {
    /// What a check comes to; it knows of no hypotheses.
    fn of(name: &str, checked: Result<Checked, Fault>) -> Ruling {
        match checked {
            Ok(Checked::Proved { axioms, note, relative_to }) => Ruling {
                name: name.to_owned(),
                verdict: RulingVerdict::Proved,
                reason: String::new(),
                axioms,
                hypotheses: Vec::new(),
                note,
                relative_to,
            },
            Ok(Checked::Refused { reason }) => Ruling::refused(name, reason),
            Err(Fault(why)) => {
                Ruling { verdict: RulingVerdict::Error, ..Ruling::refused(name, why) }
            }
        }
    }

    fn refused(name: &str, reason: String) -> Ruling {
        Ruling {
            name: name.to_owned(),
            verdict: RulingVerdict::Refused,
            reason,
            axioms: Vec::new(),
            hypotheses: Vec::new(),
            note: String::new(),
            relative_to: Vec::new(),
        }
    }
}

impl Lean {
    /// Rules on one claim of a stranger's. Its header and statement are held to the policy: what
    /// could mislead a reader is refused, whatever the judge would say.
    pub fn rule(&self, claim: &Claim) -> Result<Ruling, Fault> {
        let fields = [("header", &claim.header), ("statement", &claim.statement)];
        for (field, text) in fields {
            if let Some(why) = misleading(text) {
                return Ok(Ruling::refused(&claim.name, format!("policy: in the {field}, {why}")));
            }
        }
        let (named, _) = split_imports(&claim.header);
        if let Some(module) = self.own_module(named.iter()) {
            let why = format!("policy: `{module}` is this program's own and no library");
            return Ok(Ruling::refused(&claim.name, why));
        }
        let theorem = Theorem {
            name: claim.name.clone(),
            statement: claim.statement.clone(),
            header: Some(claim.header.clone()),
            ..Theorem::default()
        };
        let (place, target) =
            self.locate(&theorem, Owner::Stranger).map_err(|e| Fault(e.to_string()))?;
        let verified = self.check_at(&place, &target, &claim.tactics);
        let hypotheses = verified.as_ref().map(|v| v.hypotheses.clone()).unwrap_or_default();
        let ruling = Ruling::of(&claim.name, verified.map(|verified| verified.checked));
        Ok(Ruling { hypotheses, ..ruling })
    }

    /// Rules on one line: a claim, or, with a file in place of header and statement, a proof of the
    /// theorem that stands there, in the user's own library.
    fn rule_line(&self, at: usize, line: &[u8]) -> Result<Ruling, Fault> {
        if let Ok(Placed { theorem, tactics }) = serde_json::from_slice(line)
            && let (Some(file), None) = (&theorem.file, &theorem.header)
        {
            let inside = |part| matches!(part, Component::Normal(_));
            if !Path::new(file).components().all(inside) {
                let why = format!("request: {file} is no path below the library's root");
                return Ok(Ruling::refused(&theorem.name, why));
            }
            return Ok(Ruling::of(&theorem.name, self.check(&theorem, &tactics)));
        }
        match serde_json::from_slice::<Claim>(line) {
            Ok(claim) => self.rule(&claim),
            Err(e) => {
                let why = format!("request: line {} is not a claim: {e}", at + 1);
                Ok(Ruling::refused("", why))
            }
        }
    }

    /// Rules on claims given as JSON lines, `workers` at a time; `emit` gets the rulings in the
    /// order of the lines. A line that is not a claim is refused like any other.
    pub fn rule_lines(&self, lines: &[u8], mut emit: impl FnMut(&Ruling)) -> Result<(), Fault> {
        let lines: Vec<&[u8]> =
            lines.split(|b| *b == b'\n').filter(|l| !l.trim_ascii().is_empty()).collect();
        let next = AtomicUsize::new(0);
        let (sender, rulings) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..self.options.workers.clamp(1, lines.len().max(1)) {
                let sender = sender.clone();
                let (next, lines) = (&next, &lines);
                scope.spawn(move || {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(line) = lines.get(at) else { return };
                        if sender.send((at, self.rule_line(at, line))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut waiting = BTreeMap::new();
            let mut due = 0;
            for (at, ruling) in rulings {
                waiting.insert(at, ruling?);
                while let Some(ruling) = waiting.remove(&due) {
                    emit(&ruling);
                    due += 1;
                }
            }
            Ok(())
        })
    }
}
