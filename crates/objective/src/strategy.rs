//! The framework: a strategy is the triple (selection, advance, miss) over configurations, and its
//! loss and weights follow mechanically (prop:cat_template).
//!
//! ```
//! use catamount_objective::{Dual, Status, Strategy, solve};
//!
//! /// Retry in place, but give up a state after three misses and start over.
//! struct ThreeStrikes;
//!
//! impl Strategy for ThreeStrikes {
//!     type Configuration = (usize, u8, u64); // next step, misses there, remaining budget
//!
//!     fn start(&self, _length: usize, budget: u64) -> Self::Configuration {
//!         (0, 0, budget)
//!     }
//!     fn status(&self, &(t, _, b): &Self::Configuration, length: usize) -> Status {
//!         if t == length { Status::Solved } else if b == 0 { Status::Dead } else { Status::Live }
//!     }
//!     fn selection(&self, c: &Self::Configuration, _p: &[Dual]) -> Vec<(usize, Dual)> {
//!         vec![(c.0, Dual::constant(1.0))]
//!     }
//!     fn advance(&self, &(t, _, b): &Self::Configuration, _node: usize) -> Self::Configuration {
//!         (t + 1, 0, b - 1)
//!     }
//!     fn miss(&self, &(t, m, b): &Self::Configuration, _node: usize) -> Self::Configuration {
//!         if m == 2 { (0, 0, b - 1) } else { (t, m + 1, b - 1) }
//!     }
//! }
//!
//! let weighed = solve(&ThreeStrikes, &[-0.5, -2.0], 16, 0.0).unwrap();
//! assert!(weighed.weights[1] > weighed.weights[0]); // the unlikely tactic is the bottleneck
//! ```

use std::collections::HashMap;
use std::hash::Hash;

use crate::dual::Dual;
use crate::error::ObjectiveError;
use crate::objective::{Weighed, check_trace, wide};

/// Whether a configuration has an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The demonstrated proof is complete.
    Solved,
    /// The budget is spent.
    Dead,
    /// The search goes on.
    Live,
}

/// A search projected onto a demonstrated trace. Nodes are named by index: node t is state x_t,
/// from which the tactic of step t (counted from 0) advances. Every update must spend budget, so
/// that the recurrence ends.
pub trait Strategy {
    /// The projected frontier and memory, remaining budget included.
    type Configuration: Clone + Eq + Hash;

    /// c_0 for a trace of `length` steps.
    fn start(&self, length: usize, budget: u64) -> Self::Configuration;
    /// Solved, dead or live.
    fn status(&self, configuration: &Self::Configuration, length: usize) -> Status;
    /// S(x | c; p): the nodes that may be expanded next, with their probabilities. These may depend
    /// on the policy: compute with the given `p` (one [`Dual`] a step) and the derivatives are
    /// carried along.
    fn selection(&self, configuration: &Self::Configuration, p: &[Dual]) -> Vec<(usize, Dual)>;
    /// U+: the demonstrated tactic was sampled at the node.
    fn advance(&self, configuration: &Self::Configuration, node: usize) -> Self::Configuration;
    /// U-: something else was.
    fn miss(&self, configuration: &Self::Configuration, node: usize) -> Self::Configuration;
}

/// log J and weights of any strategy, from the recurrence alone (eq:trace_supported_recurrence).
/// Exact, and as slow as the number of configurations the strategy can reach.
pub fn solve<A: Strategy>(
    strategy: &A,
    log_p: &[f64],
    budget: u64,
    absorption: f64,
) -> Result<Weighed, ObjectiveError> {
    check_trace(log_p)?;
    let length = log_p.len();
    let odds: Vec<(Dual, Dual)> = wide(log_p, 0.0)
        .iter()
        .enumerate()
        .map(|(t, step)| Dual::odds(step.hit, step.miss, t, length))
        .collect();
    let hits: Vec<Dual> = odds.iter().map(|(hit, _)| hit.clone()).collect();
    let survive = Dual::constant(1.0 - absorption);

    // Post-order over the configurations with an explicit stack: budgets are deeper than call
    // stacks.
    let start = strategy.start(length, budget);
    let mut solved: HashMap<A::Configuration, Dual> = HashMap::new();
    let mut stack = vec![start.clone()];
    while let Some(configuration) = stack.last().cloned() {
        if solved.contains_key(&configuration) {
            stack.pop();
            continue;
        }
        let value = match strategy.status(&configuration, length) {
            Status::Solved => Some(Dual::constant(1.0)),
            Status::Dead => Some(Dual::constant(0.0)),
            Status::Live => {
                let branches: Vec<_> = strategy
                    .selection(&configuration, &hits)
                    .into_iter()
                    .map(|(node, chance)| {
                        (
                            node,
                            chance,
                            strategy.advance(&configuration, node),
                            strategy.miss(&configuration, node),
                        )
                    })
                    .collect();
                let waiting = stack.len();
                for (_, _, advanced, missed) in &branches {
                    stack.extend(
                        [advanced, missed]
                            .into_iter()
                            .filter(|c| !solved.contains_key(*c))
                            .cloned(),
                    );
                }
                (stack.len() == waiting).then(|| {
                    branches.iter().fold(
                        Dual::constant(0.0),
                        |sum, (node, chance, advanced, missed)| {
                            let (hit, miss) = &odds[*node];
                            let missed = &(miss * &survive) * &solved[missed];
                            &sum + &(chance * &(&(hit * &solved[advanced]) + &missed))
                        },
                    )
                })
            }
        };
        if let Some(value) = value {
            solved.insert(configuration, value);
            stack.pop();
        }
    }

    let success = &solved[&start];
    if success.is_zero() {
        return Ok(Weighed {
            log_success: log_p.iter().sum(),
            weights: vec![1.0; length],
            feasible: false,
        });
    }
    // Near one, take the logarithm from the failure: Wide carries the difference.
    let failure = &Dual::constant(1.0) - success;
    let log_success =
        if failure.value() < 0.5 { (-failure.value()).ln_1p() } else { success.ln_value() };

    Ok(Weighed { log_success, weights: success.elasticities(length), feasible: true })
}
