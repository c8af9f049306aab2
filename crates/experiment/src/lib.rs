#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cells;
mod error;
mod experiment;
mod file;
mod locate;
mod offtrace;
mod parse;
mod plan;
mod presets;
mod run;
mod schema;
mod scores;
mod slug;
mod stamp;
mod step;
mod study;
mod time;
mod training;

pub use error::{Error, Result};
pub use experiment::{
    Data, Environment, Evaluation, Experiment, ModelChoice, ObjectiveChoice, PriorChoice,
    TraceChoice,
};
pub use file::{Cells, ExperimentFile, TokenizerKind};
pub use plan::{Plan, Planned};
pub use presets::{PRESETS, preset};
pub use run::run;
pub use schema::schema;
pub use step::{Branch, Cell, Fold, Measurement, Scoring, Step, Trained};
pub use study::{Provenance, Study};
