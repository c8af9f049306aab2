//! A prover behind HTTP. [`Service`] is one that answers; [`Remote`] is the search's environment
//! that asks several of them, and gives what a prover in this process would give, byte for byte.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub use addresses::{AddressError, Addresses};
pub use remote::{ConnectError, Remote};
pub use service::{Limits, Service, ServiceError};

pub mod protocol;

mod addresses;
mod busy;
mod client;
mod remote;
mod service;
mod session;
mod workers;
