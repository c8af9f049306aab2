//! Distinct samples through the whole driver: no tactic twice at a node, and the same log whatever
//! the threads, the batches and the interruptions.

mod common;

use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catamount_evaluate::driver::{Finished, Job, Plan, Workload};
use catamount_evaluate::log::Outcome;
use catamount_evaluate::{CellTask, Evaluation, Observer, Theorems};
use catamount_search::{
    Deployment, Environment, Fault, Policy, Request, RequestId, Sample, StrategyKind,
};
use catamount_traces::{Theorem, Trace};
use common::{Countdown, Uniform, provenance, search_one};

/// Samples `sub 1` to `sub 6` without replacement, the larger the less likely; answers at most
/// `batch` questions a poll, the newest first.
struct Exact {
    batch: usize,
    queue: VecDeque<Request>,
}

impl Exact {
    fn answer(request: &Request) -> Vec<Sample> {
        let urn = request.urn.as_ref().expect("a question of a search of distinct samples");
        let share = |n: i32| 0.5f64.powi(n) / (1.0 - 0.5f64.powi(6));
        let mut samples = Vec::new();
        while samples.len() < request.samples {
            let left: Vec<i32> = (1..=6).filter(|n| !urn.has_taken(&format!("sub {n}"))).collect();
            let total: f64 = left.iter().map(|n| share(*n)).sum();
            let mut aim = request.stream.child(urn.next_draw()).uniform(0) * total;
            let held = left.iter().find(|n| {
                aim -= share(**n);
                aim < 0.0
            });
            let Some(n) = held.or(left.last()) else { break };
            let (tactic, log_p) = (format!("sub {n}"), share(*n).ln());
            assert!(urn.take(&tactic, share(*n)));
            urn.set_left((total - share(*n)) * f64::from(u8::from(left.len() > 1)));
            samples.push(Sample { tactic, log_p, tokens: 2 });
        }
        samples
    }
}

impl Policy for Exact {
    fn submit(&mut self, request: Request) {
        self.queue.push_front(request);
    }

    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
        let count = self.batch.min(self.queue.len());
        self.queue.drain(..count).map(|request| (request.id, Ok(Self::answer(&request)))).collect()
    }

    fn describe(&self) -> String {
        "exact".into()
    }

    fn draws_without_replacement(&self) -> bool {
        true
    }
}

fn jobs() -> Vec<Job> {
    let theorem = |i: usize| Theorem {
        name: format!("countdown-{i}"),
        statement: (3 + i % 14).to_string(),
        ..Theorem::default()
    };
    (0..60)
        .map(|i| Job { theorem: theorem(i), demonstrated: None, time_left: None, tree: true })
        .collect()
}

fn plan(strategy: StrategyKind, budget: u64) -> Plan {
    let deployment = Deployment::new(strategy, budget).unwrap().with("distinct", true).unwrap();
    Plan { deployment, seed: 1, time_limit: None }
}

const SOME: Workload = Workload { concurrency: 16, threads: 2 };

fn run(plan: &Plan, workload: Workload, policy: &mut dyn Policy) -> Vec<Finished> {
    let environment: Arc<dyn Environment> = Arc::new(Countdown { broken: None });
    let stop = AtomicBool::new(false);
    let mut all = search_one(&environment, policy, jobs(), plan, workload, &stop);
    all.sort_by(|a, b| a.record.theorem.cmp(&b.record.theorem));
    all
}

fn exact(plan: &Plan, batch: usize) -> Vec<Finished> {
    run(plan, SOME, &mut Exact { batch, queue: VecDeque::new() })
}

/// What goes into the log and into the trees.
fn lines(all: &[Finished]) -> String {
    let line = |finished: &Finished| {
        serde_json::to_string(&(&finished.record, &finished.tree)).unwrap() + "\n"
    };
    all.iter().map(line).collect()
}

#[test]
fn no_tactic_is_sampled_twice_at_a_node() {
    for strategy in StrategyKind::ALL {
        let all = exact(&plan(strategy, 100), 1000);
        let proved = all.iter().filter(|f| f.record.outcome == Outcome::Proved).count();
        assert!((20..60).contains(&proved), "{strategy}: {proved} of 60 shows nothing");
        let (mut expansions, mut drawn_out) = (0, 0);
        for Finished { record, tree, .. } in &all {
            let tree = tree.as_ref().unwrap();
            let mut seen = HashSet::new();
            for expansion in &tree.expansions {
                let tactic = (expansion.parent, expansion.tactic.as_str());
                assert!(seen.insert(tactic), "{strategy} {}: {tactic:?} twice", record.theorem);
            }
            assert_eq!((record.duplicates, record.redrawn), (0, 0));
            assert_eq!(record.expansions, tree.expansions.len() as u64);
            expansions += record.expansions;
            drawn_out += record.drawn_out;
        }
        assert!(drawn_out > 0, "{strategy}: {expansions} expansions, and no node ran dry");
    }
}

