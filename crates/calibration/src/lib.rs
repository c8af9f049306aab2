//! Fits a surrogate to what the search did, says how well it predicts, and chooses what to train
//! for.
//!
//! A surrogate is a claim: a theorem whose demonstrated tactics have these probabilities is proved
//! within n expansions with probability J_n. [`calibrate`] holds the claim against searches of
//! theorems that were not trained on, and fits what the claim leaves open: what a miss costs and
//! how often it is final ([`Clock::Prior`]), or how many of the search's expansions count
//! ([`Clock::Effective`]). A proof that is not the demonstrated one is a competing risk
//! ([`Bypass`]): it ends the wait for the demonstrated proof without saying how long that would
//! have taken.
//!
//! ```
//! use catamount_calibration::{Clock, End, Observation, calibrate};
//! use catamount_objective::Objective;
//!
//! // Every theorem is found along its trace, but only every third expansion counts.
//! let observations: Vec<Observation> = (0..80)
//!     .map(|i| Observation {
//!         theorem: format!("t{i}"),
//!         log_p: vec![-0.2 - 0.03 * i as f64, -0.5],
//!         end: End::Along(6 + i),
//!     })
//!     .collect();
//! let found = calibrate(Objective::Bfs, 128, &observations, &[])?;
//! assert!(found.chosen().scores.log_loss < found.uncalibrated().scores.log_loss);
//! # Ok::<(), catamount_calibration::CalibrationError>(())
//! ```
//!
//! [`Halving`] chooses among candidates by successive halving on paired outcomes.
//!
//! Deliberately knows nothing of models, provers, logs or files.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod bypass;
mod calibrate;
mod clock;
mod curves;
mod error;
mod fit;
mod halving;
mod minimise;
mod observation;
mod reliability;
mod score;

pub use bypass::Bypass;
pub use calibrate::{Calibration, Model, Parameter, calibrate};
pub use clock::{Clock, ROLLOUT};
pub use error::{CalibrationError, LEAST_THEOREMS};
pub use halving::{Candidate, Choice, Halving, HalvingError, Outcome, Task};
pub use observation::{End, Observation};
pub use reliability::Bin;
pub use score::{AtHorizon, Scores};
