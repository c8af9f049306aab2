//! The operations a model is made of. The model plans the buffers and writes the chain rule out by
//! hand; a backend only computes. Every forward operation has its backward beside it, and there is
//! no tape.
//!
//! Conventions, for every operation:
//! - Matrices are row-major and dense. `n` counts token rows; a buffer may be longer than the
//!   operation needs, never shorter.
//! - An output is overwritten unless its documentation says "adds to". Gradients of parameters are
//!   always added to, so that micro-batches accumulate; gradients of activations are overwritten
//!   unless said otherwise.
//! - A linear map's weight is `[out, in]`, as in Hugging Face checkpoints: `y = x Wᵀ + b`.
//! - Operations may be asynchronous; [`Backend::download`], [`Backend::sum_of_squares`] and
//!   [`Backend::sample`] wait.
//! - Row `i` of a forward result depends on row `i` of the input alone (and on its sequence, in
//!   attention), bit for bit: what else is in the batch must not change a sample. A CUDA backend
//!   may relax this to the same batch shape, and says so.

use std::ops::Range;

use crate::{Draws, Result, Sampling};

/// What a buffer will hold, so that a backend can choose its precision. The CPU keeps everything in
/// f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A parameter that is only read: bf16 on a GPU.
    Frozen,
    /// A parameter being trained: the f32 master copy, with a working copy beside it where the
    /// backend wants one.
    Trained,
    /// An activation or its gradient: bf16 on a GPU.
    Activation,
    /// Always f32: parameter gradients, optimizer state, statistics, log-probabilities,
    /// coefficients, logits.
    Exact,
}

/// The shape of attention. A row of `qkv` is `heads` query heads, then `kv_heads` key heads, then
/// `kv_heads` value heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Numbers in a head; even.
    pub dim: usize,
}

impl Heads {
    /// Width of a `qkv` row.
    pub fn qkv(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.dim
    }

    /// Width of the queries, and of attention's output.
    pub fn q(&self) -> usize {
        self.heads * self.dim
    }

    /// Width of the keys, and of the values.
    pub fn kv(&self) -> usize {
        self.kv_heads * self.dim
    }
}

/// Sequences laid end to end on the device; attention never crosses from one into another.
pub struct Packed<B: Backend> {
    /// Token rows.
    pub n: usize,
    /// Sequences.
    pub sequences: usize,
    /// The longest sequence's length.
    pub longest: usize,
    /// `[n]` token of each row.
    pub tokens: B::Index,
    /// `[n]` position of each row in its sequence.
    pub positions: B::Index,
    /// `[sequences + 1]` first row of each sequence, then `n` (known elsewhere as `cu_seqlens`).
    pub starts: B::Index,
}

/// A low-rank adapter of one linear map: `y += scale * (drop(x) Aᵀ) Bᵀ`. The linear maps of a block
/// that share an input are one fused matrix here (q, k, v; gate, up), so an adapter has parts, each
/// a range of output rows with its own `A` and `B`. The parts share one dropout mask.
pub struct Lora<'a, T> {
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

/// Where one decoded row finds its past: two runs of rows in the cache. The prefix is shared by the
/// samples of one state; the own run ends with the row being decoded. A row with both lengths zero
/// is padding and its results are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First cache row of the shared prefix.
    pub prefix: u32,
    /// Rows of the shared prefix.
    pub prefix_len: u32,
    /// First cache row of the sample's own tokens.
    pub own: u32,
    /// Rows of the sample's own tokens, the current one included.
    pub own_len: u32,
}

/// AdamW's hyperparameters for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Learning rate of this step.
    pub lr: f32,
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Added to the root of the second moment.
    pub eps: f32,
    /// Decoupled weight decay; the caller passes zero for norms and biases.
    pub weight_decay: f32,
    /// The step's number, from 1, for bias correction.
    pub step: u64,
    /// The gradient is multiplied by this first: clipping and averaging.
    pub grad_scale: f32,
}

