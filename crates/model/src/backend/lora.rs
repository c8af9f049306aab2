//! Low-rank adapters (LoRA) as operations see them.

use std::ops::Range;

/// A low-rank adapter of one linear map: `y += scale * (drop(x) Aᵀ) Bᵀ`. The linear maps of a block
/// that share an input are one fused matrix here (q, k, v; gate, up), so an adapter has parts, each
/// a range of output rows with its own `A` and `B`. The parts share one dropout mask.
pub struct Lora<'a, T: ?Sized> {
    /// `[parts * rank, in]`: the parts' `A` stacked.
    pub a: &'a T,
    /// `[sum of part lengths, rank]`: the parts' `B` stacked.
    pub b: &'a T,
    /// r.
    pub rank: usize,
    /// alpha / r.
    pub scale: f32,
    /// Width of the input.
    pub inputs: usize,
    /// Width of the whole fused output.
    pub outputs: usize,
    /// The output columns each part adds to, in order and without overlap.
    pub parts: &'a [Range<usize>],
    /// Applied to the adapter's input; none when only scoring or sampling.
    pub dropout: Option<Dropout>,
}

impl<T: ?Sized> Lora<'_, T> {
    /// The same adapter with its matrices in another form.
    pub fn with<'b, U: ?Sized>(&'b self, a: &'b U, b: &'b U) -> Lora<'b, U> {
        let Lora { rank, scale, inputs, outputs, parts, dropout, .. } = *self;
        Lora { a, b, rank, scale, inputs, outputs, parts, dropout }
    }

    /// Columns of the inner product: `rank` a part.
    pub fn width(&self) -> usize {
        self.parts.len() * self.rank
    }
}

/// What an adapter computed, as its backward pass needs it.
pub struct Inner<'a, T: ?Sized> {
    /// `[n, inputs]`: what it read, before dropout.
    pub x: &'a T,
    /// `[n, parts * rank]`: the inner product `drop(x) Aᵀ`.
    pub t: &'a T,
}

/// Gradients of an adapter's matrices, which are added to.
pub struct LoraGradients<'a, T: ?Sized> {
    /// Of [`Lora::a`].
    pub da: &'a mut T,
    /// Of [`Lora::b`].
    pub db: &'a mut T,
}

/// A dropout mask that is a function of its key, so that the backward pass and recomputation see
/// the same one: element `i` (of the row-major `[n, in]` input) is kept when [`Dropout::keeps`]
/// says so, and then multiplied by `1 / (1 - p)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// Probability of dropping an element, below 1.
    pub p: f32,
    /// Differs for every step, layer and linear map.
    pub key: u64,
}

impl Dropout {
    /// Whether element `i` survives: a 32-bit hash of (key, i) against p. Backends must agree on
    /// it.
    #[inline]
    pub fn keeps(&self, i: u64) -> bool {
        let mut z = (i as u32) ^ (self.key as u32) ^ ((i >> 32) as u32).wrapping_mul(0x9e37_79b9);
        z = (z ^ (z >> 16)).wrapping_mul(0x7feb_352d);
        z = (z ^ (self.key >> 32) as u32 ^ (z >> 15)).wrapping_mul(0x846c_a68b);
        z ^= z >> 16;
        // 24 bits, so that f32 comparison is exact and the same everywhere.
        (z >> 8) as f32 * (1.0 / 16_777_216.0) >= self.p
    }
}
