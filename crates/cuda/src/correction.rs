//! What an adapter has yet to add to a product's result. It is computed beside the product, and
//! waits for the next operation: those that read the result anyway add it as they do, for the
//! others it is added first.

use catamount_model::Result;

use crate::cuda::{Cuda, Turn};
use crate::kernels::args;
use crate::pending::Pending;
use crate::tensor::Format;

/// `y += part`, both `[n, outputs]`.
#[derive(Clone, Copy)]
pub(crate) struct Correction {
    /// The result's identity and address.
    pub y_id: u64,
    pub y: u64,
    pub part: u64,
    pub len: usize,
}

impl Cuda {
    /// The address of what an adapter has yet to add to the first `len` numbers of this buffer, or
    /// zero. Whatever else waits is queued. The caller must queue what adds it and then call
    /// [`Cuda::flush`].
    pub(crate) fn take_part(&self, turn: &Turn<'_>, y_id: u64, len: usize) -> Result<u64> {
        let waiting = match &turn.state().pending {
            Some(Pending::Correction(c)) if c.y_id == y_id && c.len == len => c.part,
            _ => 0,
        };
        if waiting != 0 {
            turn.state().pending = None;
        } else {
            self.flush(turn)?;
        }
        Ok(waiting)
    }

    /// Adds what an adapter has yet to add.
    pub(crate) fn add_correction(&self, c: &Correction) -> Result<()> {
        let kernel =
            if self.format() == Format::Bf16 { c"axpby_bf16_bf16" } else { c"axpby_f32_f32" };
        self.launch(
            kernel,
            c.len.div_ceil(256),
            256,
            args![c.len as u64, 1.0f32, c.part, 1.0f32, c.y],
        )
    }
}
