//! Everything here runs on the real prover, under the WebAssembly host.

mod attacks;
mod faults;
mod judging;
mod kill;
mod search;
mod sessions;
mod setup;
mod tracing;
