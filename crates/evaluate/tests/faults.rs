//! A policy that hangs or lies costs its own theorems, in time, and nothing is called unproved for
//! it.

mod common;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use catamount_evaluate::driver::{Job, Plan, Workload};
use catamount_evaluate::log::{Outcome, Record};
use catamount_search::{
    Checked, Deployment, Environment, Fault, Policy, Request, RequestId, Sample, Session,
    StrategyKind,
};
use catamount_traces::Theorem;
use common::{Countdown, Uniform, search_one};

fn search(policy: &mut dyn Policy, time_limit: Option<Duration>, stop: &AtomicBool) -> Vec<Record> {
    search_in(Countdown { broken: None }, policy, time_limit, stop)
}

fn search_in(
    prover: impl Environment + 'static,
    policy: &mut dyn Policy,
    time_limit: Option<Duration>,
    stop: &AtomicBool,
) -> Vec<Record> {
    let theorem = |i: usize| Theorem {
        name: format!("countdown-{i}"),
        statement: "5".into(),
        ..Theorem::default()
    };
    let jobs = (0..6)
        .map(|i| Job { theorem: theorem(i), demonstrated: None, time_left: None, tree: false })
        .collect();
    let plan =
        Plan { deployment: Deployment::new(StrategyKind::Bfs, 40).unwrap(), seed: 1, time_limit };
    let environment: Arc<dyn Environment> = Arc::new(prover);
    let workload = Workload { concurrency: 4, threads: 2 };
    let all = search_one(&environment, policy, jobs, &plan, workload, stop);
    all.into_iter().map(|finished| finished.record).collect()
}

/// Answers nothing until it is interrupted: a server that has hung.
#[derive(Default)]
struct Hung {
    open: HashSet<RequestId>,
    flag: Arc<AtomicBool>,
}

impl Policy for Hung {
    fn submit(&mut self, request: Request) {
        self.open.insert(request.id);
    }

    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
        while !self.flag.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.open.drain().map(|id| (id, Err(Fault("interrupted".into())))).collect()
    }

    fn interrupt(&self) -> Option<Arc<AtomicBool>> {
        Some(Arc::clone(&self.flag))
    }

    fn describe(&self) -> String {
        "hung".into()
    }
}

#[test]
fn the_time_limit_holds_while_the_policy_hangs() {
    let began = Instant::now();
    let limit = Some(Duration::from_millis(300));
    let records = search(&mut Hung::default(), limit, &AtomicBool::new(false));
    assert_eq!(records.len(), 6);
    assert!(records.iter().all(|record| record.outcome == Outcome::Time));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_stop_is_heard_while_the_policy_hangs() {
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(search(&mut Hung::default(), None, &stop), []);
    });
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// Gives one log-probability to everything.
struct Claims(f64, Vec<Request>);

impl Policy for Claims {
    fn submit(&mut self, request: Request) {
        self.1.push(request);
    }

    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
        let sample = || Sample { tactic: "sub 9".into(), log_p: self.0, tokens: 1 };
        let answer =
            |request: &Request| (request.id, Ok((0..request.samples).map(|_| sample()).collect()));
        let answers = self.1.iter().map(answer).collect();
        self.1.clear();
        answers
    }

    fn describe(&self) -> String {
        "claims".into()
    }
}

#[test]
fn what_is_no_log_probability_is_an_error_and_no_unproved_theorem() {
    for log_p in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, 0.5] {
        let records = search(&mut Claims(log_p, Vec::new()), None, &AtomicBool::new(false));
        assert_eq!(records.len(), 6);
        for record in records {
            assert_eq!(record.outcome, Outcome::Error, "{log_p}");
            assert!(record.reason.unwrap().contains("not a log-probability"));
        }
    }
}

/// A prover that takes everything that comes out even for a proof, and a check that does not.
struct Doubted(Countdown);

impl Environment for Doubted {
    fn open(&self, theorem: &Theorem) -> Result<Box<dyn Session>, Fault> {
        self.0.open(theorem)
    }

    fn check(&self, _: &Theorem, _: &[String]) -> Result<Checked, Fault> {
        Ok(Checked::Refused { reason: "no".into() })
    }

    fn describe(&self) -> String {
        "doubted".into()
    }
}

#[test]
fn claims_that_the_check_refuses_are_counted() {
    let uniform = || Uniform { batch: 8, queue: Default::default() };
    let stop = AtomicBool::new(false);
    let doubted = search_in(Doubted(Countdown { broken: None }), &mut uniform(), None, &stop);
    for record in &doubted {
        assert_eq!(record.outcome, Outcome::Budget);
        assert!((1..=record.rejected).contains(&record.refused), "{record:?}");
    }
    let believed = search(&mut uniform(), None, &stop);
    assert!(believed.iter().all(|record| record.refused == 0));
    let line = serde_json::to_string(&believed[0]).unwrap();
    assert!(!line.contains("refused"), "old logs have none: {line}");
}
