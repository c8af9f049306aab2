//! Paired comparisons, intervals and corrections, without input or output.
//!
//! Every comparison is paired: two cells, the same theorems. [`Comparison::of_counts`] is the
//! paper's statistic for one seed, [`Comparison::of_theorems`] its extension to several seeds, and
//! the two agree exactly when there is one.
//!
//! ```
//! use catamount_statistics::Comparison;
//!
//! let bfs_256 = Comparison::of_counts(407, 37, 9).unwrap();
//! let shown =
//!     format!("{:+.1} [{:.1}, {:.1}]", bfs_256.gain_pp, bfs_256.ci_low, bfs_256.ci_high);
//! assert_eq!(shown, "+6.9 [3.6, 10.1]");
//! assert!(bfs_256.p < 0.001);
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod binomial;
mod bootstrap;
mod comparison;
mod holm;
mod random;
mod signflip;
mod spread;
mod wilson;

pub use binomial::{binomial_log_pmf, mcnemar};
pub use bootstrap::{Bootstrap, bootstrap, bootstrap_searches};
pub use comparison::{Comparison, Impossible, Theorem};
pub use holm::holm;
pub use random::Random;
pub use signflip::sign_flip;
pub use spread::Spread;
pub use wilson::{Rate, wilson};

/// The normal quantile behind every 95 % interval here.
pub const Z95: f64 = 1.959_963_984_540_054;
/// The normal quantile behind a power of 90 %.
pub const Z90: f64 = 1.281_551_565_544_600_4;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
