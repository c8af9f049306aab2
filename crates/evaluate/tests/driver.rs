//! Results must not depend on anything but the seed; a run must survive being stopped anywhere.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catamount_evaluate::driver::{Finished, Job, Plan, Workload};
use catamount_evaluate::log::{Outcome, Record};
use catamount_evaluate::{CellRun, CellTask, Evaluation, Log, Observer, Theorems, read_timing};
use catamount_search::{Deployment, Environment, StrategyKind};
use catamount_traces::{Theorem, Trace};
use common::{Countdown, Mute, Uniform, provenance, search_one};

fn jobs(count: usize) -> Vec<Job> {
    let theorem = |i: usize| Theorem {
        name: format!("countdown-{i}"),
        statement: (3 + i % 9).to_string(),
        ..Theorem::default()
    };
    (0..count)
        .map(|i| Job { theorem: theorem(i), demonstrated: None, time_left: None, tree: true })
        .collect()
}

fn plan(strategy: StrategyKind, seed: u64) -> Plan {
    Plan { deployment: Deployment::new(strategy, 40).unwrap(), seed, time_limit: None }
}

const SOME: Workload = Workload { concurrency: 16, threads: 2 };

fn sorted(plan: &Plan, workload: Workload, batch: usize) -> Vec<Record> {
    let environment: Arc<dyn Environment> = Arc::new(Countdown { broken: None });
    let mut policy = Uniform { batch, queue: Default::default() };
    let stop = AtomicBool::new(false);
    let all = search_one(&environment, &mut policy, jobs(60), plan, workload, &stop);
    let mut records: Vec<Record> = all.into_iter().map(|finished| finished.record).collect();
    records.sort_by(|a, b| a.theorem.cmp(&b.theorem));
    records
}

#[test]
fn results_depend_on_the_seed_alone() {
    for strategy in StrategyKind::ALL {
        let reference = sorted(&plan(strategy, 1), SOME, 1000);
        let proved = reference.iter().filter(|record| record.outcome == Outcome::Proved).count();
        assert!(
            (10..60).contains(&proved),
            "{strategy}: {proved} of 60, a test that shows nothing"
        );
        let alone = Workload { concurrency: 1, threads: 1 };
        assert_eq!(sorted(&plan(strategy, 1), alone, 1), reference, "{strategy}");
        let crowd = Workload { concurrency: 60, threads: 7 };
        assert_eq!(sorted(&plan(strategy, 1), crowd, 3), reference, "{strategy}");
        assert_ne!(sorted(&plan(strategy, 2), SOME, 1000), reference, "{strategy}");
        for record in &reference {
            assert_eq!(record.distinct + record.duplicates, record.expansions, "{record:?}");
        }
    }
}

/// Success at a smaller budget can be read off a larger one.
#[test]
fn one_run_tells_every_smaller_budget() {
    for strategy in StrategyKind::ALL {
        let large = sorted(&plan(strategy, 5), SOME, 8);
        let deployment = Deployment::new(strategy, 12).unwrap();
        let small = sorted(&Plan { deployment, ..plan(strategy, 5) }, SOME, 8);
        for (large, small) in large.iter().zip(&small) {
            let read_off = large.outcome == Outcome::Proved && large.expansions <= 12;
            assert_eq!(read_off, small.outcome == Outcome::Proved, "{strategy} {}", large.theorem);
        }
    }
}

/// Stops an evaluation after so many theorems.
struct Interruption<'a> {
    limit: usize,
    seen: usize,
    stop: &'a AtomicBool,
}

impl Observer for Interruption<'_> {
    fn finished(&mut self, _: usize, _: &Finished) {
        self.seen += 1;
        self.stop.store(self.seen >= self.limit, Ordering::Relaxed);
    }
}

/// Runs a cell of each strategy with one policy; stops after `limit` theorems.
fn run_cells(
    folder: &Path,
    strategies: &[StrategyKind],
    limit: usize,
    broken: Option<&str>,
) -> Vec<CellRun> {
    let traces = jobs(60).into_iter().map(|job| Trace { theorem: job.theorem, steps: vec![] });
    let mut theorems = Theorems::select(traces.collect(), "-", None, None).unwrap();
    theorems.jobs.iter_mut().for_each(|job| job.tree = true);
    let task = |strategy: &StrategyKind| CellTask {
        log: folder.join(format!("{strategy}.jsonl")),
        objective: "none".into(),
        deployment: Deployment::new(*strategy, 40).unwrap(),
        theorems: theorems.clone(),
    };
    let tasks: Vec<CellTask> = strategies.iter().map(task).collect();
    let environment: Arc<dyn Environment> =
        Arc::new(Countdown { broken: broken.map(String::from) });
    let stop = AtomicBool::new(false);
    Evaluation {
        environment: &environment,
        policy: &mut Uniform { batch: 7, queue: Default::default() },
        seed: 1,
        time_limit: None,
        theorem_time_limit: None,
        workload: Workload { concurrency: 25, threads: 2 },
        provenance: provenance(),
        stop: &stop,
    }
    .run(&tasks, &mut Interruption { limit, seen: 0, stop: &stop })
    .unwrap()
}

