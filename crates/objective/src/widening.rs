//! `mcts`: progressive widening on the trace. A node visited n times may have sampled
//! ceil(sqrt(n+1)) tactics (eq:mcts_selector).
//!
//! Give every node its own clock, which ticks once for each expansion at or below it. Until the
//! demonstrated tactic is found, at tick T say, every tick samples at the node. From then on it
//! widens when its clock reads j^2 with j >= T, whatever comes of the sample, and every other tick
//! is its child's. So the child's clock is a function of the parent's clock and T:
//!
//! g_k(n) = sum_T p c^(T-1) u^W g_{k+1}(child(n, T)),
//!
//! where g_k(n) is the probability that the proof is completed exactly at reading n of x_k's clock,
//! W counts the widening samples spent by then, and u = 1 - q (1 - p) is the chance that one of
//! them is not absorbed. O(L N^2) time, O(L N) memory.

use crate::Weighed;
use crate::number::{Number, StepOdds};

/// The smallest budget with which a trace of this length can be found: every tactic at once, and
/// the widening it pays for.
pub fn minimum_budget(length: usize) -> u64 {
    let mut reading = 1;
    // Widening samples so far, at readings 1, 4, 9, ...: a longer trace never has fewer, so that
    // the count goes on from one state to the next.
    let mut widened = 1;
    for _ in 1..length {
        // The parent's clock when its child's clock, started after one sample, reads `reading`.
        let mut parent = 1 + reading + widened;
        while (widened + 1) * (widened + 1) < parent {
            widened += 1;
            parent = 1 + reading + widened;
        }
        reading = parent;
    }
    reading
}

/// A run of consecutive ticks of the child: readings `child..child + len` of its clock are readings
/// `parent..` of the parent's, after `widened` widening samples. (A clock reads 1 after its first
/// tick.)
struct Run {
    parent: usize,
    child: usize,
    len: usize,
    widened: usize,
}

/// The child's runs up to reading `last` of the parent's clock, the child having been found at
/// reading `found`.
fn runs(found: usize, last: usize) -> impl Iterator<Item = Run> {
    let (mut reading, mut child, mut square, mut widened) = (found, 1, found, 0);
    std::iter::from_fn(move || {
        while reading < last {
            let until = (square * square).min(last);
            if until > reading {
                let run = Run { parent: reading + 1, child, len: until - reading, widened };
                child += run.len;
                reading = until;
                return Some(run);
            }
            reading += 1;
            square += 1;
            widened += 1;
        }
        None
    })
}

/// 1, x, x^2, ... with `count` entries.
fn powers<S: Number>(x: S, count: usize) -> Vec<S> {
    std::iter::successors(Some(S::ONE), |&power| Some(power * x)).take(count).collect()
}

/// The powers one level needs.
struct Level<S> {
    /// c^i.
    retry: Vec<S>,
    /// u^i.
    survive: Vec<S>,
    /// Last reading this node's clock can have.
    last: usize,
}

/// The powers of every level, and for each of them the probabilities g_k(n).
struct Clocks<S> {
    levels: Vec<Level<S>>,
    finished: Vec<Vec<S>>,
}

fn clocks<S: Number>(steps: &[StepOdds<S>], budget: usize, absorption: f64) -> Clocks<S> {
    let q = S::from(absorption);
    let (length, mut last) = (steps.len(), budget);
    let mut levels = Vec::with_capacity(length);
    for step in steps {
        let widenings = (last as f64).sqrt() as usize + 2;
        let survive = powers(S::ONE - q * step.miss, widenings);
        levels.push(Level { retry: powers(step.retry, last + 1), survive, last });
        last = runs(1, last).map(|run| run.len).sum();
    }

    // finished[k][n]: g_k(n).
    let mut finished: Vec<Vec<S>> = vec![Vec::new(); length];
    let deepest = length - 1;
    finished[deepest] = std::iter::once(S::ZERO)
        .chain(
            levels[deepest].retry[..levels[deepest].last]
                .iter()
                .map(|&power| steps[deepest].hit * power),
        )
        .collect();
    for k in (0..deepest).rev() {
        let level = &levels[k];
        let mut here = vec![S::ZERO; level.last + 1];
        for found in 1..level.last {
            let chance = steps[k].hit * level.retry[found - 1];
            for run in runs(found, level.last) {
                let factor = chance * level.survive[run.widened];
                let child = &finished[k + 1][run.child..run.child + run.len];
                for (sum, &value) in here[run.parent..run.parent + run.len].iter_mut().zip(child) {
                    *sum = *sum + factor * value;
                }
            }
        }
        finished[k] = here;
    }
    Clocks { levels, finished }
}

