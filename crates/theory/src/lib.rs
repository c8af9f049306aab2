//! The paper's analysis as numbers and figures, and the surrogates' error measured rather than
//! bounded.
//!
//! A [`ProofTree`] is a small proof space with everything the analysis talks about: a demonstrated
//! trace, alternative proofs, traps, absorbing states, detours, and a tabular policy. The very
//! searches that run on real provers are followed through every branch of it, which gives the
//! deployed success J^A and the true weights w* without any sampling.
//!
//! ```
//! use catamount_objective::{Objective, Surrogate};
//! use catamount_search::StrategyKind;
//! use catamount_theory::{Branch, ProofTree, deployed, simulation};
//!
//! let chain = ProofTree::chain(&[0.4, 0.25])?;
//! let found = deployed(&chain, &simulation(StrategyKind::Dfs, 16)?)?;
//! let surrogate = Surrogate::new(Objective::Dfs, 16).weigh(&chain.log_p())?;
//! // Every miss is rejected: the surrogate is exact.
//! assert!((found.weights[0][15] - surrogate.weights[0]).abs() < 1e-9);
//!
//! let traps = chain.deviate(1, 0.3, &Branch::Trap { depth: 2, valid: 0.5 })?;
//! let found = deployed(&traps, &simulation(StrategyKind::Dfs, 16)?)?;
//! // Depth-first search does not come back.
//! assert!(found.weights[0][15] > surrogate.weights[0] + 0.2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`theory`] writes every figure with its claim, its data and the numbers that decide the claim.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod check;
mod elasticity;
mod environment;
mod estimate;
mod explore;
mod figures;
mod rollout;
mod theory;
mod tree;
mod waiting;

pub use check::{Check, Finding};
pub use elasticity::{Deployed, by_differences, deployed};
pub use environment::TabularPolicy;
pub use estimate::{Estimate, Measured, estimate};
pub use explore::{CONFIGURATIONS, ExploreError, exact_success, simulation};
pub use figures::{Row, rows};
pub use rollout::{Rollout, rollout};
pub use theory::{TheoryError, findings, theory, write};
pub use tree::{Branch, Leads, ProofTree, Tactic, TreeError};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
