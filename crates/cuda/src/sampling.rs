//! Drawing tokens on the device: only the drawn tokens travel.

use catamount_model::{Draws, Error, Result, Sampling};

use crate::address::Address;
use crate::cuda::{Cuda, long_enough};
use crate::kernels::SAMPLE;
use crate::staging::Staging;
use crate::tensor::CudaTensor;
use crate::turn::Ready;

impl Cuda {
    pub(crate) fn draw(
        &self,
        vocab: usize,
        logits: &CudaTensor,
        sampling: Sampling,
        draws: &mut Draws,
    ) -> Result<()> {
        let (n, scarce) = (draws.len(), draws.scarce.len());
        if n == 0 {
            return Ok(());
        }
        let turn = self.turn()?;
        self.device.refuse_while_recording("sampling")?;
        draws.make_room();
        for (have, need) in [(draws.starts.len(), n + 1), (draws.left.len(), scarce)] {
            long_enough(have, need)?;
        }
        if vocab == 0 || draws.scarce.iter().any(|token| *token as usize >= vocab) {
            return Err(Error::Input("no token to draw from, or one that there is not".into()));
        }
        let logits = self.read_exact(logits, n * vocab)?;
        // Four bytes each: what comes back (tokens, log_p, p, rest), then what goes there.
        let drawn: Address<u32> = self.scratch(&turn, "drawn", 4 * (6 * n + 1))?;
        let (tokens_at, starts_at) = (drawn, drawn.skip(5 * n));
        let [log_p_at, p_at, rest_at, uniforms_at] =
            [1, 2, 3, 4].map(|i| drawn.cast::<f32>().skip(i * n));
        // Scarce tokens, what is left of each, and room for their logits and weights. Grown by
        // doubling, since there are more from step to step.
        let room = scarce.next_power_of_two().max(1024);
        let scarce_at: Address<u32> = self.scratch(&turn, "scarce", 16 * room)?;
        let [left_at, kept_at, weights_at] =
            [1, 2, 3].map(|i| scarce_at.cast::<f32>().skip(i * room));
        self.send(&turn, &draws.uniforms, uniforms_at)?;
        if scarce > 0 {
            self.send(&turn, &draws.starts, starts_at)?;
            self.send(&turn, &draws.scarce, scarce_at)?;
            self.send(&turn, &draws.left, left_at)?;
        }
        let starts_at = if scarce > 0 { starts_at } else { Address::NULL };
        let Sampling { temperature, top_p } = sampling;
        self.launch(
            &turn,
            SAMPLE,
            n,
            1024,
            (
                vocab,
                logits,
                temperature,
                top_p,
                uniforms_at,
                starts_at,
                scarce_at,
                left_at,
                kept_at,
                weights_at,
                tokens_at,
                log_p_at,
                p_at,
                rest_at,
            ),
        )?;
        let Draws { tokens, log_p, p, rest, .. } = draws;
        // SAFETY: the staging slot holds the bytes asked for, and f32 and u32 may have any bits;
        // `make_room` has made every list n long.
        let take = |from: *const u8| unsafe {
            std::ptr::copy_nonoverlapping(from.cast(), tokens.as_mut_ptr(), n);
            for (i, list) in [log_p, p, rest].into_iter().enumerate() {
                let from = from.add(4 * (i + 1) * n);
                std::ptr::copy_nonoverlapping(from.cast(), list.as_mut_ptr(), n);
            }
        };
        turn.state().staging.download(&self.device, tokens_at, 16 * n, take)
    }

    /// Copies numbers of four bytes to the device, in as many pieces as it takes.
    fn send<T: Copy>(&self, turn: &Ready<'_>, from: &[T], to: Address<T>) -> Result<()> {
        const { assert!(size_of::<T>() == 4) };
        for (i, piece) in from.chunks(Staging::MOST / 4).enumerate() {
            // SAFETY: the staging slot holds the bytes asked for.
            let fill = |slot: *mut u8| unsafe {
                std::ptr::copy_nonoverlapping(piece.as_ptr(), slot.cast(), piece.len())
            };
            let to = to.skip_bytes(i * Staging::MOST);
            turn.state().staging.upload(&self.device, to, 4 * piece.len(), fill)?;
        }
        Ok(())
    }
}
