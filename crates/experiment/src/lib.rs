#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod again;
mod calibrating;
mod candidates;
mod cells;
mod describe;
mod error;
mod experiment;
mod file;
mod fitted;
mod forecast;
mod inputs;
mod kind;
mod limits;
mod locate;
mod machines;
mod missing;
mod needs;
mod outline;
mod parse;
mod plan;
mod planned;
mod pools;
mod presets;
mod prover;
mod run;
mod schedule;
mod schema;
mod scores;
mod server;
mod slug;
mod stamp;
mod step;
mod study;
mod time;
mod times;
mod training;
mod tuning;
mod verify;
mod workload;

pub use again::Again;
pub use error::{Error, Result};
pub use experiment::{
    Data, Environment, Evaluation, Experiment, ModelChoice, ObjectiveChoice, PriorChoice, Server,
    TraceChoice, Tune,
};
pub use file::{Arithmetic, Cells, ExperimentFile, TokenizerKind};
pub use forecast::{Forecast, Unplanned};
pub use inputs::Inputs;
pub use kind::Kind;
pub use machines::Machines;
pub use needs::{CARD, Needs};
pub use outline::{Outline, OutlinedStep};
pub use plan::Plan;
pub use planned::Planned;
pub use presets::{PRESETS, preset, preset_text};
pub use prover::OpenProver;
pub use run::{prepare, run, run_steps};
pub use schedule::{Schedule, Task};
pub use schema::schema;
pub use stamp::Stamp;
pub use step::{
    Branch, Cell, Chosen, Contender, Fit, Fold, Scoring, Step, Tournament, Trained, Trial,
};
pub use study::Study;
pub use times::{Checks, Times};
pub use verify::{Verification, Verified, VerifiedRow};
pub use workload::{Updates, Workload};
