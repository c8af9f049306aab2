//! The operations a model is made of. The model plans the buffers and writes the chain rule out by
//! hand; a backend only computes. Every forward operation has its backward beside it, and there is
//! no tape.
//!
//! Conventions, for every operation:
//! - Matrices are row-major and dense. `n` counts token rows; a buffer may be longer than the
//!   operation needs, never shorter.
//! - An output is overwritten unless its documentation says "adds to". Gradients of parameters are
//!   always added to, so that micro-batches accumulate; gradients of activations are overwritten
//!   unless said otherwise.
//! - Arguments come in one order: sizes and parameters, what is read, what is written.
//! - A linear map's weight is `[out, in]`, as in Hugging Face checkpoints: `y = x Wᵀ + b`.
//! - Operations may be asynchronous; [`Memory::download`], [`Optimize::sum_of_squares`] and
//!   [`Decode::sample`] wait.
//! - Row `i` of a forward result depends on row `i` of the input alone (and on its sequence, in
//!   attention), bit for bit: what else is in the batch must not change a sample. A CUDA backend
//!   may relax this to the same batch shape, and says so.
//!
//! [`crate::Reference`] is the plainest implementation: what each operation means, in loops.

mod affine;
mod attention;
mod decode;
mod head;
mod layers;
mod lora;
mod memory;
mod norm;
mod optimize;

pub use affine::{Affine, Shape};
pub use attention::{Attended, Direction, Heads, Packed};
pub use decode::{Decode, Place, Span};
pub use head::{Head, HeadGradients, Scores};
pub use layers::Layers;
pub(crate) use layers::no_fp8;
pub use lora::{Dropout, Inner, Lora, LoraGradients};
pub use memory::{Kind, Memory};
pub use norm::{Norm, NormInput, Normed};
pub use optimize::{AdamW, Optimize, Update};

/// A device and all of the operations on it: whatever implements the four traits is one.
pub trait Backend: Memory + Layers + Decode + Optimize {}

impl<B: Memory + Layers + Decode + Optimize> Backend for B {}
