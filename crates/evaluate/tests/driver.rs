//! Results must not depend on anything but the seed; a run must survive being stopped anywhere.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catamount_evaluate::cell::{Cell, CellError, read_log, read_spent};
use catamount_evaluate::driver::{Finished, Job, Plan, search_all};
use catamount_evaluate::log::{Manifest, Outcome, Pool, Record};
use catamount_evaluate::pool::Theorems;
use catamount_evaluate::run::{CellRun, CellTask, Watched, run_cells};
use catamount_search::{Deployment, Environment, StrategyKind};
use catamount_traces::Theorem;
use common::{Countdown, Mute, Uniform};

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
    Plan {
        deployment: Deployment::new(strategy, 40).unwrap(),
        seed,
        time_limit: None,
        concurrency: 16,
        threads: 2,
    }
}

fn run(
    plan: &Plan,
    batch: usize,
    broken: Option<&str>,
    jobs: Vec<Job>,
    done: &mut dyn FnMut(Finished),
    stop: &AtomicBool,
) {
    let environment: Arc<dyn Environment> =
        Arc::new(Countdown { broken: broken.map(String::from) });
    let mut policy = Uniform { batch, queue: Default::default() };
    search_all(&environment, &mut policy, jobs, plan, stop, done);
}

fn sorted(plan: &Plan, batch: usize) -> Vec<Record> {
    let mut records = Vec::new();
    run(
        plan,
        batch,
        None,
        jobs(60),
        &mut |finished| records.push(finished.record),
        &AtomicBool::new(false),
    );
    records.sort_by(|a, b| a.theorem.cmp(&b.theorem));
    records
}

#[test]
fn results_depend_on_the_seed_alone() {
    for strategy in StrategyKind::ALL {
        let reference = sorted(&plan(strategy, 1), 1000);
        let proved = reference.iter().filter(|record| record.outcome == Outcome::Proved).count();
        assert!(
            (10..60).contains(&proved),
            "{strategy}: {proved} of 60, a test that shows nothing"
        );
        let alone = Plan { concurrency: 1, threads: 1, ..plan(strategy, 1) };
        assert_eq!(sorted(&alone, 1), reference, "{strategy}");
        let crowd = Plan { concurrency: 60, threads: 7, ..plan(strategy, 1) };
        assert_eq!(sorted(&crowd, 3), reference, "{strategy}");
        assert_ne!(sorted(&plan(strategy, 2), 1000), reference, "{strategy}");
    }
}

/// Success at a smaller budget can be read off a larger one.
#[test]
fn one_run_tells_every_smaller_budget() {
    for strategy in StrategyKind::ALL {
        let large = sorted(&plan(strategy, 5), 8);
        let small = sorted(
            &Plan { deployment: Deployment::new(strategy, 12).unwrap(), ..plan(strategy, 5) },
            8,
        );
        for (large, small) in large.iter().zip(&small) {
            let read_off = large.outcome == Outcome::Proved && large.expansions <= 12;
            assert_eq!(read_off, small.outcome == Outcome::Proved, "{strategy} {}", large.theorem);
        }
    }
}

fn manifest(seed: u64) -> Manifest {
    Manifest {
        format: 1,
        objective: "none".into(),
        strategy: "bfs".into(),
        settings: serde_json::json!({}),
        budget: 40,
        seed,
        policy: "uniform".into(),
        environment: "countdown".into(),
        pool: Pool {
            file: "-".into(),
            hash: catamount_evaluate::pool::hash(["a"]),
            theorems: 60,
            steps: None,
        },
        version: "0".into(),
        commit: None,
        command: "test".into(),
    }
}

/// Runs a cell until `limit` records are written, as an interruption would leave it.
fn run_cell(path: &Path, limit: usize, broken: Option<&str>) {
    let mut cell = Cell::open(path, &manifest(1), true).unwrap();
    let completed: Vec<String> = cell.completed().into_iter().map(String::from).collect();
    let left = jobs(60).into_iter().filter(|job| !completed.contains(&job.theorem.name)).collect();
    let (stop, mut written) = (AtomicBool::new(false), 0);
    let mut done = |finished| {
        if written < limit {
            cell.append(finished).unwrap();
        }
        written += 1;
        stop.store(written >= limit, Ordering::Relaxed);
    };
    run(&plan(StrategyKind::Bfs, 1), 4, broken, left, &mut done, &stop);
    if written < limit {
        let order: Vec<String> = jobs(60).into_iter().map(|job| job.theorem.name).collect();
        cell.settle(&order).unwrap();
    }
}

#[test]
fn an_interrupted_cell_ends_as_an_undisturbed_one() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, pieces) = (folder.path().join("whole.jsonl"), folder.path().join("pieces.jsonl"));
    run_cell(&whole, 1000, None);
    run_cell(&pieces, 17, None);
    // A crash in the middle of a write.
    let mut text = std::fs::read_to_string(&pieces).unwrap();
    assert_eq!(text.lines().count(), 17);
    text.push_str("{\"theorem\":\"countdo");
    std::fs::write(&pieces, text).unwrap();
    run_cell(&pieces, 20, None);
    run_cell(&pieces, 1000, None);
    assert_eq!(std::fs::read(&pieces).unwrap(), std::fs::read(&whole).unwrap());
}

