//! Operations that wait for the next one. Those on many small tensors are gathered into one launch:
//! an adapter has hundreds of tensors, and launching costs more than updating one. And a linear map
//! waits to see whether an adapter adds to its result: then the adapter's part is written first and
//! the product adds to it, which saves reading and writing the result once more.

use std::sync::atomic::Ordering;

use catamount_model::{AdamW, Result};

use crate::correction::Correction;
use crate::cuda::{Cuda, Turn};
use crate::kernels::{Arg, args};
use crate::matmul::Product;
use crate::rotation::Rotation;

/// What waits.
pub(crate) enum Pending {
    /// Addresses and bytes of buffers to be zeroed.
    Clear(Vec<[u64; 2]>),
    /// One optimizer step: the tensors' gradient, moments, value, working copy and length.
    Update(AdamW, Vec<[u64; 6]>),
    /// A product, with the identities of its left operand and its result.
    Product(Product, [u64; 2]),
    /// An adapter's part of a product's result.
    Correction(Correction),
    /// Rows to be rotated.
    Rotation(Rotation),
}

/// Blocks per tensor.
const STRETCHES: usize = 32;
/// Tensors in one launch at most.
const MOST: usize = 16_384;

impl Cuda {
    pub(crate) fn queue_clear(&self, turn: &Turn<'_>, pointer: u64, bytes: usize) -> Result<()> {
        let fits = matches!(&turn.state().pending, Some(Pending::Clear(list)) if list.len() < MOST);
        if !fits {
            self.flush(turn)?;
            turn.state().pending = Some(Pending::Clear(Vec::new()));
        }
        if let Some(Pending::Clear(list)) = &mut turn.state().pending {
            list.push([pointer, bytes as u64]);
        }
        self.device.pending.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn queue_update(
        &self,
        turn: &Turn<'_>,
        step: &AdamW,
        update: [u64; 6],
    ) -> Result<()> {
        let fits = matches!(&turn.state().pending,
            Some(Pending::Update(s, list)) if s == step && list.len() < MOST);
        if !fits {
            self.flush(turn)?;
            turn.state().pending = Some(Pending::Update(*step, Vec::new()));
        }
        if let Some(Pending::Update(_, list)) = &mut turn.state().pending {
            list.push(update);
        }
        self.device.pending.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn queue_product(
        &self,
        turn: &Turn<'_>,
        product: Product,
        operands: [u64; 2],
    ) -> Result<()> {
        self.flush(turn)?;
        // Now, while its result may still be overwritten: an adapter may be about to write there.
        self.prepare(turn, &product)?;
        turn.state().pending = Some(Pending::Product(product, operands));
        self.device.pending.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Leaves an adapter's part or a rotation to the operation that comes next. Nothing else may
    /// wait.
    pub(crate) fn leave(&self, turn: &Turn<'_>, pending: Pending) {
        turn.state().pending = Some(pending);
        self.device.pending.store(true, Ordering::Relaxed);
    }

    /// The product with these operands, if it is what waits; whatever else waits is queued. The
    /// caller must queue the product and then call [`Cuda::flush`].
    pub(crate) fn take_product(
        &self,
        turn: &Turn<'_>,
        operands: [u64; 2],
    ) -> Result<Option<Product>> {
        let waiting = match &turn.state().pending {
            Some(Pending::Product(product, of)) if *of == operands => Some(*product),
            _ => None,
        };
        if waiting.is_some() {
            turn.state().pending = None;
        } else {
            self.flush(turn)?;
        }
        Ok(waiting)
    }

    /// Queues what waits.
    pub(crate) fn flush(&self, turn: &Turn<'_>) -> Result<()> {
        let pending = turn.state().pending.take();
        let launched = match pending {
            None => Ok(()),
            Some(Pending::Product(product, _)) => self.product(turn, &product),
            Some(Pending::Correction(correction)) => self.add_correction(&correction),
            Some(Pending::Rotation(rotation)) => self.rotate(&rotation, None),
            Some(Pending::Clear(list)) => {
                let table = self.upload_table(turn, list.as_flattened())?;
                self.launch_box(c"clear", (STRETCHES, list.len(), 1), 256, 0, args![table])
            }
            Some(Pending::Update(step, list)) => {
                let correction = |beta: f32| (1.0 - f64::from(beta).powf(step.step as f64)) as f32;
                let AdamW { lr, beta1, beta2, eps, weight_decay, grad_scale, .. } = step;
                let rates = [
                    lr,
                    beta1,
                    beta2,
                    eps,
                    weight_decay,
                    correction(beta1),
                    correction(beta2),
                    grad_scale,
                ];
                let table = self.upload_table(turn, list.as_flattened())?;
                let rates: Arg = rates.map(|r| r.to_bits() as i32).into();
                self.launch_box(
                    c"adamw",
                    (STRETCHES, list.len(), 1),
                    256,
                    0,
                    &[table.into(), rates],
                )
            }
        };
        // Buffers given back meanwhile were still needed until here.
        self.device.pending.store(false, Ordering::Relaxed);
        if !self.device.is_recording() && !self.device.loose.load(Ordering::Relaxed) {
            self.device.release_deferred();
        }
        launched
    }

    fn upload_table(&self, turn: &Turn<'_>, table: &[u64]) -> Result<u64> {
        let to = self.scratch(turn, "pending", 8 * table.len())?;
        // SAFETY: the staging slot holds the table.
        let fill = |slot: *mut u8| unsafe {
            std::ptr::copy_nonoverlapping(table.as_ptr(), slot.cast(), table.len())
        };
        turn.state().staging.upload(&self.device, to, 8 * table.len(), fill)?;
        Ok(to)
    }
}
