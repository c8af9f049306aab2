//! The challenge: what a proof of a theorem must prove, and what it may rest on, from a process
//! that has elaborated header and statement and has seen no tactic.

use catamount_search::Fault;

use crate::environment::Lean;
use crate::helpers;
use crate::process::Failure;
use crate::session::Target;
use crate::terms::{Limits, Terms};
use crate::wire::{Hypothesis, Request};
use crate::worker::{Owner, Place, PlaceText, Trouble, Worker};

/// How often another challenger is tried when one is killed from outside ...
const KILLS: usize = 4;
/// ... or dies or runs out of time or memory by itself.
const DEATHS: usize = 1;

/// What the judge is given besides the proof.
pub(crate) struct Challenge {
    /// What stands between the imports and the theorem, and last, as an axiom, the goal.
    pub terms: Terms,
    pub imports: Vec<String>,
    /// Theorems that come without their proofs ...
    pub stated: Vec<String>,
    /// ... and the axioms that those rest on.
    pub axioms: Vec<String>,
    /// Whether that list is the whole of it.
    pub all_axioms_seen: bool,
    /// What a stranger's header assumes.
    pub hypotheses: Vec<Hypothesis>,
    /// Lean's version, and the commit it was built from.
    pub lean: String,
    pub githash: String,
}

/// How much of the challenge is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Theorems between imports and goal by their statements.
    Statements,
    /// With their proofs.
    Proofs,
    /// Everything, down to the ground: for kernels that import nothing.
    Whole,
}

impl Lean {
    /// The challenge for a proof in `terms`; the inner error is a refusal.
    pub(crate) fn challenge(
        &self,
        place: &Place,
        target: &Target,
        terms: &Terms,
        extent: Extent,
    ) -> Result<Result<Challenge, String>, Fault> {
        let (key, most) = match &place.text {
            PlaceText::File(_) => (place.clone(), self.options.checks_per_file),
            PlaceText::Header(_) => (
                Place { text: PlaceText::Header(String::new()), ..place.clone() },
                match place.owner {
                    Owner::User => self.options.checks_per_file,
                    Owner::Stranger => self.options.checks_per_header,
                },
            ),
        };
        let (mut kills, mut deaths) = (0, 0);
        loop {
            let mut held = self.challengers.take(&key, || self.checker());
            let answer = self.ask_for_challenge(held.worker(), place, target, terms, extent);
            let trouble = match answer {
                Ok(answer) => {
                    if held.served + 1 < most {
                        held.give_back();
                    }
                    return Ok(answer);
                }
                Err(Trouble::Refused(why)) => {
                    if held.served + 1 < most {
                        held.give_back();
                    }
                    return Ok(Err(why));
                }
                Err(trouble) => trouble,
            };
            match &trouble {
                Trouble::Failure(Failure::Killed(_)) => kills += 1,
                Trouble::Failure(failure) => {
                    deaths += 1;
                    // What a stranger's header does to the process is the claim's own doing.
                    if deaths > DEATHS && place.owner == Owner::Stranger {
                        return Ok(Err(format!("limit: {failure}")));
                    }
                }
                Trouble::Start(_) | Trouble::Refused(_) => {
                    return Err(Fault(trouble.to_string()));
                }
            }
            if kills > KILLS || deaths > DEATHS {
                return Err(Fault(format!("the challenger: {trouble}, again and again")));
            }
        }
    }

    /// A process that takes no part in a search.
    fn checker(&self) -> Worker {
        Worker::accounted(self.launch.clone(), self.options.clone(), self.checking.clone())
    }

    fn ask_for_challenge(
        &self,
        worker: &mut Worker,
        place: &Place,
        target: &Target,
        terms: &Terms,
        extent: Extent,
    ) -> Result<Result<Challenge, String>, Trouble> {
        let limit = self.options.check_limit;
        let heartbeats = self.options.heartbeats.max(400_000);
        self.look_at(worker, place, target)?;
        // The proofs of the theorem's own file are wanted, or the file is there compiled.
        let with_proofs = extent != Extent::Statements || !self.has_compiled();
        let module = match &place.text {
            PlaceText::File(source) if !with_proofs => source.module.as_str(),
            _ => "",
        };
        // Whatever runs in a stranger's proofs must not be able to say what was to be proved.
        let with_proofs = with_proofs && place.owner == Owner::User;
        let ctx = worker.context(place, with_proofs)?;
        // Opening a theorem may be elaborating its file.
        let opening = match target {
            Target::Named { .. } => self.options.file_limit,
            Target::Statement(_) => limit,
        };
        let opened = worker.demand(&target.request(ctx, heartbeats, place.owner), opening)?;
        let (uses, declares) = (terms.used(), terms.declared());
        let request = Request::Challenge {
            state: opened.state,
            uses: &uses,
            declares: &declares,
            proofs: extent != Extent::Statements,
            whole: extent == Extent::Whole,
            module,
        };
        let reply = worker.demand(&request, limit)?;
        worker.forget(worker.generation(), [opened.state]);
        if let Some(name) = reply.missing.first() {
            return Ok(Err(format!("unsound: the proof uses an unknown constant {name}")));
        }
        if let Some(name) = reply.taken.first() {
            return Ok(Err(format!("unsound: the proof declares {name}, which is there already")));
        }
        // The user's own library may be large.
        let limits = Limits { bytes: usize::MAX, exprs: usize::MAX, ..Limits::default() };
        let terms = Terms::read(&reply.terms, &limits)
            .map_err(|why| Trouble::Refused(format!("challenge: {why}")))?;
        Ok(Ok(Challenge {
            terms,
            imports: reply.imports.into_iter().filter(|m| m != helpers::MODULE).collect(),
            stated: reply.stated,
            axioms: reply.axioms,
            all_axioms_seen: reply.library_axioms_visible,
            hypotheses: opened.hypotheses,
            lean: reply.lean,
            githash: reply.githash,
        }))
    }
}
