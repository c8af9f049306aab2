//! Runs many searches at once and logs them.
//!
//! A *cell* is one objective under one strategy at one budget on one pool of theorems. An
//! [`Evaluation`] computes cells, [`driver::search`] searches them, [`Cell`] writes their files and
//! [`Log`] reads them. Deliberately knows nothing of how results are compared or drawn.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod asking;
mod cell;
pub mod driver;
mod evaluation;
mod identity;
pub mod log;
mod order;
mod pool;
mod proof;
mod reader;
mod redraw;
mod remembered;
mod timing;

pub use cell::{Cell, CellError, read_timing};
pub use driver::Workload;
pub use evaluation::{CellRun, CellTask, Evaluation, Observer};
pub use identity::{CellIdentity, FORMAT, Limits};
pub use pool::Theorems;
pub use reader::{Log, LogError, Problem, Tally, is_sidecar, sibling};
pub use remembered::Remembered;
pub use timing::Timing;