/// The probability of completing the trace with exactly the n-th expansion, for n up to the budget.
pub(crate) fn arrivals<S: Number>(steps: &[StepOdds<S>], budget: usize, absorption: f64) -> Vec<S> {
    let mut finished = clocks(steps, budget, absorption).finished;
    finished.swap_remove(0)
}

pub(crate) fn solve<S: Number>(steps: &[StepOdds<S>], budget: usize, absorption: f64) -> Weighed {
    let q = S::from(absorption);
    let Clocks { levels, finished } = clocks(steps, budget, absorption);
    let deepest = steps.len() - 1;
    let success = finished[0].iter().fold(S::ZERO, |sum, &g| sum + g);

    // reach[n]: how much a completion at reading n of the current node's clock adds to J.
    let mut reach = vec![S::ONE; budget + 1];
    let mut weights = Vec::with_capacity(steps.len());
    for (k, (step, level)) in steps.iter().zip(&levels).enumerate() {
        // d/dlog p of p c^(T-1) u^W is that, less (T-1) p (1-q) p c^(T-2) u^W, plus W q p times p
        // c^(T-1) u^(W-1).
        let slope = step.hit * (S::ONE - q);
        let mut derivative = S::ZERO;
        let mut below = vec![S::ZERO; levels.get(k + 1).map_or(0, |next| next.last + 1)];
        for found in 1..=level.last {
            let chance = step.hit * level.retry[found - 1];
            let change = if found == 1 {
                chance
            } else {
                chance - S::from((found - 1) as f64) * slope * (step.hit * level.retry[found - 2])
            };
            if k == deepest {
                derivative = derivative + change * reach[found];
                continue;
            }
            for run in runs(found, level.last) {
                let survive = level.survive[run.widened];
                let factor = chance * survive;
                let child = &finished[k + 1][run.child..run.child + run.len];
                let above = &reach[run.parent..run.parent + run.len];
                let mut meeting = S::ZERO;
                for ((sum, &value), &above) in
                    below[run.child..run.child + run.len].iter_mut().zip(child).zip(above)
                {
                    *sum = *sum + factor * above;
                    meeting = meeting + value * above;
                }
                let mut change = change * survive;
                if absorption > 0.0 && run.widened > 0 {
                    let wider = S::from(run.widened as f64) * q * step.hit;
                    change = change + chance * wider * level.survive[run.widened - 1];
                }
                derivative = derivative + change * meeting;
            }
        }
        weights.push((derivative / success).to_f64());
        reach = below;
    }
    Weighed { log_success: success.ln().min(0.0), weights, feasible: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_budgets_pay_for_widening() {
        let budgets: Vec<u64> = (1..=7).map(minimum_budget).collect();
        assert_eq!(budgets, [1, 3, 6, 9, 13, 18, 23]);
    }

    #[test]
    fn runs_skip_exactly_the_squares() {
        for found in 1..12usize {
            let mut expected = Vec::new();
            let mut child = 0;
            for reading in found..100 {
                let root = (reading as f64).sqrt().round() as usize;
                if root * root == reading && root >= found {
                    continue; // a widening tick
                }
                child += 1;
                expected.push((reading + 1, child));
            }
            let got: Vec<(usize, usize)> = runs(found, 100)
                .flat_map(|run| (0..run.len).map(move |i| (run.parent + i, run.child + i)))
                .collect();
            assert_eq!(got, expected, "found at {found}");
        }
    }
}
