//! `bfs` and `dfs`: retry at the same state until the demonstrated tactic is sampled (eq:bfs_trace_recurrence).
//!
//! J = P(T_1 + ... + T_L <= N) with geometric T_t. O(L N) time, O(N) memory.
//!
//! The weights need no second recurrence. The generating function of T_t is p z / (1 - c z) with c = (1 - p)(1 - q), and
//! p d/dp of it is itself times (1 - (1 - q) z) / (1 - c z). Summed over all budgets up to N this gives
//!
//! J w_t = sum_n P(S_L = n) * [ c_t^(N - n) + q (1 + c_t + ... + c_t^(N - n - 1)) ],
//!
//! which for q = 0 is the criticality of lem:criticality_revised: P(S_L <= N < S_L + T_t'). Every term is positive, so
//! nothing cancels at either end.

use crate::Weighed;
use crate::number::{Number, StepOdds};

pub(crate) fn solve<S: Number>(steps: &[StepOdds<S>], budget: usize, absorption: f64) -> Weighed {
    // arrivals[n]: probability of reaching the current state with exactly the n-th expansion.
    let mut arrivals = vec![S::ZERO; budget + 1];
    arrivals[0] = S::ONE;
    let mut failure = S::ZERO;
    for step in steps {
        let (mut waiting, mut visits) = (S::ZERO, S::ZERO);
        for arrival in &mut arrivals {
            visits = visits + waiting;
            let advanced = step.hit * waiting;
            waiting = step.retry * waiting + *arrival;
            *arrival = advanced;
        }
        failure = failure + waiting + visits * step.lost;
    }

    let q = S::from(absorption);
    let mut success = S::ZERO;
    let mut critical = vec![S::ZERO; steps.len()];
    let mut absorbing = vec![S::ZERO; steps.len()];
    for &arrival in &arrivals {
        if absorption > 0.0 {
            for (sum, step) in absorbing.iter_mut().zip(steps) {
                *sum = step.retry * *sum + success;
            }
        }
        for (sum, step) in critical.iter_mut().zip(steps) {
            *sum = step.retry * *sum + arrival;
        }
        success = success + arrival;
    }

    let failure = failure.to_f64();
    Weighed {
        log_success: if failure < 0.5 { (-failure).ln_1p() } else { success.ln() },
        weights: critical.iter().zip(&absorbing).map(|(&c, &a)| ((c + q * a) / success).to_f64()).collect(),
        feasible: true,
    }
}
