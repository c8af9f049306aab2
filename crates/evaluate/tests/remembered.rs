//! What a prover said is remembered: searches come to the same, and it is asked less.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use catamount_evaluate::Remembered;
use catamount_evaluate::driver::{Finished, Job, Plan, Workload};
use catamount_evaluate::log::{Outcome, Record};
use catamount_search::{
    Checked, Deployment, Environment, Fault, Session, StateId, StrategyKind, Verdict,
};
use catamount_traces::Theorem;
use common::{Countdown, Uniform, search_one};

const LATE: &str = "limit: no answer within 1 s";

/// Counts what it is asked.
#[derive(Default)]
struct Counted {
    opened: AtomicU64,
    tried: Arc<AtomicU64>,
    checked: AtomicU64,
    /// It answers no more.
    gone: AtomicBool,
    /// Nothing is answered in time, and no check ends.
    busy: Arc<AtomicBool>,
}

struct CountedSession {
    session: Box<dyn Session>,
    tried: Arc<AtomicU64>,
    busy: Arc<AtomicBool>,
}

impl Environment for Counted {
    fn open(&self, theorem: &Theorem) -> Result<Box<dyn Session>, Fault> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(Fault("gone".into()));
        }
        self.opened.fetch_add(1, Ordering::Relaxed);
        let session = Countdown { broken: None }.open(theorem)?;
        let (tried, busy) = (Arc::clone(&self.tried), Arc::clone(&self.busy));
        Ok(Box::new(CountedSession { session, tried, busy }))
    }

    fn check(&self, theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault> {
        self.checked.fetch_add(1, Ordering::Relaxed);
        if self.busy.load(Ordering::Relaxed) {
            return Ok(Checked::Refused { reason: LATE.into() });
        }
        Countdown { broken: None }.check(theorem, tactics)
    }

    fn describe(&self) -> String {
        "counted".into()
    }
}

impl Session for CountedSession {
    fn root(&self) -> &str {
        self.session.root()
    }

    fn apply(&mut self, state: StateId, tactic: &str) -> Result<Verdict, Fault> {
        self.tried.fetch_add(1, Ordering::Relaxed);
        if self.momentary() {
            return Ok(Verdict::Rejected { reason: LATE.into() });
        }
        self.session.apply(state, tactic)
    }

    fn momentary(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }
}

fn theorem(number: usize) -> Theorem {
    Theorem {
        name: format!("countdown-{number}"),
        statement: (3 + number % 9).to_string(),
        ..Theorem::default()
    }
}

fn search(environment: &Arc<dyn Environment>, strategy: StrategyKind, seed: u64) -> Vec<Finished> {
    let deployment = Deployment::new(strategy, 40).unwrap();
    let plan = Plan { deployment, seed, time_limit: None };
    let job = |i| Job { theorem: theorem(i), demonstrated: None, time_left: None, tree: true };
    let jobs = (0..40).map(job).collect();
    let mut policy = Uniform { batch: 7, queue: Default::default() };
    let workload = Workload { concurrency: 16, threads: 3 };
    let stop = AtomicBool::new(false);
    let mut all = search_one(environment, &mut policy, jobs, &plan, workload, &stop);
    all.sort_by(|a, b| a.record.theorem.cmp(&b.record.theorem));
    all
}

#[test]
fn searches_come_to_the_same_and_the_prover_is_asked_less() {
    let counted = Arc::new(Counted::default());
    let prover: Arc<dyn Environment> = counted.clone();
    let remembered: Arc<dyn Environment> = Arc::new(Remembered::new(prover));
    let plain: Arc<dyn Environment> = Arc::new(Countdown { broken: None });
    let (mut tried, mut recalled) = (0, 0);
    for seed in [1, 2] {
        for strategy in StrategyKind::ALL {
            let (with, without) =
                (search(&remembered, strategy, seed), search(&plain, strategy, seed));
            for (with, without) in with.iter().zip(&without) {
                assert_eq!(with.record, without.record, "{strategy}");
                assert_eq!(with.tree, without.tree, "{strategy}");
                assert_eq!(without.time.recalled, 0);
                assert!(with.time.recalled <= with.record.distinct, "{strategy}");
                recalled += with.time.recalled;
                tried += with.record.distinct;
            }
        }
    }
    let asked = counted.tried.load(Ordering::Relaxed);
    assert!(recalled > tried / 2, "{recalled} of {tried} were known");
    // States that are made anew are asked for again, and only these.
    assert!(asked >= tried - recalled && asked < tried / 2, "{asked} of {tried} were asked");
}

