//! Runs many searches at once, logs them, and compares the results.

pub mod log;
