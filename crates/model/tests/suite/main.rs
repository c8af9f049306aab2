//! One program: each of its own would instantiate the network again.

mod checkpoints;
mod distinct;
mod generation;
mod network;
mod operations;
mod reference;
mod tactics;
