//! From one file to the whole study: data and split, warm-up, one branch per objective, one cell
//! per (objective, strategy, budget), and the report.
//!
//! An [`Experiment`] is read from TOML; a [`Plan`] is the directed graph of its steps, each with a
//! key that hashes everything it depends on; [`run`] does what is not up to date. Anything may be
//! interrupted and run again.
//!
//! Deliberately does not know which prover is searched or which device computes: both are handed
//! in.

mod cells;
mod config;
mod error;
mod offtrace;
mod plan;
mod presets;
mod run;
mod stamp;
mod steps;
mod time;

pub use config::{Cells, Data, Evaluation, Experiment, ModelChoice, ObjectiveChoice, PriorChoice};
pub use error::{Error, Result};
pub use offtrace::{OffTrace, measure};
pub use plan::{Plan, Step, StepKind};
pub use presets::{PRESETS, preset};
pub use run::{Host, Load, run};
