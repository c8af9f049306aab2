//! The surrogate's success on every trace as a function of budget and absorption, tabulated once: a
//! fit then asks for it thousands of times.

use catamount_objective::{Objective, ObjectiveError, Prior, Surrogate};
use rayon::prelude::*;

use crate::error::CalibrationError;
use crate::observation::Observation;

/// Absorptions that are tabulated; between them J is taken to be straight.
pub(crate) const ABSORPTIONS: [f64; 11] =
    [0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.95];

/// Budgets up to here are tabulated one by one, later ones in steps of 4 %.
const DENSE: u64 = 64;
const STRIDE: f64 = 1.04;

/// How much more than the search's budget the surrogate's may be, where tactics are not repeated.
const HEADROOM: u64 = 64;
/// Widening costs the square of its budget: its tables end here, or at the search's own budget.
const WIDEST: u64 = 2048;

/// The largest budget that is tabulated.
fn most(objective: Objective, budget: u64) -> u64 {
    let room = budget.saturating_mul(HEADROOM);
    if objective == Objective::Mcts { room.min(WIDEST).max(budget) } else { room }
}

/// J of every trace on a grid.
pub(crate) struct Curves {
    /// Tabulated budgets.
    budgets: Vec<u64>,
    /// One trace after another: for each absorption, J at every tabulated budget.
    tables: Vec<Vec<f64>>,
}

impl Curves {
    /// Tabulates `objective` up to what `budget` expansions can be worth.
    pub(crate) fn new(
        objective: Objective,
        budget: u64,
        observations: &[Observation],
    ) -> Result<Self, CalibrationError> {
        let most = most(objective, budget);
        let mut budgets: Vec<u64> = (0..=DENSE.min(most)).collect();
        while let Some(&last) = budgets.last()
            && last < most
        {
            let next = ((last as f64 * STRIDE) as u64 + 1).min(most);
            // The deployed budget has a place of its own: beyond it some rows know nothing.
            budgets.push(if last < budget { next.min(budget) } else { next });
        }
        let table = |observation: &Observation| {
            let mut table = Vec::with_capacity(ABSORPTIONS.len() * budgets.len());
            for &q in &ABSORPTIONS {
                // Dearer misses can only shorten the budget.
                let longest = if q > 0.0 { budget } else { most };
                let curve = curve(objective, longest, q, &observation.log_p)?;
                table.extend(budgets.iter().map(|&n| curve[(n.min(longest)) as usize]));
            }
            Ok(table)
        };
        let tables = observations.par_iter().map(|observation| {
            table(observation).map_err(|source: ObjectiveError| CalibrationError::Trace {
                theorem: observation.theorem.clone(),
                source,
            })
        });
        Ok(Curves { tables: tables.collect::<Result<_, _>>()?, budgets })
    }

    /// The largest budget of the surrogate.
    pub(crate) fn most(&self) -> u64 {
        self.budgets.last().copied().unwrap_or(0)
    }

    /// J of a trace at a real budget and any absorption below the last tabulated one.
    pub(crate) fn at(&self, trace: usize, budget: f64, absorption: f64) -> f64 {
        let table = &self.tables[trace];
        let row = |k: usize| {
            let row = &table[k * self.budgets.len()..(k + 1) * self.budgets.len()];
            self.between(row, budget)
        };
        if absorption <= 0.0 {
            return row(0);
        }
        let above = ABSORPTIONS.partition_point(|&q| q < absorption).min(ABSORPTIONS.len() - 1);
        let (low, high) = (ABSORPTIONS[above - 1], ABSORPTIONS[above]);
        let share = ((absorption - low) / (high - low)).min(1.0);
        row(above - 1) * (1.0 - share) + row(above) * share
    }

    fn between(&self, row: &[f64], budget: f64) -> f64 {
        let last = row.len() - 1;
        if budget >= self.budgets[last] as f64 {
            return row[last];
        }
        let below = if budget < DENSE as f64 {
            budget.max(0.0) as usize
        } else {
            self.budgets.partition_point(|&n| n as f64 <= budget) - 1
        };
        let (low, high) = (self.budgets[below] as f64, self.budgets[below + 1] as f64);
        row[below] + (row[below + 1] - row[below]) * (budget.max(0.0) - low) / (high - low)
    }
}

/// J at every budget up to the longest.
fn curve(
    objective: Objective,
    longest: u64,
    absorption: f64,
    log_p: &[f64],
) -> Result<Vec<f64>, ObjectiveError> {
    let prior = Prior::new(1.0, absorption)?;
    Surrogate::new(objective, longest).with_prior(prior)?.curve(log_p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::End;

    #[test]
    fn the_table_is_the_surrogate() {
        let log_p = vec![-0.4, -3.0, -1.1];
        let observation =
            Observation { theorem: "t".into(), log_p: log_p.clone(), end: End::Along(3) };
        for objective in Objective::ALL.into_iter().filter(|o| *o != Objective::Ce) {
            let curves = Curves::new(objective, 300, std::slice::from_ref(&observation)).unwrap();
            for (k, &q) in ABSORPTIONS.iter().enumerate() {
                let exact = curve(objective, 300, q, &log_p).unwrap();
                for n in [0, 1, 3, 17, 64, 65, 100, 299, 300] {
                    let got = curves.at(0, n as f64, q);
                    // Beyond the dense part J is interpolated, and widening comes in steps.
                    let tolerance = if n as u64 > DENSE { 1e-2 } else { 1e-12 };
                    assert!((got - exact[n]).abs() < tolerance, "{objective} N={n} q={q}: {got}");
                }
                // Between two tabulated absorptions J lies between theirs.
                if k > 0 {
                    let middle = (q + ABSORPTIONS[k - 1]) / 2.0;
                    let found = curves.at(0, 200.0, middle);
                    let ends = [curves.at(0, 200.0, q), curves.at(0, 200.0, ABSORPTIONS[k - 1])];
                    assert!(found <= ends[1] && found >= ends[0]);
                    let exact = curve(objective, 200, middle, &log_p).unwrap()[200];
                    assert!((found - exact).abs() < 0.03, "{objective} q={middle}");
                }
            }
        }
    }
}
