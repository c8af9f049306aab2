//! `bfs` and `dfs`: retry at the same state until the demonstrated tactic is sampled
//! (eq:bfs_trace_recurrence).
//!
//! J = P(T_1 + ... + T_L <= N) with geometric T_t. O(L N) time, O(N) memory.
//!
//! The weights need no second recurrence. The generating function of T_t is p z / (1 - c z) with c
//! = (1 - p)(1 - q), and p d/dp of it is itself times (1 - (1 - q) z) / (1 - c z). Summed over all
//! budgets up to N this gives
//!
//! J w_t = sum_n P(S_L = n) * [ c_t^(N - n) + q (1 + c_t + ... + c_t^(N - n - 1)) ],
//!
//! which for q = 0 is the criticality of lem:criticality_revised: P(S_L <= N < S_L + T_t'). Every
//! term is positive, so nothing cancels at either end.

use catamount_simd::simd;

use crate::Weighed;
use crate::lanes::Lanes;
use crate::number::{Arithmetic, Number, StepOdds};

/// The sums that log J and the weights are made of.
pub(crate) struct Sums<S> {
    /// 1 - J, summed by itself.
    failure: S,
    /// J.
    success: S,
    /// Per step, the two parts of J w_t.
    critical: Vec<S>,
    absorbing: Vec<S>,
}

/// The probability of completing the trace with exactly the n-th expansion, for n up to the budget.
/// `each` is told of every step who still waits there in the end, and how often anyone missed
/// (counted only with absorption).
#[inline(always)]
pub(crate) fn arrivals<S: Arithmetic>(
    steps: &[StepOdds<S>],
    budget: usize,
    absorption: f64,
    mut each: impl FnMut(&StepOdds<S>, S, S),
) -> Vec<S> {
    // arrivals[n]: probability of reaching the current state with exactly the n-th expansion.
    let mut arrivals = vec![S::ZERO; budget + 1];
    arrivals[0] = S::ONE;
    for step in steps {
        let (mut waiting, mut visits) = (S::ZERO, S::ZERO);
        for arrival in &mut arrivals {
            if absorption > 0.0 {
                visits = visits + waiting;
            }
            let advanced = step.hit * waiting;
            waiting = step.retry * waiting + *arrival;
            *arrival = advanced;
        }
        each(step, waiting, visits);
    }
    arrivals
}

simd! {
    /// The same for traces of one length, side by side.
    pub(crate) fn sums_of_lanes(
        steps: &[StepOdds<Lanes>],
        budget: usize,
        absorption: f64,
    ) -> Sums<Lanes> {
        sums(steps, budget, absorption)
    }
}

#[inline(always)]
pub(crate) fn sums<S: Arithmetic>(
    steps: &[StepOdds<S>],
    budget: usize,
    absorption: f64,
) -> Sums<S> {
    let mut failure = S::ZERO;
    let arrivals = arrivals(steps, budget, absorption, |step, waiting, visits| {
        failure = failure + waiting + visits * step.lost;
    });

    let success = arrivals.iter().fold(S::ZERO, |sum, &arrival| sum + arrival);
    // Loops, for the sake of `simd`: an iterator is not always compiled where it stands.
    let (mut critical, mut absorbing) = (Vec::new(), vec![S::ZERO; steps.len()]);
    for step in steps {
        let mut sum = S::ZERO;
        for &arrival in &arrivals {
            sum = step.retry * sum + arrival;
        }
        critical.push(sum);
    }
    if absorption > 0.0 {
        for (step, absorbing) in steps.iter().zip(&mut absorbing) {
            let mut success = S::ZERO;
            for &arrival in &arrivals {
                *absorbing = step.retry * *absorbing + success;
                success = success + arrival;
            }
        }
    }
    Sums { failure, success, critical, absorbing }
}

impl<S: Copy> Sums<S> {
    /// log J and the weights; `number` picks one trace's number out of a sum.
    pub(crate) fn weighed<T: Number>(&self, absorption: f64, number: impl Fn(S) -> T) -> Weighed {
        let (failure, success, q) =
            (number(self.failure).to_f64(), number(self.success), T::from(absorption));
        let weight = |(&c, &a): (&S, &S)| ((number(c) + q * number(a)) / success).to_f64();
        Weighed {
            log_success: if failure < 0.5 { (-failure).ln_1p() } else { success.ln() },
            weights: self.critical.iter().zip(&self.absorbing).map(weight).collect(),
            feasible: true,
        }
    }
}

pub(crate) fn solve<S: Number>(steps: &[StepOdds<S>], budget: usize, absorption: f64) -> Weighed {
    sums(steps, budget, absorption).weighed(absorption, |s| s)
}
