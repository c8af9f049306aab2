//! The judge: a process that reads terms as data and asks the kernel. No code of a proof ever runs
//! in it, so one serves any number of proofs, and what it says is the verdict.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use catamount_search::Fault;
use serde_json::Value;

use crate::error::Error;
use crate::launch::Launch;
use crate::ledger::{Ledger, Work};
use crate::options::Options;
use crate::process::{Failure, Process};
use crate::wire::{Reply, Request};

/// How often a proof is put to a new judge after one was lost over it.
const RETRIES: usize = 2;

/// So many judges are kept however few the workers, one for each set of imports.
const LEAST: usize = 2;

/// What the judge says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opinion {
    /// The proof stands.
    Stands {
        axioms: Vec<String>,
        /// Whether the library's own proofs could be looked into for axioms.
        all_axioms_seen: bool,
    },
    Refused {
        reason: String,
        /// Whether it was the kernel that would not have it.
        by_kernel: bool,
    },
}

/// A judge for each set of imports.
pub(crate) struct Judges {
    launch: Launch,
    options: Arc<Options>,
    all: Mutex<Vec<Arc<Judge>>>,
    ledger: Arc<Ledger>,
}

struct Judge {
    imports: Vec<String>,
    process: Mutex<Option<Process>>,
}

impl Judges {
    pub fn new(launch: Launch, options: Arc<Options>, ledger: Arc<Ledger>) -> Judges {
        Judges { launch, options, all: Mutex::default(), ledger }
    }

    fn of(&self, imports: &[String]) -> Arc<Judge> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let judge = match all.iter().position(|j| j.imports == imports) {
            Some(at) => all.remove(at),
            None => {
                // Every file has imports of its own, and every worker may be in another file.
                if all.len() >= self.options.workers.max(LEAST) {
                    all.remove(0);
                }
                Arc::new(Judge { imports: imports.to_vec(), process: Mutex::default() })
            }
        };
        all.push(Arc::clone(&judge));
        judge
    }

    /// Whether `proof` proves the goal of `challenge` over the imports. A judge that is lost, or
    /// that runs out of time or memory, is a fault and no opinion.
    pub fn judge(
        &self,
        imports: &[String],
        challenge: &Value,
        proof: &Value,
    ) -> Result<Opinion, Fault> {
        let judge = self.of(imports);
        let mut process = judge.process.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lost = None;
        for _ in 0..=RETRIES {
            match self.ask(&mut process, imports, challenge, proof) {
                Ok(reply) => return opinion(reply),
                Err(Error::Worker(how)) => lost = Some(how),
                Err(error) => return Err(Fault(format!("the judge: {error}"))),
            }
        }
        Err(Fault(format!("the judge: {}, again and again", lost.unwrap_or_default())))
    }

    fn ask(
        &self,
        process: &mut Option<Process>,
        imports: &[String],
        challenge: &Value,
        proof: &Value,
    ) -> Result<Reply, Error> {
        let begin = Instant::now();
        let mut running = match process.take() {
            Some(running) => running,
            None => Process::start(&self.launch, imports, &self.options)?,
        };
        let request = Request::Judge { challenge, proof };
        let reply = running.ask(&request, &[], self.options.check_limit);
        self.ledger.add(Work::Judging, begin.elapsed());
        let reply = reply.map_err(|failure: Failure| Error::Worker(failure.to_string()))?;
        *process = Some(running);
        Ok(reply)
    }
}

fn opinion(reply: Reply) -> Result<Opinion, Fault> {
    match reply.kind.as_str() {
        _ if reply.ok => Ok(Opinion::Stands {
            axioms: reply.axioms,
            all_axioms_seen: reply.library_axioms_visible,
        }),
        "kernel" | "unsound" | "limit" => {
            Ok(Opinion::Refused { reason: reply.refusal(), by_kernel: reply.kind == "kernel" })
        }
        _ => Err(Fault(format!("the judge: {}", reply.refusal()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use catamount_search::Environment;
    use catamount_traces::Theorem;

    use crate::claim::{Claim, RulingVerdict};
    use crate::environment::Lean;

    #[test]
    fn workers_in_different_files_keep_their_judges() {
        let kept = |workers| {
            let options = Options { workers, ..Options::default() };
            let judges = Judges::new(Launch::of_nothing(), Arc::new(options), Arc::default());
            let of = |module: &str| judges.of(&[module.to_owned()]);
            let first = of("A");
            ["B", "C", "D"].iter().for_each(|other| drop(of(other)));
            Arc::ptr_eq(&first, &of("A"))
        };
        assert_eq!([kept(4), kept(2), kept(1)], [true, false, false]);
    }

    #[test]
    fn a_judge_without_memory_says_nothing() {
        let mut lean = Lean::new(Options { workers: 1, ..Options::default() }).unwrap();
        let little = Options { memory_mb: 64, ..Options::default() };
        lean.judges = Judges::new(lean.launch.judge(), Arc::new(little), Arc::default());
        let theorem = Theorem { statement: "theorem t : True".into(), ..Theorem::default() };
        let checked = lean.check(&theorem, &["trivial".into()]);
        assert!(checked.as_ref().is_err_and(|f| f.0.contains("the judge")), "{checked:?}");
        let claim = Claim {
            statement: "theorem t : True".into(),
            tactics: vec!["trivial".into()],
            ..Claim::default()
        };
        let ruling = lean.rule(&claim).unwrap();
        assert_eq!(ruling.verdict, RulingVerdict::Error, "{ruling:?}");
    }
}