/// A device and the fused operations on it.
pub trait Backend: Send + Sync + Sized + 'static {
    /// A flat buffer of numbers.
    type Tensor: Send + Sync;
    /// A flat buffer of `u32`.
    type Index: Send + Sync;

    /// The device, for manifests.
    fn describe(&self) -> String;

    /// The numbers it computes in: another arithmetic samples other tactics.
    fn arithmetic(&self) -> &'static str {
        "f32"
    }

    /// Runs a piece of work of many operations where the device likes it run: entering a pool of
    /// threads once is cheaper than once per operation.
    fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        work()
    }

    /// A buffer of `len` zeros.
    fn zeros(&self, len: usize, kind: Kind) -> Result<Self::Tensor>;
    /// Elements in a buffer.
    fn len(&self, tensor: &Self::Tensor) -> usize;
    /// Copies numbers from the host to `to[offset..]`.
    fn upload(&self, from: &[f32], to: &mut Self::Tensor, offset: usize) -> Result<()>;
    /// Copies numbers to the host from `from[offset..]`.
    fn download(&self, from: &Self::Tensor, offset: usize, to: &mut [f32]) -> Result<()>;
    /// A buffer of `len` zero indices.
    fn indices(&self, len: usize) -> Result<Self::Index>;
    /// Copies indices from the host to the start of `to`.
    fn upload_indices(&self, from: &[u32], to: &mut Self::Index) -> Result<()>;

    /// Runs `body`, which only queues operations on the same buffers with the same sizes each time
    /// it is called with this key. A backend may record it once and replay the recording instead
    /// (CUDA graphs).
    fn replay(&self, key: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _ = key;
        body()
    }

    /// How many rows a decoding step of `n` samples is padded to, so that few recordings serve
    /// every size.
    fn decode_rows(&self, n: usize) -> usize {
        n
    }

    /// Sets the first `len` elements to zero.
    fn clear(&self, len: usize, x: &mut Self::Tensor) -> Result<()>;
    /// `x *= factor`.
    fn scale(&self, len: usize, factor: f32, x: &mut Self::Tensor) -> Result<()>;
    /// `y += factor * x`.
    fn axpy(&self, len: usize, factor: f32, x: &Self::Tensor, y: &mut Self::Tensor) -> Result<()>;
    /// The sum of squares over several buffers: the global gradient norm, squared.
    fn sum_of_squares(&self, tensors: &[&Self::Tensor]) -> Result<f64>;

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
    #[allow(clippy::too_many_arguments)]
    fn rms_norm(
        &self,
        n: usize,
        d: usize,
        eps: f32,
        x: &Self::Tensor,
        weight: &Self::Tensor,
        rstd: &mut Self::Tensor,
        out: &mut Self::Tensor,
    ) -> Result<()>;
    /// `sum = x + delta`, then [`Backend::rms_norm`] of `sum`.
    #[allow(clippy::too_many_arguments)]
    fn add_rms_norm(
        &self,
        n: usize,
        d: usize,
        eps: f32,
        x: &Self::Tensor,
        delta: &Self::Tensor,
        weight: &Self::Tensor,
        sum: &mut Self::Tensor,
        rstd: &mut Self::Tensor,
        out: &mut Self::Tensor,
    ) -> Result<()>;
    /// Adds to `dx` the gradient through the norm of `x` (so that `dx` may already hold the
    /// residual path's), and to `dweight`.
    #[allow(clippy::too_many_arguments)]
    fn rms_norm_backward(
        &self,
        n: usize,
        d: usize,
        x: &Self::Tensor,
        weight: &Self::Tensor,
        rstd: &Self::Tensor,
        dout: &Self::Tensor,
        dx: &mut Self::Tensor,
        dweight: Option<&mut Self::Tensor>,
    ) -> Result<()>;

    /// `y = x Wᵀ + bias` with x `[n, inputs]`, W `[outputs, inputs]`.
    #[allow(clippy::too_many_arguments)]
    fn linear(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
        x: &Self::Tensor,
        weight: &Self::Tensor,
        bias: Option<&Self::Tensor>,
        y: &mut Self::Tensor,
    ) -> Result<()>;
    /// `dx = dy W`.
    fn linear_backward_input(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
        dy: &Self::Tensor,
        weight: &Self::Tensor,
        dx: &mut Self::Tensor,
    ) -> Result<()>;
    /// Adds `dyᵀ x` to `dweight` and the column sums of `dy` to `dbias`.
    #[allow(clippy::too_many_arguments)]
    fn linear_backward_weight(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
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
    #[allow(clippy::too_many_arguments)]
    fn lora_backward(
        &self,
        n: usize,
        lora: &Lora<'_, Self::Tensor>,
        x: &Self::Tensor,
        t: &Self::Tensor,
        dy: &Self::Tensor,
        dx: &mut Self::Tensor,
        da: &mut Self::Tensor,
        db: &mut Self::Tensor,
    ) -> Result<()>;

    /// Rotates the query and key heads of `qkv` in place: element `j` of a head's first half is
    /// paired with element `j` of its second half, by the angle whose cosine and sine are
    /// `table[position, 0, j]` and `table[position, 1, j]` (`table` is `[positions, 2, dim / 2]`).
    /// `inverse` rotates back, which is the backward pass.
    fn rope(
        &self,
        n: usize,
        heads: Heads,
        qkv: &mut Self::Tensor,
        positions: &Self::Index,
        table: &Self::Tensor,
        inverse: bool,
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
    #[allow(clippy::too_many_arguments)]
    fn attention_backward(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &Self::Tensor,
        out: &Self::Tensor,
        lse: &Self::Tensor,
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

    /// For each of `m` scored rows, with logits `x[rows[j]] Wᵀ / temperature`: `lse[j]` is their
    /// log-sum-exp and `log_p[j]` the target's logit less that. Works in chunks of rows: the logits
    /// of all rows never exist at once.
    #[allow(clippy::too_many_arguments)]
    fn head(
        &self,
        m: usize,
        vocab: usize,
        d: usize,
        x: &Self::Tensor,
        weight: &Self::Tensor,
        rows: &Self::Index,
        targets: &Self::Index,
        temperature: f32,
        log_p: &mut Self::Tensor,
        lse: &mut Self::Tensor,
    ) -> Result<()>;
    /// The gradient of `sum_j coefficients[j] * log_p[j]`, where `log_p` and `lse` are
    /// [`Backend::head`]'s at the same temperature: `dx` (`[n, d]`) is overwritten, zero where a
    /// row is not scored (rows are distinct); `dweight` is added to. The logits are computed again,
    /// chunk by chunk.
    #[allow(clippy::too_many_arguments)]
    fn head_backward(
        &self,
        n: usize,
        m: usize,
        vocab: usize,
        d: usize,
        x: &Self::Tensor,
        weight: &Self::Tensor,
        rows: &Self::Index,
        targets: &Self::Index,
        temperature: f32,
        lse: &Self::Tensor,
        coefficients: &Self::Tensor,
        dx: &mut Self::Tensor,
        dweight: Option<&mut Self::Tensor>,
    ) -> Result<()>;

    /// One AdamW update of `len` parameters, in place.
    fn adamw(
        &self,
        len: usize,
        step: &AdamW,
        grad: &Self::Tensor,
        m: &mut Self::Tensor,
        v: &mut Self::Tensor,
        value: &mut Self::Tensor,
    ) -> Result<()>;

    /// `out[j] = x[rows[j]]` for rows of `d`.
    fn gather(
        &self,
        m: usize,
        d: usize,
        x: &Self::Tensor,
        rows: &Self::Index,
        out: &mut Self::Tensor,
    ) -> Result<()>;
    /// Stores the (rotated) keys and the values of `qkv`'s row `i` at row `slots[i]` of one layer's
    /// cache, which holds `capacity * 2 * kv` numbers in the backend's own order; `u32::MAX` stores
    /// nothing.
    fn cache_write(
        &self,
        n: usize,
        heads: Heads,
        qkv: &Self::Tensor,
        slots: &Self::Index,
        cache: &mut Self::Tensor,
    ) -> Result<()>;
    /// Attention of `n` single decoded rows over their cached past; `spans` holds a [`Span`] per
    /// row as four numbers.
    fn cache_attention(
        &self,
        n: usize,
        heads: Heads,
        qkv: &Self::Tensor,
        cache: &Self::Tensor,
        spans: &Self::Index,
        out: &mut Self::Tensor,
    ) -> Result<()>;
    /// Draws one token for each row of `draws` from the same row of `logits` (`[n, vocab]`): the
    /// token whose interval of the cumulative distribution, most probable set first cut to `top_p`,
    /// holds the row's uniform number. In that distribution the row's scarce tokens come after the
    /// others, in their own order and only with what is left of them; the others are in token
    /// order.
    fn sample(
        &self,
        vocab: usize,
        logits: &Self::Tensor,
        sampling: Sampling,
        draws: &mut Draws,
    ) -> Result<()>;
}
