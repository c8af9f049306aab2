//! The tactic generator's operations on an NVIDIA GPU.
//!
//! [`Cuda`] implements [`catamount_model::Backend`]: kernels are compiled at run time by NVRTC and
//! kept in a cache, matrix products are cuBLASLt's or, of few rows in fp8, ours. The CUDA libraries
//! are loaded when [`Cuda::new`] is called, so the same binary builds and runs without them:
//!
//! ```
//! use catamount_cuda::Cuda;
//! use catamount_model::Memory;
//!
//! match Cuda::new(0) {
//!     Ok(cuda) => println!("{}", cuda.describe()),
//!     Err(reason) => println!("on the processor then: {reason}"),
//! }
//! ```

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod address;
mod attention;
mod backend;
mod choice;
mod compile;
mod correction;
mod cuda;
mod device;
mod few;
mod fp8;
mod graph;
mod head;
mod kernels;
mod launch;
mod linear;
mod lora;
mod matmul;
mod optimizer;
mod pending;
mod plain_lora;
mod plan;
mod profile;
mod race;
mod rotation;
mod sampling;
mod side;
mod staging;
mod tensor;
mod transfer;
mod turn;

pub use compile::{Compiled, compile_all, compiler_version};
pub use cuda::{Cuda, Precision};
pub use profile::Timing;
#[doc(hidden)]
pub use race::{Race, Raced};
pub use tensor::{CudaIndex, CudaTensor};

/// Whose misuse does not compile, as the examples beside their source show.
#[doc(hidden)]
pub mod turns {
    pub use crate::side::{Aside, Fork, Left, Side};
    pub use crate::turn::Ready;
}

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
