//! The final word on a finished proof: in a process that took no part in finding it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use catamount_search::{Checked, Fault};
use catamount_traces::Theorem;
use serde::{Deserialize, Serialize};

use crate::environment::Lean;
use crate::process::Failure;
use crate::reading::misleading;
use crate::session::{Target, disallowed};
use crate::wire::Request;
use crate::worker::{Place, PlaceText, Trouble, Worker};

/// What a check found.
pub(crate) struct Verified {
    pub checked: Checked,
    /// Whether the library's own proofs could be looked into for axioms.
    all_axioms_seen: bool,
}

impl Verified {
    fn refused(reason: String) -> Verified {
        Verified { checked: Checked::Refused { reason }, all_axioms_seen: true }
    }
}

/// How often a check is tried again when its process is killed from outside.
const KILLS: usize = 4;

impl Lean {
    pub(crate) fn check_at(
        &self,
        place: &Place,
        target: &Target,
        tactics: &[String],
    ) -> Result<Verified, Fault> {
        let (key, most) = match &place.text {
            PlaceText::Files(_) => (place.clone(), self.options.checks_per_file),
            PlaceText::Header(_) => (
                Place { imports: place.imports.clone(), text: PlaceText::Header(String::new()) },
                self.options.checks_per_header,
            ),
        };
        let (mut kills, mut deaths) = (0, 0);
        loop {
            let mut held = self
                .checkers
                .take(&key, || Worker::new(self.launch.clone(), Arc::clone(&self.options)));
            let result = match self.check_once(held.worker(), place, target, tactics) {
                Err(Trouble::Refused(why)) => Ok(Verified::refused(why)),
                other => other,
            };
            match result {
                Ok(verified) => {
                    if held.served + 1 < most {
                        held.give_back();
                    }
                    return Ok(verified);
                }
                Err(Trouble::Failure(failure @ (Failure::Time(_) | Failure::Memory(_)))) => {
                    return Ok(Verified::refused(format!("limit: {failure}")));
                }
                Err(Trouble::Failure(failure @ Failure::Died(_))) => {
                    deaths += 1;
                    if deaths > 1 {
                        return Ok(Verified::refused(format!("limit: {failure}")));
                    }
                }
                Err(Trouble::Failure(failure @ Failure::Killed(_))) => {
                    kills += 1;
                    if kills > KILLS {
                        return Err(Fault(format!("checking a proof: {failure}, again and again")));
                    }
                }
                Err(trouble @ (Trouble::Start(_) | Trouble::Refused(_))) => {
                    return Err(Fault(trouble.to_string()));
                }
            }
        }
    }

    fn check_once(
        &self,
        worker: &mut Worker,
        place: &Place,
        target: &Target,
        tactics: &[String],
    ) -> Result<Verified, Trouble> {
        let ctx = worker.context(place)?;
        let limit = self.options.check_limit;
        let deadline = Instant::now() + limit;
        // Each request gets what is left of the whole check's time; when it runs out, the limit
        // itself is what to report.
        let demand = |worker: &mut Worker, request: &Request<'_>| {
            let left = deadline.saturating_duration_since(Instant::now());
            worker.demand(request, left).map_err(|t| match t {
                Trouble::Failure(Failure::Time(_)) => Trouble::Failure(Failure::Time(limit)),
                other => other,
            })
        };
        let heartbeats = self.options.heartbeats;
        let mut last = demand(worker, &target.request(ctx, heartbeats.max(400_000)))?;
        let mut used = vec![last.state];
        for tactic in tactics {
            last = demand(worker, &Request::Tac { state: last.state, tactic, heartbeats })?;
            used.push(last.state);
        }
        let finish = demand(worker, &Request::Finish { state: last.state })?;
        let generation = worker.generation();
        worker.forget(generation, used);
        let checked = match disallowed(&finish.axioms, &self.options.allowed_axioms) {
            Some(reason) => Checked::Refused { reason },
            None => Checked::Proved { axioms: finish.axioms },
        };
        Ok(Verified { checked, all_axioms_seen: finish.library_axioms_visible })
    }

    /// Rules on one claim, in a fresh process and within [`crate::Options::check_limit`].
    pub fn rule(&self, claim: &Claim) -> Result<Ruling, Fault> {
        let fields = [("header", &claim.header), ("statement", &claim.statement)];
        for (field, text) in fields {
            if let Some(why) = misleading(text) {
                return Ok(Ruling::refused(&claim.name, format!("policy: in the {field}, {why}")));
            }
        }
        let theorem = Theorem {
            name: claim.name.clone(),
            statement: claim.statement.clone(),
            header: Some(claim.header.clone()),
            ..Theorem::default()
        };
        let (place, target) = self.locate(&theorem).map_err(|e| Fault(e.to_string()))?;
        Ok(match self.check_at(&place, &target, &claim.tactics) {
            Ok(Verified { checked: Checked::Proved { axioms }, all_axioms_seen }) => Ruling {
                name: claim.name.clone(),
                verdict: RulingVerdict::Proved,
                reason: String::new(),
                axioms,
                note: if all_axioms_seen { String::new() } else { UNSEEN.to_owned() },
            },
            Ok(Verified { checked: Checked::Refused { reason }, .. }) => {
                Ruling::refused(&claim.name, reason)
            }
            // Imports that are not there are the claim's fault when its header names them.
            Err(Fault(why)) if place.imports != self.options.imports => {
                Ruling::refused(&claim.name, why)
            }
            Err(fault) => return Err(fault),
        })
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
                        let ruling = match serde_json::from_slice::<Claim>(line) {
                            Ok(claim) => self.rule(&claim),
                            Err(e) => Ok(Ruling::refused(
                                "",
                                format!("request: line {} is not a claim: {e}", at + 1),
                            )),
                        };
                        if sender.send((at, ruling)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut waiting = std::collections::BTreeMap::new();
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

/// Whether a claim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RulingVerdict {
    /// The kernel accepts the proof of the statement as it is written.
    Proved,
    /// It does not, or the claim bends the rules.
    Refused,
}

/// The ruling on a [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// The claim's name.
    pub name: String,
    /// Whether it stands.
    pub verdict: RulingVerdict,
    /// Why not; empty when it does.
    pub reason: String,
    /// Axioms it rests on.
    pub axioms: Vec<String>,
    /// Whether that list is the whole of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

const UNSEEN: &str = "axioms that library theorems rest on are not in the list: the WebAssembly \
 package has no library proofs";

impl Ruling {
    fn refused(name: &str, reason: String) -> Ruling {
        Ruling {
            name: name.to_owned(),
            verdict: RulingVerdict::Refused,
            reason,
            axioms: Vec::new(),
            note: String::new(),
        }
    }
}
