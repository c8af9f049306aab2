//! The layers of a transformer, forward and backward.

use super::{
    Affine, Attended, Direction, Head, HeadGradients, Heads, Inner, Lora, LoraGradients, Memory,
    Norm, NormInput, Normed, Packed, Scores, Shape,
};
use crate::{Error, Result};

/// Operations of training and scoring; decoding uses the forward ones, too.
pub trait Layers: Memory {
    /// `out[i] = weight[tokens[i]]`, with weight `[vocab, d]`.
    fn embed(
        &self,
        n: usize,
        d: usize,
        weight: &Self::Tensor,
        tokens: &Self::Index,
        out: &mut Self::Tensor,
    ) -> Result<()>;
    /// Adds `dout[i]` to `dweight[tokens[i]]`.
    fn embed_backward(
        &self,
        n: usize,
        d: usize,
        dout: &Self::Tensor,
        tokens: &Self::Index,
        dweight: &mut Self::Tensor,
    ) -> Result<()>;

    /// `rstd = 1 / sqrt(mean(x²) + eps)`, `out = x * rstd * weight`, per row of `d`.
    fn rms_norm(
        &self,
        n: usize,
        norm: Norm<'_, Self::Tensor>,
        x: &Self::Tensor,
        normed: Normed<'_, Self::Tensor>,
    ) -> Result<()>;
    /// `sum = x + delta`, then [`Layers::rms_norm`] of `sum`.
    fn add_rms_norm(
        &self,
        n: usize,
        norm: Norm<'_, Self::Tensor>,
        x: &Self::Tensor,
        delta: &Self::Tensor,
        sum: &mut Self::Tensor,
        normed: Normed<'_, Self::Tensor>,
    ) -> Result<()>;
    /// Adds to `dx` the gradient through the norm of `x` (so that `dx` may already hold the
    /// residual path's), and to `dweight`.
    fn rms_norm_backward(
        &self,
        n: usize,
        norm: Norm<'_, Self::Tensor>,
        input: NormInput<'_, Self::Tensor>,
        dout: &Self::Tensor,
        dx: &mut Self::Tensor,
        dweight: Option<&mut Self::Tensor>,
    ) -> Result<()>;

    /// `y = x Wᵀ + bias` with x `[n, inputs]`.
    fn linear(
        &self,
        n: usize,
        map: Affine<'_, Self::Tensor>,
        x: &Self::Tensor,
        y: &mut Self::Tensor,
    ) -> Result<()>;
    /// Whether there are products in fp8 ([`Affine::fp8`]): why not, if not.
    fn check_fp8(&self) -> Result<()> {
        Err(no_fp8())
    }
    /// Readies a frozen W for such products, after which it may serve for nothing else.
    fn round_to_fp8(&self, shape: Shape, weight: &mut Self::Tensor) -> Result<()> {
        let _ = (shape, weight);
        self.check_fp8()
    }
    /// `dx = dy W`.
    fn linear_backward_input(
        &self,
        n: usize,
        map: Affine<'_, Self::Tensor>,
        dy: &Self::Tensor,
        dx: &mut Self::Tensor,
    ) -> Result<()>;
    /// Adds `dyᵀ x` to `dweight` and the column sums of `dy` to `dbias`.
    fn linear_backward_weight(
        &self,
        n: usize,
        shape: Shape,
        dy: &Self::Tensor,
        x: &Self::Tensor,
        dweight: &mut Self::Tensor,
        dbias: Option<&mut Self::Tensor>,
    ) -> Result<()>;

    /// `t = drop(x) Aᵀ` (`[n, parts * rank]`, kept for the backward pass), then adds `scale * t Bᵀ`
    /// to `y`, part by part.
    fn lora(
        &self,
        n: usize,
        lora: &Lora<'_, Self::Tensor>,
        x: &Self::Tensor,
        t: &mut Self::Tensor,
        y: &mut Self::Tensor,
    ) -> Result<()>;
    /// With `dt = scale * dy B`: adds `drop(dt A)` to `dx`, `dtᵀ drop(x)` to `da`, `scale * dyᵀ t`
    /// to `db`.
    fn lora_backward(
        &self,
        n: usize,
        lora: &Lora<'_, Self::Tensor>,
        inner: Inner<'_, Self::Tensor>,
        dy: &Self::Tensor,
        dx: &mut Self::Tensor,
        gradients: LoraGradients<'_, Self::Tensor>,
    ) -> Result<()>;

    /// Rotates the query and key heads of `qkv` in place: element `j` of a head's first half is
    /// paired with element `j` of its second half, by the angle whose cosine and sine are
    /// `table[position, 0, j]` and `table[position, 1, j]` (`table` is `[positions, 2, dim / 2]`).
    fn rope(
        &self,
        n: usize,
        heads: Heads,
        direction: Direction,
        positions: &Self::Index,
        table: &Self::Tensor,
        qkv: &mut Self::Tensor,
    ) -> Result<()>;

    /// Causal softmax attention within each packed sequence, scaled by `1 / sqrt(dim)`. `out` is
    /// `[n, heads * dim]` and `lse` `[n, heads]` keeps each query's log-sum-exp for the backward
    /// pass.
    fn attention(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &Self::Tensor,
        out: &mut Self::Tensor,
        lse: &mut Self::Tensor,
    ) -> Result<()>;
    /// The gradient of attention with respect to `qkv`.
    fn attention_backward(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        attended: Attended<'_, Self::Tensor>,
        dout: &Self::Tensor,
        dqkv: &mut Self::Tensor,
    ) -> Result<()>;

    /// `out = silu(gate) * up`, where a row of `gate_up` is `[gate (f), up (f)]`.
    fn swiglu(
        &self,
        n: usize,
        f: usize,
        gate_up: &Self::Tensor,
        out: &mut Self::Tensor,
    ) -> Result<()>;
    /// The gradient of SwiGLU with respect to `gate_up`.
    fn swiglu_backward(
        &self,
        n: usize,
        f: usize,
        gate_up: &Self::Tensor,
        dout: &Self::Tensor,
        dgate_up: &mut Self::Tensor,
    ) -> Result<()>;

    /// For each scored row, with logits `x[rows[j]] Wᵀ / temperature`: `lse[j]` is their
    /// log-sum-exp and `log_p[j]` the target's logit less that. Works in chunks of rows: the logits
    /// of all rows never exist at once.
    fn head(
        &self,
        head: &Head<'_, Self::Tensor, Self::Index>,
        x: &Self::Tensor,
        scores: Scores<'_, Self::Tensor>,
    ) -> Result<()>;
    /// The gradient of `sum_j coefficients[j] * log_p[j]`, where `log_p` and `lse` are
    /// [`Layers::head`]'s at the same temperature, for an `x` of `n` rows. The logits are computed
    /// again, chunk by chunk.
    fn head_backward(
        &self,
        n: usize,
        head: &Head<'_, Self::Tensor, Self::Index>,
        x: &Self::Tensor,
        lse: &Self::Tensor,
        coefficients: &Self::Tensor,
        gradients: HeadGradients<'_, Self::Tensor>,
    ) -> Result<()>;
}

/// A device that has no products in fp8 was asked for one.
pub(crate) fn no_fp8() -> Error {
    Error::Device(
        "products in fp8 need an NVIDIA GPU of compute capability 8.9 (Ada) or newer; this is the \
         processor"
            .into(),
    )
}
