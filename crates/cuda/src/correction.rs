//! What an adapter has yet to add to a product's result. It is computed beside the product, and
//! waits for the next operation: those that read the result anyway add it as they do, for the
//! others it is added first.

use catamount_model::Result;

use crate::cuda::Cuda;
use crate::kernels::args;
use crate::turn::Ready;

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
    /// Adds what an adapter has yet to add.
    pub(crate) fn add_correction(&self, turn: &Ready<'_>, c: &Correction) -> Result<()> {
        let list = args![c.len as u64, c.part, c.y];
        self.launch(turn, c"add", c.len.div_ceil(256), 256, list)
    }
}
