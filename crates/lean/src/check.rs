//! The final word on a finished proof: its terms, judged against a challenge that no tactic has
//! touched.
//!
//! Three processes take part and only data passes between them. The prover, whatever it says, hands
//! over terms; the challenger says what is to be proved; the judge gives both to the kernel.

use std::sync::Arc;
use std::time::Instant;

use catamount_search::{Checked, Fault, Session, StateId, Verdict};
use catamount_traces::Theorem;

use crate::challenge::{Challenge, Extent};
use crate::environment::Lean;
use crate::judge::Opinion;
use crate::options::Kernel;
use crate::seat::Seat;
use crate::session::{Opening, Target, disallowed};
use crate::terms::{Limits, Terms};
use crate::worker::{Owner, Place, Worker};

/// What a check found.
pub(crate) struct Verified {
    pub checked: Checked,
    /// Whether the library's own proofs could be looked into for axioms.
    pub all_axioms_seen: bool,
    /// What a stranger's header assumes beside what the statement says.
    pub hypotheses: Vec<String>,
}

impl Verified {
    fn new(checked: Checked, all_axioms_seen: bool) -> Verified {
        Verified { checked, all_axioms_seen, hypotheses: Vec::new() }
    }

    pub fn refused(reason: String) -> Verified {
        Verified::new(Checked::Refused { reason }, true)
    }
}

/// Constants for which a kernel would run compiled code, or that stand for a missing proof. None of
/// them may be so much as mentioned to the judge.
const UNTRUSTED: [&str; 6] = [
    "sorryAx",
    "Lean.reduceBool",
    "Lean.reduceNat",
    "Lean.ofReduceBool",
    "Lean.ofReduceNat",
    "Lean.trustCompiler",
];

const UNSEEN: &str = "axioms that library theorems rest on are not in the list: the WebAssembly \
 package has no library proofs";

impl Lean {
    pub(crate) fn check_at(
        &self,
        place: &Place,
        target: &Target,
        tactics: &[String],
    ) -> Result<Verified, Fault> {
        let terms = match self.found.take(place, target, tactics) {
            Some(terms) => terms,
            None => match self.prove(place, target, tactics)? {
                Ok(terms) => terms,
                Err(reason) => return Ok(Verified::refused(reason)),
            },
        };
        let verified = self.judge_terms(place, target, &terms)?;
        let mut verified = self.second_opinion(place, target, &terms, verified)?;
        if let Checked::Proved { note, relative_to, .. } = &mut verified.checked {
            *note = self.note(verified.all_axioms_seen, relative_to);
        }
        Ok(verified)
    }

    /// Has a prover replay the tactics. What it hands over is a claim, and the inner error is why
    /// there is none.
    ///
    /// What a prover hands over is judged, so it does not matter what else ran in its process; that
    /// it hands over nothing may be the doing of another stranger's tactics. Such a claim is tried
    /// again in a process of its own.
    pub(crate) fn prove(
        &self,
        place: &Place,
        target: &Target,
        tactics: &[String],
    ) -> Result<Result<String, String>, Fault> {
        let place = &Arc::new(place.clone());
        let seat = self.pool.choose(place);
        let slot = Arc::clone(seat.slot());
        let first = self.replay(seat, target, tactics);
        let shared =
            place.owner == Owner::Stranger && slot.lock().claims() > self.options.checks_per_header;
        if !shared || matches!(first, Ok(Ok(_))) {
            return first;
        }
        let worker = Worker::new(self.launch.clone(), Arc::clone(&self.options));
        let own = self.replay(Seat::alone(worker, Arc::clone(place)), target, tactics);
        if matches!(own, Ok(Ok(_))) {
            slot.lock().stop();
        }
        own
    }

    /// The same at this seat.
    fn replay(
        &self,
        seat: Seat,
        target: &Target,
        tactics: &[String],
    ) -> Result<Result<String, String>, Fault> {
        let deadline = Instant::now() + self.options.check_limit;
        let (slot, place) = (Arc::clone(seat.slot()), Arc::clone(seat.place()));
        let opened = self.session(seat, target.clone());
        if place.owner == Owner::Stranger {
            slot.lock().claimed();
        }
        let mut session = match opened {
            Ok(session) => session,
            Err(Opening::Refused(why)) => return Ok(Err(why)),
            // What a stranger's header does to the process is the claim's own doing.
            Err(Opening::Fault(Fault(why))) if place.owner == Owner::Stranger => {
                return Ok(Err(format!("header: {why}")));
            }
            Err(Opening::Fault(fault) | Opening::Killed(fault)) => return Err(fault),
        };
        session.until(deadline);
        let mut state = StateId(0);
        for (at, tactic) in tactics.iter().enumerate() {
            match session.apply(state, tactic)? {
                Verdict::Open { state: next, .. } => state = next,
                Verdict::Rejected { reason } => return Ok(Err(reason)),
                Verdict::Proved if at + 1 < tactics.len() => {
                    return Ok(
                        Err("elaboration: no goals are left for the next tactic".to_owned()),
                    );
                }
                Verdict::Proved => {
                    let terms = self.found.take(&place, target, tactics);
                    return Ok(terms.ok_or_else(|| "terms: none were handed over".to_owned()));
                }
            }
        }
        Ok(Err("unsound: goals are left".to_owned()))
    }

