#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod assertion;
mod axioms;
mod check;
mod database;
mod environment;
mod error;
mod export;
mod extract;
mod grammar;
mod kernel;
mod key;
mod letter;
mod load;
mod proof;
mod prover;
mod repetition;
mod replay;
mod source;
mod state;
mod tactic;
mod term;

pub use assertion::{Assertion, AssertionId};
pub use database::{Database, Unsupported};
pub use environment::{Metamath, PROVER, Settings};
pub use error::Error;
pub use export::export;
pub use extract::{Extracted, Extraction};
pub use prover::{Goals, Prover};
pub use tactic::{LONGEST_TACTIC, Tactic};