const BFS: &[StrategyKind] = &[StrategyKind::Bfs];

#[test]
fn an_interrupted_cell_ends_as_an_undisturbed_one() {
    let (whole, pieces) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run_cells(whole.path(), BFS, usize::MAX, None);
    assert!(!run_cells(pieces.path(), BFS, 17, None)[0].complete);
    // A crash in the middle of a write.
    let log = pieces.path().join("bfs.jsonl");
    let mut text = std::fs::read_to_string(&log).unwrap();
    assert!((17..60).contains(&text.lines().count()));
    text.push_str("{\"theorem\":\"countdo");
    std::fs::write(&log, text).unwrap();
    run_cells(pieces.path(), BFS, 20, None);
    run_cells(pieces.path(), BFS, usize::MAX, None);
    let read = |folder: &Path| std::fs::read(folder.join("bfs.jsonl")).unwrap();
    assert_eq!(read(pieces.path()), read(whole.path()));
}

#[test]
fn errors_are_kept_apart_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    run_cells(folder.path(), BFS, usize::MAX, Some("countdown-7"));
    let log = folder.path().join("bfs.jsonl");
    let failed: Vec<Record> = Log::read(&log)
        .unwrap()
        .records
        .into_values()
        .filter(|r| r.outcome == Outcome::Error)
        .collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].reason.as_deref(), Some("the abacus is broken"));
    run_cells(folder.path(), BFS, usize::MAX, None);
    let log = Log::read(&log).unwrap();
    assert_eq!((log.tally().errors, log.tally().completed), (0, 60));
}

#[test]
fn a_time_limit_ends_a_search_without_a_verdict() {
    let time_limit = Some(std::time::Duration::ZERO);
    let limited = Plan { time_limit, ..plan(StrategyKind::Dfs, 1) };
    let records = sorted(&limited, SOME, 4);
    assert!(records.iter().all(|record| record.outcome == Outcome::Time) && records.len() == 60);
}

#[test]
fn cells_that_share_a_policy_are_what_they_are_alone() {
    let folder = tempfile::tempdir().unwrap();
    let cut = run_cells(folder.path(), &StrategyKind::ALL, 150, None);
    assert!(
        cut.len() == 6 && cut.iter().any(|run| run.complete) && cut.iter().any(|run| !run.complete)
    );
    let ended = run_cells(folder.path(), &StrategyKind::ALL, usize::MAX, None);
    assert!(
        ended.len() == 6
            && ended.iter().all(|run| run.complete && run.timing.total >= run.timing.policy)
    );
    for strategy in StrategyKind::ALL {
        let path = folder.path().join(format!("{strategy}.jsonl"));
        let alone = sorted(&plan(strategy, 1), SOME, 1000);
        let log = Log::read(&path).unwrap();
        assert!(log.notes.is_empty(), "{:?}", log.notes);
        assert_eq!(log.records.into_values().collect::<Vec<_>>(), alone, "{strategy}");
        let timing = read_timing(&path).unwrap();
        assert!(
            timing.total > 0.0 && timing.prover > 0.0 && timing.workers >= timing.prover,
            "{timing}"
        );
    }
}

/// Such a policy must neither hang a run nor be taken for a hard theorem.
#[test]
fn a_policy_that_stops_answering_is_an_error() {
    let environment: Arc<dyn Environment> = Arc::new(Countdown { broken: None });
    let (plan, stop) = (plan(StrategyKind::Bfs, 1), AtomicBool::new(false));
    let workload = Workload { concurrency: 4, threads: 2 };
    let all = search_one(&environment, &mut Mute, jobs(10), &plan, workload, &stop);
    assert_eq!(all.len(), 10);
    for Finished { record, .. } in all {
        assert_eq!(
            (record.outcome, record.reason.as_deref()),
            (Outcome::Error, Some("the policy stopped without an answer"))
        );
    }
}
