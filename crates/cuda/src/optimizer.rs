//! Operations on many tensors in one launch: an adapter has hundreds of small ones, and launching
//! costs more than updating one.

use catamount_model::{AdamW, Result, Update};

use crate::cuda::{Cuda, long_enough};
use crate::device::Buffer;
use crate::kernels::{Arg, Grid, args};
use crate::tensor::CudaTensor;
use crate::turn::Ready;

/// Blocks per tensor.
const STRETCHES: usize = 32;
/// Tensors in one launch at most.
const MOST: usize = 16_384;

impl Cuda {
    /// Zeroes the first so many elements of every tensor, and of its working copy.
    pub(crate) fn clear_buffers<'a>(
        &self,
        tensors: impl IntoIterator<Item = (usize, &'a mut CudaTensor)>,
    ) -> Result<()> {
        let turn = self.turn()?;
        let mut list: Vec<[u64; 2]> = Vec::new();
        for (len, x) in tensors {
            long_enough(x.len, len)?;
            x.version += 1;
            list.push([x.numbers.pointer(), (len * x.format.bytes()) as u64]);
            list.extend(x.working.as_ref().map(|w| [w.pointer(), 2 * len as u64]));
        }
        // A table cannot be sent while recording.
        if self.device.is_recording() {
            return list
                .iter()
                .try_for_each(|&[to, bytes]| self.clear_bytes(&turn, to, bytes as usize));
        }
        for list in list.chunks(MOST) {
            let table = self.upload_table(&turn, list.as_flattened())?;
            let grid = Grid::of((STRETCHES, list.len(), 1), 256);
            self.launch_box(&turn, c"clear", grid, args![table])?;
        }
        Ok(())
    }

    /// One AdamW update of every tensor.
    pub(crate) fn update_parameters(
        &self,
        step: &AdamW,
        updates: &mut [Update<'_, CudaTensor>],
    ) -> Result<()> {
        let turn = self.turn()?;
        self.device.refuse_while_recording("an optimizer step")?;
        let mut list: Vec<[u64; 6]> = Vec::with_capacity(updates.len());
        for Update { grad, m, v, value } in updates {
            let len = value.len;
            list.push([
                self.read_exact(grad, len)?,
                self.write_exact(m, len)?,
                self.write_exact(v, len)?,
                self.write_exact(value, len)?,
                value.working.as_ref().map_or(0, Buffer::pointer),
                len as u64,
            ]);
        }
        let correction = |beta: f32| (1.0 - f64::from(beta).powf(step.step as f64)) as f32;
        let AdamW { lr, beta1, beta2, eps, weight_decay, grad_scale, .. } = *step;
        let (first, second) = (correction(beta1), correction(beta2));
        let rates = [lr, beta1, beta2, eps, weight_decay, first, second, grad_scale];
        let rates: Arg = rates.map(|r| r.to_bits() as i32).into();
        for list in list.chunks(MOST) {
            let table = self.upload_table(&turn, list.as_flattened())?;
            let grid = Grid::of((STRETCHES, list.len(), 1), 256);
            self.launch_box(&turn, c"adamw", grid, &[table.into(), rates])?;
        }
        Ok(())
    }

    fn upload_table(&self, turn: &Ready<'_>, table: &[u64]) -> Result<u64> {
        let to = self.scratch(turn, "table", 8 * table.len())?;
        // SAFETY: the staging slot holds the table.
        let fill = |slot: *mut u8| unsafe {
            std::ptr::copy_nonoverlapping(table.as_ptr(), slot.cast(), table.len())
        };
        turn.state().staging.upload(&self.device, to, 8 * table.len(), fill)?;
        Ok(to)
    }
}
