//! Whole evaluations of the bundled library: the driver, the n-gram policy, all six strategies.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use catamount_evaluate::driver::{CellEvent, Job, Plan, Searches, Workload, search};
use catamount_evaluate::log::{Outcome, Record};
use catamount_lean::Lean;
use catamount_policies::Ngram;
use catamount_search::{Checked, Deployment, Environment, StrategyKind};
use catamount_traces::Trace;

use crate::setup::{lean, options, traced};

/// Of these files ...
const FILES: [&str; 2] = ["Function.lean", "Logic.lean"];
/// ... one theorem in so many is searched for; the policy never sees its proof.
const HELD_OUT: usize = 6;

/// Traces to search for, and traces to learn from.
fn parts() -> (Vec<&'static Trace>, Vec<&'static Trace>) {
    let of_files = |t: &Trace| t.theorem.file.as_deref().is_some_and(|file| FILES.contains(&file));
    let (mut searched, mut learned) = (Vec::new(), Vec::new());
    for (at, trace) in traced().traces.iter().enumerate() {
        if of_files(trace) && at % HELD_OUT == 0 {
            searched.push(trace)
        } else {
            learned.push(trace)
        }
    }
    (searched, learned)
}

/// The records of one strategy's evaluation, by theorem.
pub fn evaluate(lean: &Arc<dyn Environment>, strategy: StrategyKind, every: usize) -> Vec<Record> {
    let (searched, learned) = parts();
    let mut policy = Ngram::fit(learned, 1.0).unwrap();
    let job = |trace: &&Trace| Job {
        theorem: trace.theorem.clone(),
        demonstrated: Some(trace.steps.len()),
        time_left: None,
        tree: false,
    };
    let plan =
        Plan { deployment: Deployment::new(strategy, 16).unwrap(), seed: 7, time_limit: None };
    let mut records = Vec::new();
    let jobs = searched.iter().step_by(every).map(job).collect();
    let mut watch = |event| {
        if let CellEvent::Finished(_, done) = event {
            records.push(done.record);
        }
    };
    let workload = Workload { concurrency: 6, threads: 6 };
    let cells = vec![Searches { plan, jobs }];
    search(lean, &mut policy, cells, workload, &AtomicBool::new(false), &mut watch);
    records.sort_by(|a, b| a.theorem.cmp(&b.theorem));
    records
}

#[test]
fn every_strategy_finds_proofs_that_stand() {
    let environment: Arc<dyn Environment> = Arc::new(Lean::new(options()).unwrap());
    let (searched, _) = parts();
    let mut proofs = Vec::new();
    for strategy in StrategyKind::ALL {
        let records = evaluate(&environment, strategy, 1);
        assert_eq!(records.len(), searched.len());
        assert!(records.iter().all(|r| r.outcome != Outcome::Error), "{strategy}: {records:?}");
        let found: Vec<_> = records.into_iter().filter(|r| r.outcome == Outcome::Proved).collect();
        assert!(
            found.len() * 8 >= searched.len(),
            "{strategy}: {} of {}",
            found.len(),
            searched.len()
        );
        proofs.extend(found.into_iter().map(|r| (r.theorem, r.tactics)));
    }
    // Some once more, by an environment that took no part in any of it.
    proofs.sort();
    proofs.dedup();
    for (name, tactics) in proofs.into_iter().step_by(3) {
        let theorem = &searched.iter().find(|t| t.theorem.name == name).unwrap().theorem;
        assert!(
            matches!(lean().check(theorem, &tactics).unwrap(), Checked::Proved { .. }),
            "{name}: {tactics:?}"
        );
    }
}
