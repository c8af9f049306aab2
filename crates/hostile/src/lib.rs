#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod faults;
pub mod fuzz;
pub mod mutation;
pub mod random;
mod readers;
pub mod seeds;
pub mod suite;
pub mod target;
pub mod verdicts;