    /// Judges a proof that comes as terms, in the format of lean4export, whoever made them.
    pub fn judge(&self, theorem: &Theorem, terms: &str) -> Result<Checked, Fault> {
        let (place, target) =
            self.locate(theorem, Owner::User).map_err(|e| Fault(e.to_string()))?;
        Ok(self.judge_terms(&place, &target, terms)?.checked)
    }

    /// The terms that a prover hands over for these tactics. They are a claim and have not been
    /// judged; the inner error is why there are none.
    pub fn terms(
        &self,
        theorem: &Theorem,
        tactics: &[String],
    ) -> Result<Result<String, String>, Fault> {
        let (place, target) =
            self.locate(theorem, Owner::User).map_err(|e| Fault(e.to_string()))?;
        self.prove(&place, &target, tactics)
    }

    /// Puts terms to the judge. Nothing is asked about where they come from.
    fn judge_terms(&self, place: &Place, target: &Target, terms: &str) -> Result<Verified, Fault> {
        let refused = |reason: String| Ok(Verified::refused(reason));
        let proof = match Terms::read(terms, &Limits::default()) {
            Ok(proof) => proof,
            Err(why) => return refused(format!("terms: {why}")),
        };
        if let Some(name) = proof.mentioned(&UNTRUSTED) {
            return refused(format!("unsound: the proof rests on {name}"));
        }
        let Some(for_judge) = proof.with_own_names().for_judge() else {
            return refused("unsound: a proof may not declare quotients".into());
        };
        // The user's own theorems count by their statements, unless the kernel has to look into
        // their proofs; a stranger's are proved again.
        let extents: &[Extent] = match place.owner {
            Owner::User => &[Extent::Statements, Extent::Proofs],
            Owner::Stranger => &[Extent::Proofs],
        };
        let mut reason = String::new();
        for extent in extents {
            let challenge = match self.challenge(place, target, &proof, *extent)? {
                Ok(challenge) => challenge,
                Err(why) => return refused(why),
            };
            if place.owner == Owner::Stranger
                && let Some(name) = challenge.terms.mentioned(&UNTRUSTED)
            {
                return refused(format!("unsound: the header or the statement rests on {name}"));
            }
            match self.opinion(&challenge, &for_judge)? {
                Opinion::Stands { axioms, all_axioms_seen } => {
                    let mut hidden = challenge.hypotheses.iter().filter(|h| h.hidden && !h.holds);
                    if let Some(h) = hidden.find(|h| proof.uses_argument(h.position)) {
                        return refused(format!(
                            "policy: the proof rests on a hypothesis that the header's `variable` \
                             adds and the statement does not mention: `{}`",
                            h.text
                        ));
                    }
                    return Ok(self.verified(challenge, axioms, all_axioms_seen));
                }
                Opinion::Refused { reason: why, by_kernel } => {
                    reason = why;
                    if !by_kernel || challenge.stated.is_empty() {
                        break;
                    }
                }
            }
        }
        refused(reason)
    }

    fn opinion(&self, challenge: &Challenge, proof: &serde_json::Value) -> Result<Opinion, Fault> {
        let given = challenge
            .terms
            .for_judge()
            .ok_or_else(|| Fault("the challenge declares the quotient type again".into()))?;
        self.judges.judge(&challenge.imports, &given, proof)
    }

    fn verified(
        &self,
        challenge: Challenge,
        judged: Vec<String>,
        all_axioms_seen: bool,
    ) -> Verified {
        let mut axioms: Vec<String> =
            judged.into_iter().filter(|a| !challenge.stated.contains(a)).collect();
        axioms.extend(challenge.axioms);
        axioms.sort();
        axioms.dedup();
        let checked = match disallowed(&axioms, &self.options.allowed_axioms) {
            Some(reason) => Checked::Refused { reason },
            None => Checked::proved(axioms),
        };
        Verified {
            hypotheses: challenge.hypotheses.into_iter().map(|h| h.text).collect(),
            ..Verified::new(checked, all_axioms_seen && challenge.all_axioms_seen)
        }
    }

    /// What a ruling does not vouch for.
    fn note(&self, all_axioms_seen: bool, relative_to: &[String]) -> String {
        let mut notes = Vec::new();
        if !all_axioms_seen {
            notes.push(UNSEEN.to_owned());
        }
        match (self.options.kernel, relative_to.len()) {
            (Kernel::Lean, _) => {}
            (Kernel::Nanoda, 0) => notes.push("nanoda agrees, down to the ground".to_owned()),
            (Kernel::Nanoda, n) => {
                notes.push(format!("nanoda agrees, relative to these {n} library statements"));
            }
        }
        notes.join("; ")
    }
}
