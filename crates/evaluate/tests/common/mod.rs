//! A prover and a policy small enough to know everything about: prove that a number can be counted
//! down to zero.

#![allow(dead_code, reason = "not every program that shares this module needs all of it")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use catamount_evaluate::driver::{CellEvent, Finished, Job, Plan, Searches, Workload, search};
use catamount_evaluate::log::Provenance;
use catamount_search::{
    Checked, Environment, Fault, Policy, Request, RequestId, Sample, Session, StateId, Verdict,
};
use catamount_traces::Theorem;

/// Theorem `countdown-N`: subtract 1, 2 or 3 until exactly nothing is left. Odd leftovers above one
/// reject `sub 2`.
pub struct Countdown {
    /// Opening this theorem fails.
    pub broken: Option<String>,
}

struct Counting {
    root: String,
    states: Vec<i64>,
}

fn step(from: i64, tactic: &str) -> Option<i64> {
    let amount: i64 = tactic.strip_prefix("sub ")?.parse().ok()?;
    let allowed = (1..=3).contains(&amount) && !(amount == 2 && from % 2 == 1);
    (allowed && amount <= from).then_some(from - amount)
}

impl Session for Counting {
    fn root(&self) -> &str {
        &self.root
    }

    fn apply(&mut self, state: StateId, tactic: &str) -> Result<Verdict, Fault> {
        Ok(match step(self.states[state.0 as usize], tactic) {
            Some(0) => Verdict::Proved,
            Some(left) => {
                self.states.push(left);
                Verdict::Open {
                    state: StateId(self.states.len() as u32 - 1),
                    text: left.to_string(),
                }
            }
            None => Verdict::Rejected { reason: format!("`{tactic}` does not apply") },
        })
    }
}

impl Environment for Countdown {
    fn open(&self, theorem: &Theorem) -> Result<Box<dyn Session>, Fault> {
        if self.broken.as_deref() == Some(&theorem.name) {
            return Err(Fault("the abacus is broken".into()));
        }
        let start: i64 = theorem.statement.parse().map_err(|_| Fault("no number".into()))?;
        Ok(Box::new(Counting { root: start.to_string(), states: vec![start] }))
    }

    fn check(&self, theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault> {
        let start: i64 = theorem.statement.parse().map_err(|_| Fault("no number".into()))?;
        let end = tactics.iter().try_fold(start, |left, tactic| step(left, tactic));
        Ok(if end == Some(0) {
            Checked::proved(Vec::new())
        } else {
            Checked::Refused { reason: "not zero".into() }
        })
    }

    fn describe(&self) -> String {
        "countdown".into()
    }
}

/// Samples `sub 1` to `sub 6` uniformly, answering at most `batch` questions a poll, the newest
/// first.
pub struct Uniform {
    pub batch: usize,
    pub queue: VecDeque<Request>,
}

impl Policy for Uniform {
    fn submit(&mut self, request: Request) {
        self.queue.push_front(request);
    }

    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
        let count = self.batch.min(self.queue.len());
        let answer = |request: Request| {
            let sample = |i: usize| {
                let amount = 1 + (request.stream.uniform(i as u64) * 6.0) as u32;
                Sample { tactic: format!("sub {amount}"), log_p: -(6f64.ln()), tokens: 2 }
            };
            (request.id, Ok((0..request.samples).map(sample).collect()))
        };
        self.queue.drain(..count).map(answer).collect()
    }

    fn describe(&self) -> String {
        "uniform".into()
    }
}

/// Takes questions and never answers them.
pub struct Mute;

impl Policy for Mute {
    fn submit(&mut self, _: Request) {}

    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
        Vec::new()
    }

    fn describe(&self) -> String {
        "mute".into()
    }
}

/// Searches one cell.
pub fn search_one(
    environment: &Arc<dyn Environment>,
    policy: &mut dyn Policy,
    jobs: Vec<Job>,
    plan: &Plan,
    workload: Workload,
    stop: &AtomicBool,
) -> Vec<Finished> {
    let mut all = Vec::new();
    let mut watch = |event| {
        if let CellEvent::Finished(_, finished) = event {
            all.push(*finished);
        }
    };
    let cells = vec![Searches { plan: plan.clone(), jobs }];
    search(environment, policy, cells, workload, stop, &mut watch);
    all
}

pub fn provenance() -> Provenance {
    Provenance { version: "0".into(), commit: None, command: "test".into() }
}
