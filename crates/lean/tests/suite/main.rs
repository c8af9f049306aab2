//! Everything here runs on the real prover, under the WebAssembly host.

mod attacks;
mod building;
mod faults;
mod files;
mod fuzz;
mod judging;
mod kernels;
mod kill;
mod search;
mod sessions;
mod setup;
mod tracing;
