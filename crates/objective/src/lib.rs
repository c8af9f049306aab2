//! From the log-probabilities of a demonstrated trace to the surrogate's log-success and the weight
//! of every step.
//!
//! ```
//! use catamount_objective::{Objective, Prior, Surrogate};
//!
//! let log_p = [-0.1, -4.6, -0.7]; // of the three demonstrated tactics, under the current policy
//! let weighed = Surrogate::new(Objective::Bfs, 256).weigh(&log_p)?;
//! // Only the unlikely tactic still matters.
//! assert!(weighed.weights[1] > 0.1 && weighed.weights[0] < 0.01);
//!
//! // A miss costs five expansions; one in fifty is never recovered from.
//! let prior = Prior::new(5.0, 0.02)?;
//! let weighed = Surrogate::new(Objective::Bfs, 256).with_prior(prior)?.weigh(&log_p)?;
//! assert!(weighed.weights[0] > 0.01);
//! # Ok::<(), catamount_objective::ObjectiveError>(())
//! ```
//!
//! [`Surrogate::curve`] gives J at every budget up to N at the cost of one.
//!
//! Knows nothing of provers, models, files or threads. Cost per trace of L steps at budget N:
//!
//! | objective | time | memory |
//! |---|---|---|
//! | `ce`, `ua`, `pass` | O(L) | O(L) |
//! | `bfs`, `dfs` | O(L N) | O(L + N) |
//! | `rdfs`, `vdfs` | O(L N) | O(L N), O(L sqrt N) beyond four million values |
//! | `mcts` | O(L N^2) | O(L N) |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod backtrack;
mod curve;
mod dual;
mod error;
mod geometric;
mod lanes;
mod number;
mod objective;
mod prior;
mod retry;
mod strategy;
mod triple;
mod wide;
mod widening;

pub use dual::Dual;
pub use error::ObjectiveError;
pub use objective::{Objective, Surrogate, Weighed};
pub use prior::Prior;
pub use strategy::{Status, Strategy, solve};
pub use triple::by_recurrence;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
