//! Theorems and the demonstrated traces that prove them: the types, the files they live in, and how a
//! set of traces is split into training and held-out pools.
//!
//! This crate knows nothing of provers: a state and a tactic are text.

mod theorem;

pub use theorem::{Step, Theorem, Trace};
