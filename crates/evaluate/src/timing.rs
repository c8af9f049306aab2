//! Where a run's time went. Kept beside the log, never in it: clocks differ from run to run.

use std::fmt;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use catamount_search::Spent;
use serde::{Deserialize, Serialize};

/// Where the time of a run went, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// At least one search waited for the policy.
    pub policy: f64,
    /// No search did: the policy waited for the prover.
    pub waiting: f64,
    /// Of `policy`, time in which at least one search was with the prover's threads too.
    pub both: f64,
    /// All of the above, from the first theorem opened to the last one done.
    pub total: f64,
    /// Summed over threads: the prover worked.
    pub prover: f64,
    /// Summed over threads: the prover worked, or the search did between two questions.
    pub workers: f64,
    /// Threads that talk to the prover.
    pub threads: usize,
    /// Where the time of the prover's processes went, since the cell before it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

impl Timing {
    /// Seconds as a share of the run, in percent.
    pub fn share(&self, seconds: f64) -> f64 {
        100.0 * seconds / self.total.max(1e-9)
    }

    /// How busy the threads that talk to the prover were, in percent.
    pub fn workers_busy(&self) -> f64 {
        self.share(self.workers) / self.threads.max(1) as f64
    }
}

impl AddAssign for Timing {
    fn add_assign(&mut self, other: Timing) {
        self.policy += other.policy;
        self.waiting += other.waiting;
        self.both += other.both;
        self.total += other.total;
        self.prover += other.prover;
        self.workers += other.workers;
        self.threads = self.threads.max(other.threads);
        if let Some(spent) = other.spent {
            *self.spent.get_or_insert_default() += spent;
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} s: policy asked {:.0} % of the time ({:.0} % while the prover worked too), \
             prover alone {:.0} %; \
             {} prover threads {:.0} % busy",
            self.total,
            self.share(self.policy),
            self.share(self.both),
            self.share(self.waiting),
            self.threads,
            self.workers_busy(),
        )?;
        match &self.spent {
            Some(spent) => write!(f, "; {spent}"),
            None => Ok(()),
        }
    }
}

/// Follows the searches of one cell between the policy and the prover.
pub(crate) struct Clock {
    asking: usize,
    working: usize,
    since: Instant,
    timing: Timing,
}

impl Clock {
    pub fn new(now: Instant, threads: usize) -> Self {
        Clock { asking: 0, working: 0, since: now, timing: Timing { threads, ..Timing::default() } }
    }

    fn advance(&mut self, now: Instant) {
        let seconds = now.saturating_duration_since(self.since).as_secs_f64();
        self.since = now;
        match (self.asking > 0, self.working > 0) {
            (false, false) => return,
            (true, working) => {
                self.timing.policy += seconds;
                self.timing.both += if working { seconds } else { 0.0 };
            }
            (false, true) => self.timing.waiting += seconds,
        }
        self.timing.total += seconds;
    }

    /// A search goes to the prover's threads.
    pub fn prover_takes(&mut self, now: Instant) {
        self.advance(now);
        self.working += 1;
    }

    /// A search comes from the prover's threads, which took this long, the prover that.
    pub fn prover_returns(&mut self, now: Instant, busy: Duration, prover: Duration) {
        self.advance(now);
        self.working -= 1;
        self.timing.workers += busy.as_secs_f64();
        self.timing.prover += prover.as_secs_f64();
    }

    /// A search goes to the policy.
    pub fn policy_takes(&mut self, now: Instant) {
        self.advance(now);
        self.asking += 1;
    }

    /// A search comes from the policy.
    pub fn policy_returns(&mut self, now: Instant) {
        self.advance(now);
        self.asking -= 1;
    }

    pub fn read(&mut self, now: Instant) -> Timing {
        self.advance(now);
        self.timing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_is_counted_once() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut clock = Clock::new(at(0), 2);
        clock.prover_takes(at(5));
        clock.prover_takes(at(5));
        clock.prover_returns(at(8), Duration::from_secs(3), Duration::from_secs(2));
        clock.policy_takes(at(8));
        clock.prover_returns(at(12), Duration::from_secs(7), Duration::from_secs(6));
        clock.policy_returns(at(20));
        let timing = clock.read(at(30));
        let expected = Timing {
            policy: 12.0,
            waiting: 3.0,
            both: 4.0,
            total: 15.0,
            prover: 8.0,
            workers: 10.0,
            threads: 2,
            spent: None,
        };
        assert_eq!(timing, expected);
        assert!((timing.workers_busy() - 100.0 * 10.0 / 30.0).abs() < 1e-9);
    }
}
