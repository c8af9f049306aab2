//! J at every budget at once: the surrogate's distribution of the time to proof along the trace.
//!
//! One pass of the recurrence at the largest budget answers for all smaller ones, because nothing a
//! strategy does depends on the budget that is left.

use crate::backtrack::{self, Scores};
use crate::error::ObjectiveError;
use crate::number::{Number, StepOdds};
use crate::objective::{Objective, Surrogate, narrow, uniform_allocation, wide};
use crate::{geometric, retry, widening};

impl Surrogate {
    /// J at the budgets 0, 1, ..., N, prior included. Never falls, and is 0 where a budget cannot
    /// succeed. A trace of probability below the range of `f64` may have 0 throughout. `ce` has no
    /// budget: its one attempt succeeds or fails at L expansions.
    pub fn curve(&self, log_p: &[f64]) -> Result<Vec<f64>, ObjectiveError> {
        self.check(log_p)?;
        let (length, budget) = (log_p.len(), self.budget());
        let objective = self.objective();
        let q = self.prior().absorption();
        let least = objective.minimum_budget(length).max(u64::from(objective == Objective::Ce));
        let effective = |n: u64| self.prior().effective_budget(length, n);
        // The closed forms have a value of their own for every budget; the recurrences are run
        // once, and read off at the whole number below the effective budget.
        let closed = |n: u64| -> Option<f64> {
            let log_success = match objective {
                Objective::Ce if n < length as u64 => return Some(0.0),
                Objective::Ce => log_p.iter().sum(),
                Objective::Ua => {
                    uniform_allocation(log_p, effective(n) / length as f64, q).log_success
                }
                Objective::Pass => geometric::attempts(log_p.iter().sum(), n as f64, q).log_success,
                _ => return None,
            };
            Some(log_success.exp())
        };
        let by_recurrence = if closed(budget.max(1)).is_none() && budget >= least {
            let most = effective(budget).floor() as usize;
            match narrow(log_p, q) {
                Some(steps) => successes(objective, &steps, log_p, most, q),
                None => successes(objective, &wide(log_p, q), log_p, most, q),
            }
        } else {
            Vec::new()
        };
        Ok((0..=budget)
            .map(|n| match closed(n.max(1)) {
                _ if n < least => 0.0,
                Some(success) => success,
                None => by_recurrence[effective(n).floor() as usize],
            })
            .collect())
    }
}

/// J at every whole budget up to `most`.
fn successes<S: Number>(
    objective: Objective,
    steps: &[StepOdds<S>],
    log_p: &[f64],
    most: usize,
    q: f64,
) -> Vec<f64> {
    let number = |value: S| value.to_f64().clamp(0.0, 1.0);
    let arrivals = match objective {
        Objective::Rdfs => {
            let values = backtrack::successes(steps, &Scores::Uniform, most, q);
            return values.into_iter().map(number).collect();
        }
        Objective::Vdfs => {
            let values = backtrack::successes(steps, &Scores::Levin(log_p), most, q);
            return values.into_iter().map(number).collect();
        }
        Objective::Mcts => widening::arrivals(steps, most, q),
        _ => retry::arrivals(steps, most, q, |_, _, _| ()),
    };
    let sums = arrivals.into_iter().scan(S::ZERO, |sum, arrival| {
        *sum = *sum + arrival;
        Some(*sum)
    });
    sums.map(number).collect()
}
