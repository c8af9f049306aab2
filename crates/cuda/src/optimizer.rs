//! Operations on many tensors in one launch: an adapter has hundreds of small ones, and launching
//! costs more than updating one.

use catamount_model::{AdamW, Result, Update};
use half::bf16;

use crate::address::{Address, Stretch, Tensors};
use crate::cuda::{Cuda, long_enough};
use crate::kernels::{ADAMW, CLEAR};
use crate::launch::{Grid, Rates};
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
        let mut list: Vec<Stretch> = Vec::new();
        for (len, x) in tensors {
            long_enough(x.len, len)?;
            x.version += 1;
            let mut clear = |to: Address<u8>, bytes| list.push([to.raw(), bytes as u64]);
            clear(x.numbers.address(), len * x.format.bytes());
            if let Some(working) = &x.working {
                clear(working.address(), 2 * len);
            }
        }
        // A table cannot be sent while recording.
        if self.device.is_recording() {
            let clear = |&[to, bytes]: &Stretch| {
                self.clear_bytes(&turn, Address::<u8>::new(to), bytes as usize)
            };
            return list.iter().try_for_each(clear);
        }
        for list in list.chunks(MOST) {
            let table = self.upload_table(&turn, list)?;
            let grid = Grid::of((STRETCHES, list.len(), 1), 256);
            self.launch_box(&turn, CLEAR, grid, (table,))?;
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
        let mut list: Vec<Tensors> = Vec::with_capacity(updates.len());
        for Update { grad, m, v, value } in updates {
            let len = value.len;
            list.push([
                self.read_exact(grad, len)?.raw(),
                self.write_exact(m, len)?.raw(),
                self.write_exact(v, len)?.raw(),
                self.write_exact(value, len)?.raw(),
                value.working.as_ref().map_or(0, |w| w.address::<bf16>().raw()),
                len as u64,
            ]);
        }
        let correction = |beta: f32| (1.0 - f64::from(beta).powf(step.step as f64)) as f32;
        let AdamW { lr, beta1, beta2, eps, weight_decay, grad_scale, .. } = *step;
        let (first, second) = (correction(beta1), correction(beta2));
        let rates = Rates([lr, beta1, beta2, eps, weight_decay, first, second, grad_scale]);
        for list in list.chunks(MOST) {
            let table = self.upload_table(&turn, list)?;
            let grid = Grid::of((STRETCHES, list.len(), 1), 256);
            self.launch_box(&turn, ADAMW, grid, (table, rates))?;
        }
        Ok(())
    }

    fn upload_table<const N: usize>(
        &self,
        turn: &Ready<'_>,
        table: &[[u64; N]],
    ) -> Result<Address<[u64; N]>> {
        let bytes = size_of_val(table);
        let to = self.scratch(turn, "table", bytes)?;
        // SAFETY: the staging slot holds the table.
        let fill = |slot: *mut u8| unsafe {
            std::ptr::copy_nonoverlapping(table.as_ptr(), slot.cast(), table.len())
        };
        turn.state().staging.upload(&self.device, to, bytes, fill)?;
        Ok(to)
    }
}