#[test]
fn what_is_known_needs_no_prover_and_what_is_not_known_is_an_error_without_one() {
    let counted = Arc::new(Counted::default());
    let prover: Arc<dyn Environment> = counted.clone();
    let remembered: Arc<dyn Environment> = Arc::new(Remembered::new(prover));
    let records = |finished: Vec<Finished>| -> Vec<Record> {
        finished.into_iter().map(|finished| finished.record).collect()
    };
    let first = records(search(&remembered, StrategyKind::Mcts, 1));
    let asked = || {
        [&counted.opened, &counted.tried, &counted.checked]
            .map(|count| count.load(Ordering::Relaxed))
    };
    let before = asked();
    counted.gone.store(true, Ordering::Relaxed);
    assert_eq!(records(search(&remembered, StrategyKind::Mcts, 1)), first);
    assert_eq!(asked(), before, "the same search asks nothing");
    let other = records(search(&remembered, StrategyKind::Dfs, 5));
    assert!(other.iter().any(|record| record.outcome == Outcome::Error));
    counted.gone.store(false, Ordering::Relaxed);
    let other = records(search(&remembered, StrategyKind::Dfs, 5));
    assert!(other.iter().all(|record| record.outcome != Outcome::Error), "a fault is forgotten");
}

#[test]
fn a_known_state_is_made_anew_where_something_new_is_tried() {
    let counted = Arc::new(Counted::default());
    let prover: Arc<dyn Environment> = counted.clone();
    let remembered = Remembered::new(prover);
    let open = || remembered.open(&theorem(2)).unwrap();
    let mut first = open();
    assert_eq!(first.root(), "5");
    let left = |verdict| match verdict {
        Ok(Verdict::Open { state, text }) => (state, text),
        other => panic!("{other:?}"),
    };
    let (four, text) = left(first.apply(StateId(0), "sub 1"));
    assert_eq!(text, "4");
    let (two, _) = left(first.apply(four, "sub 2"));
    drop(first);
    let mut second = open();
    assert_eq!(counted.opened.load(Ordering::Relaxed), 1);
    let (four, text) = left(second.apply(StateId(0), "sub 1"));
    assert_eq!(text, "4");
    let (again, text) = left(second.apply(four, "sub 2"));
    assert_eq!((again, text.as_str()), (two, "2"));
    assert_eq!((second.recalled(), counted.tried.load(Ordering::Relaxed)), (2, 2));
    assert_eq!(second.apply(again, "sub 2"), Ok(Verdict::Proved));
    assert_eq!((second.recalled(), counted.tried.load(Ordering::Relaxed)), (2, 5));
    assert!(matches!(second.apply(again, "sub 3"), Ok(Verdict::Rejected { .. })));
    assert_eq!(counted.tried.load(Ordering::Relaxed), 6, "it was made once");
    assert!(second.apply(StateId(99), "sub 1").is_err());
}

#[test]
fn what_a_clock_says_is_not_remembered() {
    let counted = Arc::new(Counted::default());
    let prover: Arc<dyn Environment> = counted.clone();
    let remembered = Remembered::new(prover);
    let (theorem, proof) = (theorem(2), ["sub 3", "sub 2"].map(String::from));
    let late = || Verdict::Rejected { reason: LATE.into() };
    let busy = |busy| counted.busy.store(busy, Ordering::Relaxed);

    busy(true);
    let mut first = remembered.open(&theorem).unwrap();
    assert_eq!(first.apply(StateId(0), "sub 3"), Ok(late()));
    assert!(first.momentary(), "whoever asks this one is told as well");
    let refused = Checked::Refused { reason: LATE.into() };
    assert_eq!(remembered.check(&theorem, &proof), Ok(refused));

    busy(false);
    let mut second = remembered.open(&theorem).unwrap();
    assert!(matches!(second.apply(StateId(0), "sub 3"), Ok(Verdict::Open { .. })));
    assert!(!second.momentary());
    assert_eq!(remembered.check(&theorem, &proof), Ok(Checked::proved(Vec::new())));

    // What the state and the tactic say is known, however busy the prover is.
    busy(true);
    let asked = counted.tried.load(Ordering::Relaxed);
    let mut third = remembered.open(&theorem).unwrap();
    assert!(matches!(third.apply(StateId(0), "sub 3"), Ok(Verdict::Open { .. })));
    assert!(!third.momentary());
    assert_eq!(remembered.check(&theorem, &proof), Ok(Checked::proved(Vec::new())));
    assert_eq!(counted.tried.load(Ordering::Relaxed), asked);
}
