//! Metamath as the embedded proving environment.

mod assertion;
mod axioms;
mod check;
mod database;
mod environment;
mod error;
mod export;
mod grammar;
mod kernel;
mod load;
mod proof;
mod replay;
mod source;
mod state;
mod tactic;
mod term;

pub use assertion::{Assertion, AssertionId};
pub use database::{Database, Unsupported};
pub use environment::Metamath;
pub use error::Error;
pub use export::export;
pub use tactic::LONGEST_TACTIC;
