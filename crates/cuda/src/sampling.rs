//! Drawing tokens on the device: only the drawn tokens travel.

use catamount_model::{Error, Result, Sampling};

use crate::cuda::{Cuda, long_enough};
use crate::kernels::args;
use crate::tensor::CudaTensor;

impl Cuda {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn draw(
        &self,
        n: usize,
        vocab: usize,
        logits: &CudaTensor,
        sampling: Sampling,
        uniforms: &[f32],
        tokens: &mut [u32],
        log_p: &mut [f32],
    ) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        let turn = self.turn()?;
        self.device.refuse_while_recording("sampling")?;
        for have in [uniforms.len(), tokens.len(), log_p.len()] {
            long_enough(have, n)?;
        }
        if vocab == 0 {
            return Err(Error::Input("no token to draw from".into()));
        }
        let logits = self.read_exact(logits, n * vocab)?;
        // [uniforms, tokens, log_p], four bytes each
        let drawn = self.scratch(&turn, "drawn", 12 * n)?;
        let (uniforms_at, tokens_at, log_p_at) =
            (drawn, drawn + 4 * n as u64, drawn + 8 * n as u64);
        // SAFETY: the staging slot holds the bytes asked for, and f32 and u32 may have any bits.
        let fill =
            |to: *mut u8| unsafe { std::ptr::copy_nonoverlapping(uniforms.as_ptr(), to.cast(), n) };
        turn.state().staging.upload(&self.device, uniforms_at, 4 * n, fill)?;
        let Sampling { temperature, top_p } = sampling;
        self.launch(
            c"sample",
            n,
            1024,
            args![vocab, logits, temperature, top_p, uniforms_at, tokens_at, log_p_at],
        )?;
        // SAFETY: as above; both slices have at least n elements.
        let take = |from: *const u8| unsafe {
            std::ptr::copy_nonoverlapping(from.cast(), tokens.as_mut_ptr(), n);
            std::ptr::copy_nonoverlapping(from.add(4 * n).cast(), log_p.as_mut_ptr(), n);
        };
        turn.state().staging.download(&self.device, tokens_at, 8 * n, take)
    }
}
