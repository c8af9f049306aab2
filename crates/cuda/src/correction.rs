//! What an adapter has yet to add to a product's result. It is computed beside the product, and
//! waits for the next operation: those that read the result anyway add it as they do, for the
//! others it is added first.

use catamount_model::Result;

use crate::address::{Address, Computed};
use crate::cuda::Cuda;
use crate::kernels::ADD;
use crate::turn::Ready;

/// `y += part`, both `[n, outputs]`.
#[derive(Clone, Copy)]
pub(crate) struct Correction {
    /// The result's identity and address.
    pub y_id: u64,
    pub y: Address<Computed>,
    pub part: Address<Computed>,
    pub len: usize,
}

impl Cuda {
    /// Adds what an adapter has yet to add.
    pub(crate) fn add_correction(&self, turn: &Ready<'_>, c: &Correction) -> Result<()> {
        let list = (c.len as u64, c.part, c.y);
        self.launch(turn, ADD, c.len.div_ceil(256), 256, list)
    }
}
