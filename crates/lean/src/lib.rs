//! Lean 4 as a proving environment.
