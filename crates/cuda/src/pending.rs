//! Operations that wait for the next one (`turn.rs` says how they are met). A linear map waits to
//! see whether an adapter adds to its result: then the adapter's part is written first and the
//! product adds to it, which saves reading and writing the result once more. An adapter's part and
//! a rotation wait for an operation that goes through the same rows anyway.

use catamount_model::Result;

use crate::correction::Correction;
use crate::cuda::Cuda;
use crate::matmul::Product;
use crate::rotation::Rotation;
use crate::turn::Ready;

/// What waits.
pub(crate) enum Pending {
    /// A product, with the identities of its left operand and its result.
    Product(Product, [u64; 2]),
    /// An adapter's part of a product's result.
    Correction(Correction),
    /// Rows to be rotated.
    Rotation(Rotation),
}

impl Cuda {
    /// Leaves a product to the next operation.
    pub(crate) fn leave_product(
        &self,
        turn: Ready<'_>,
        product: Product,
        operands: [u64; 2],
    ) -> Result<()> {
        // Now, while its result may still be overwritten: an adapter may be about to write there.
        self.prepare(&turn, &product)?;
        turn.leave(Pending::Product(product, operands));
        Ok(())
    }
}