#[test]
fn errors_are_kept_apart_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cell.jsonl");
    run_cell(&path, 1000, Some("countdown-7"));
    let failed: Vec<Record> =
        read_log(&path).unwrap().into_iter().filter(|r| r.outcome == Outcome::Error).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].reason.as_deref(), Some("the abacus is broken"));
    run_cell(&path, 1000, None);
    assert!(read_log(&path).unwrap().iter().all(|record| record.outcome != Outcome::Error));
}

#[test]
fn a_log_from_another_seed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cell.jsonl");
    Cell::open(&path, &manifest(1), false).unwrap();
    let error = Cell::open(&path, &manifest(2), false).unwrap_err().to_string();
    assert!(error.contains("seed was 1 and is now 2"), "{error}");
}

#[test]
fn damage_in_the_middle_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cell.jsonl");
    std::fs::write(&path, "garbage\n{}\n").unwrap();
    assert!(matches!(read_log(&path), Err(CellError::Damaged { line: 1, .. })));
}

#[test]
fn a_time_limit_ends_a_search_without_a_verdict() {
    let limited =
        Plan { time_limit: Some(std::time::Duration::ZERO), ..plan(StrategyKind::Dfs, 1) };
    let mut records = Vec::new();
    run(
        &limited,
        4,
        None,
        jobs(3),
        &mut |finished| records.push(finished.record),
        &AtomicBool::new(false),
    );
    assert!(records.iter().all(|record| record.outcome == Outcome::Time) && records.len() == 3);
}

/// Runs a cell of every strategy with one policy; stops after `limit` theorems.
fn run_together(folder: &Path, limit: usize) -> Vec<CellRun> {
    let theorems = Theorems { jobs: jobs(60), pool: manifest(1).pool };
    let plans: Vec<Plan> = StrategyKind::ALL
        .iter()
        .map(|strategy| Plan { concurrency: 25, ..plan(*strategy, 1) })
        .collect();
    let manifests: Vec<Manifest> = StrategyKind::ALL
        .iter()
        .map(|s| Manifest { strategy: s.to_string(), ..manifest(1) })
        .collect();
    let logs: Vec<_> =
        StrategyKind::ALL.iter().map(|strategy| folder.join(format!("{strategy}.jsonl"))).collect();
    let task = |i: usize| CellTask {
        log: &logs[i],
        manifest: &manifests[i],
        theorems: &theorems,
        plan: &plans[i],
    };
    let tasks: Vec<CellTask<'_>> = (0..plans.len()).map(task).collect();
    let environment: Arc<dyn Environment> = Arc::new(Countdown { broken: None });
    let mut policy = Uniform { batch: 7, queue: Default::default() };
    let (stop, mut seen, mut runs) = (AtomicBool::new(false), 0, Vec::new());
    let mut watch = |_: usize, watched: Watched<'_>| {
        if let Watched::Finished(_) = watched {
            seen += 1;
            stop.store(seen >= limit, Ordering::Relaxed);
        }
    };
    run_cells(&tasks, &environment, &mut policy, &stop, &mut watch, &mut |_, run| runs.push(run))
        .unwrap();
    runs
}

#[test]
fn cells_that_share_a_policy_are_what_they_are_alone() {
    let folder = tempfile::tempdir().unwrap();
    let cut = run_together(folder.path(), 150);
    assert!(
        cut.len() == 6 && cut.iter().any(|run| run.complete) && cut.iter().any(|run| !run.complete)
    );
    let ended = run_together(folder.path(), usize::MAX);
    assert!(
        ended.len() == 6
            && ended.iter().all(|run| run.complete && run.spent.total >= run.spent.policy)
    );
    for strategy in StrategyKind::ALL {
        let log = folder.path().join(format!("{strategy}.jsonl"));
        let mut alone = sorted(&plan(strategy, 1), 1000);
        let order: Vec<String> = jobs(60).into_iter().map(|job| job.theorem.name).collect();
        alone.sort_by_key(|record| order.iter().position(|name| *name == record.theorem));
        assert_eq!(read_log(&log).unwrap(), alone, "{strategy}");
        let spent = read_spent(&log).unwrap();
        assert!(
            spent.total > 0.0 && spent.prover > 0.0 && spent.workers >= spent.prover,
            "{spent}"
        );
    }
}

/// Such a policy must neither hang a run nor be taken for a hard theorem.
#[test]
fn a_policy_that_stops_answering_is_an_error() {
    let environment: Arc<dyn Environment> = Arc::new(Countdown { broken: None });
    let mut outcomes = Vec::new();
    let mut done =
        |finished: Finished| outcomes.push((finished.record.outcome, finished.record.reason));
    let (plan, stop) =
        (Plan { concurrency: 4, ..plan(StrategyKind::Bfs, 1) }, AtomicBool::new(false));
    search_all(&environment, &mut Mute, jobs(10), &plan, &stop, &mut done);
    assert_eq!(outcomes.len(), 10);
    for (outcome, reason) in outcomes {
        assert_eq!(
            (outcome, reason.as_deref()),
            (Outcome::Error, Some("the policy stopped without an answer"))
        );
    }
}
