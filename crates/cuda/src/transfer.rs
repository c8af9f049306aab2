//! Numbers between the host and the device, through page-locked memory; and the one number that
//! norms are.

use catamount_model::{Error, Result};
use half::bf16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;

use crate::address::{Address, Slice};
use crate::cuda::{Cuda, long_enough};
use crate::kernels::{SUM_OF_SQUARES, SUM_PARTIALS, TO_BF16};
use crate::launch::Grid;
use crate::staging::Staging;
use crate::tensor::{CudaIndex, CudaTensor, Format};
use crate::turn::Ready;

/// Elements that a thread of rayon converts at once.
const GRAIN: usize = 1 << 16;

impl Cuda {
    pub(crate) fn upload_numbers(
        &self,
        from: &[f32],
        to: &mut CudaTensor,
        offset: usize,
    ) -> Result<()> {
        let turn = self.turn()?;
        self.device.refuse_while_recording("copying from the host")?;
        long_enough(to.len, offset + from.len())?;
        refuse_fp8(to)?;
        to.version += 1;
        let (format, bytes) = (to.format, to.format.bytes());
        let most = Staging::MOST / bytes;
        for (i, chunk) in from.chunks(most).enumerate() {
            let at = to.numbers.address::<u8>().skip_bytes((offset + i * most) * bytes);
            // SAFETY: the staging slot holds `chunk.len()` numbers of this format, and is aligned
            // to a page.
            let fill = |slot: *mut u8| unsafe {
                match format {
                    Format::F32 => {
                        std::ptr::copy_nonoverlapping(chunk.as_ptr(), slot.cast(), chunk.len())
                    }
                    Format::Fp8 => unreachable!("refused above"),
                    Format::Bf16 => {
                        let slot = std::slice::from_raw_parts_mut(slot.cast::<bf16>(), chunk.len());
                        slot.par_chunks_mut(GRAIN)
                            .zip(chunk.par_chunks(GRAIN))
                            .for_each(|(to, from)| to.convert_from_f32_slice(from));
                    }
                }
            };
            turn.state().staging.upload(&self.device, at, chunk.len() * bytes, fill)?;
        }
        self.refresh(&turn, to, offset, from.len())
    }

    pub(crate) fn download_numbers(
        &self,
        from: &CudaTensor,
        offset: usize,
        to: &mut [f32],
    ) -> Result<()> {
        let turn = self.turn()?;
        self.device.refuse_while_recording("copying to the host")?;
        long_enough(from.len, offset + to.len())?;
        refuse_fp8(from)?;
        let bytes = from.format.bytes();
        let most = Staging::MOST / bytes;
        for (i, chunk) in to.chunks_mut(most).enumerate() {
            let at = from.numbers.address::<u8>().skip_bytes((offset + i * most) * bytes);
            let (len, format) = (chunk.len(), from.format);
            // SAFETY: the staging slot holds `len` numbers of this format, and is aligned to a
            // page.
            let take = |slot: *const u8| unsafe {
                match format {
                    Format::F32 => {
                        std::ptr::copy_nonoverlapping(slot.cast(), chunk.as_mut_ptr(), len)
                    }
                    Format::Fp8 => unreachable!("refused above"),
                    Format::Bf16 => std::slice::from_raw_parts(slot.cast::<bf16>(), len)
                        .convert_to_f32_slice(chunk),
                }
            };
            turn.state().staging.download(&self.device, at, len * bytes, take)?;
        }
        Ok(())
    }

    pub(crate) fn upload_index(&self, from: &[u32], to: &mut CudaIndex) -> Result<()> {
        let turn = self.turn()?;
        self.device.refuse_while_recording("copying from the host")?;
        long_enough(to.len, from.len())?;
        to.version += 1;
        let most = Staging::MOST / 4;
        for (i, chunk) in from.chunks(most).enumerate() {
            let at = to.numbers.address::<u32>().skip(i * most);
            // SAFETY: the staging slot holds the chunk.
            let fill = |slot: *mut u8| unsafe {
                std::ptr::copy_nonoverlapping(chunk.as_ptr(), slot.cast(), chunk.len())
            };
            turn.state().staging.upload(&self.device, at, 4 * chunk.len(), fill)?;
        }
        Ok(())
    }

    /// The sum of squares over several tensors, in a fixed order.
    pub(crate) fn squares(&self, tensors: &[&CudaTensor]) -> Result<f64> {
        let turn = self.turn()?;
        self.device.refuse_while_recording("reading a norm")?;
        if tensors.is_empty() {
            return Ok(0.0);
        }
        const BLOCKS: usize = 32;
        let slice = |t: &&CudaTensor| -> Slice {
            let at = t.numbers.address::<u8>().raw();
            [at, t.len as u64, u64::from(t.format == Format::Bf16)]
        };
        let table: Vec<Slice> = tensors.iter().map(slice).collect();
        let table = table.as_flattened();
        let partials: Address<f64> =
            self.scratch(&turn, "norm partials", 8 * (BLOCKS * tensors.len() + 1))?;
        let slices: Address<Slice> = self.scratch(&turn, "norm slices", 8 * table.len())?;
        for (i, chunk) in table.chunks(Staging::MOST / 8).enumerate() {
            // SAFETY: the staging slot holds the chunk.
            let fill = |slot: *mut u8| unsafe {
                std::ptr::copy_nonoverlapping(chunk.as_ptr(), slot.cast(), chunk.len())
            };
            let at = slices.skip_bytes(i * Staging::MOST);
            turn.state().staging.upload(&self.device, at, 8 * chunk.len(), fill)?;
        }
        let grid = Grid::of((BLOCKS, tensors.len(), 1), 256);
        self.launch_box(&turn, SUM_OF_SQUARES, grid, (slices, partials))?;
        let count = BLOCKS * tensors.len();
        let total = partials.skip(count);
        self.launch(&turn, SUM_PARTIALS, 1, 256, (count as u64, partials, total))?;
        let mut sum = 0.0f64;
        // SAFETY: the slot holds one f64, aligned to a page.
        let read = |slot: *const u8| sum = unsafe { *slot.cast() };
        turn.state().staging.download(&self.device, total, 8, read)?;
        Ok(sum)
    }

    /// Makes the working copy of `x[offset..offset + len]` follow the master copy.
    pub(crate) fn refresh(
        &self,
        turn: &Ready<'_>,
        x: &CudaTensor,
        offset: usize,
        len: usize,
    ) -> Result<()> {
        let Some(working) = &x.working else { return Ok(()) };
        let (from, to) =
            (x.numbers.address::<f32>().skip(offset), working.address::<bf16>().skip(offset));
        self.launch(turn, TO_BF16, len.div_ceil(256), 256, (len as u64, from, to))
    }
}

/// Only products read a matrix in fp8: its numbers are not the ones that came from the host.
fn refuse_fp8(x: &CudaTensor) -> Result<()> {
    match x.format {
        Format::Fp8 => Err(Error::Input(
            "this matrix is kept in fp8 for products alone; load the model again without fp8"
                .into(),
        )),
        Format::F32 | Format::Bf16 => Ok(()),
    }
}
