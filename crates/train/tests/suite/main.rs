//! One program: each of its own would instantiate the trainer again.

#[path = "../common/mod.rs"]
mod common;
mod events;
mod probabilities;
mod resume;
mod training;