#[test]
fn threads_and_batches_change_nothing() {
    for strategy in StrategyKind::ALL {
        let reference = lines(&exact(&plan(strategy, 60), 1000));
        for (concurrency, threads, batch) in [(1, 1, 1), (60, 7, 3)] {
            let workload = Workload { concurrency, threads };
            let mut policy = Exact { batch, queue: VecDeque::new() };
            let found = run(&plan(strategy, 60), workload, &mut policy);
            assert_eq!(lines(&found), reference, "{strategy}");
        }
    }
}

#[test]
fn one_run_tells_every_smaller_budget() {
    for strategy in StrategyKind::ALL {
        let (large, small) = (exact(&plan(strategy, 60), 8), exact(&plan(strategy, 17), 8));
        for (large, small) in large.iter().zip(&small) {
            let proved = |f: &Finished| f.record.outcome == Outcome::Proved;
            let read_off = proved(large) && large.record.expansions <= 17;
            assert_eq!(read_off, proved(small), "{strategy} {}", large.record.theorem);
        }
    }
}

/// Stops an evaluation after so many theorems.
struct Interruption<'a>(usize, &'a AtomicBool);

impl Observer for Interruption<'_> {
    fn finished(&mut self, _: usize, _: &Finished) {
        self.0 = self.0.saturating_sub(1);
        self.1.store(self.0 == 0, Ordering::Relaxed);
    }
}

/// Runs a cell until `limit` theorems are done, as an interruption would leave it.
fn run_cell(path: &Path, strategy: StrategyKind, limit: usize) {
    let traces = jobs().into_iter().map(|job| Trace { theorem: job.theorem, steps: vec![] });
    let task = CellTask {
        log: path.to_path_buf(),
        objective: "none".into(),
        deployment: plan(strategy, 60).deployment,
        theorems: Theorems::select(traces.collect(), "-", None, None).unwrap(),
    };
    let environment: Arc<dyn Environment> = Arc::new(Countdown { broken: None });
    let stop = AtomicBool::new(false);
    let mut evaluation = Evaluation {
        environment: &environment,
        policy: &mut Exact { batch: 4, queue: VecDeque::new() },
        seed: 1,
        time_limit: None,
        theorem_time_limit: None,
        workload: SOME,
        provenance: provenance(),
        stop: &stop,
    };
    evaluation.run(&[task], &mut Interruption(limit, &stop)).unwrap();
}

#[test]
fn an_interrupted_cell_ends_as_an_undisturbed_one() {
    for strategy in StrategyKind::ALL {
        let folder = tempfile::tempdir().unwrap();
        let [whole, pieces] = ["whole.jsonl", "pieces.jsonl"].map(|name| folder.path().join(name));
        run_cell(&whole, strategy, 1000);
        for limit in [13, 21, 1000] {
            run_cell(&pieces, strategy, limit);
        }
        assert_eq!(std::fs::read(&pieces).unwrap(), std::fs::read(&whole).unwrap(), "{strategy}");
    }
}

/// A policy that knows nothing of distinct samples is asked again, and what it repeats all the same
/// is counted.
#[test]
fn repeated_tactics_are_drawn_again() {
    for strategy in StrategyKind::ALL {
        let uniform = || Uniform { batch: 5, queue: Default::default() };
        let all = run(&plan(strategy, 60), SOME, &mut uniform());
        let sum = |count: fn(&Finished) -> u64| all.iter().map(count).sum::<u64>();
        assert!(sum(|f| f.record.redrawn) > 100, "{strategy}");
        for Finished { record, tree, .. } in &all {
            let mut seen = HashSet::new();
            let expansions = &tree.as_ref().unwrap().expansions;
            let repeated = expansions.iter().filter(|e| !seen.insert((e.parent, &e.tactic)));
            assert_eq!(repeated.count() as u64, record.duplicates, "{strategy}");
            assert_eq!(record.drawn_out, 0, "{strategy}");
        }
        assert_eq!(
            lines(&run(&plan(strategy, 60), SOME, &mut uniform())),
            lines(&all),
            "{strategy}"
        );
    }
}
