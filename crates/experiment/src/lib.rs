#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod calibrating;
mod candidates;
mod cells;
mod error;
mod experiment;
mod file;
mod locate;
mod parse;
mod plan;
mod presets;
mod run;
mod schema;
mod scores;
mod server;
mod slug;
mod stamp;
mod step;
mod study;
mod time;
mod training;
mod tuning;

pub use error::{Error, Result};
pub use experiment::{
    Data, Environment, Evaluation, Experiment, ModelChoice, ObjectiveChoice, PriorChoice, Server,
    TraceChoice, Tune,
};
pub use file::{Cells, ExperimentFile, TokenizerKind};
pub use plan::{Plan, Planned};
pub use presets::{PRESETS, preset};
pub use run::run;
pub use schema::schema;
pub use step::{
    Branch, Cell, Chosen, Contender, Fit, Fold, Scoring, Step, Tournament, Trained, Trial,
};
pub use study::Study;
