//! [`Cuda`] as a [`catamount_model::Backend`]: small operations here, the larger ones in files of
//! their own.

use catamount_model::{
    AdamW, Affine, Attended, Decode, Direction, Draws, Head, HeadGradients, Heads, Inner, Kind,
    Layers, Lora, LoraGradients, Memory, Norm, NormInput, Normed, Optimize, Packed, Result,
    Sampling, Scores, Shape, Update,
};
use cudarc::driver::result;

use crate::address::{Address, Four};
use crate::cuda::{Cuda, Precision, row_threads};
use crate::device::{Buffer, Explain};
use crate::kernels::{
    ADD_RMS_NORM, CACHE_COPY, EMBED, EMBED_BACKWARD, GATHER, RMS_NORM, RMS_NORM_BACKWARD, SWIGLU,
    SWIGLU_BACKWARD,
};
use crate::launch::Grid;
use crate::side::Queue;
use crate::tensor::{CudaIndex, CudaTensor, Format};

impl Cuda {
    pub(crate) fn clear_bytes<T>(
        &self,
        at: &dyn Queue,
        to: Address<T>,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller has checked that the buffer is that long.
        unsafe { result::memset_d8_async(to.raw(), 0, bytes, at.stream()) }
            .explain("clearing memory")
    }
}

impl Memory for Cuda {
    type Tensor = CudaTensor;
    type Index = CudaIndex;

    fn arithmetic(&self) -> &'static str {
        match self.precision {
            Precision::Bf16 => "bf16",
            Precision::F32 => "f32",
        }
    }

    fn describe(&self) -> String {
        let d = &self.device;
        let gib = d.total as f64 / (1u64 << 30) as f64;
        let precision = self.arithmetic();
        format!(
            "cuda:{} {} ({}.{}, {gib:.0} GiB), {precision}",
            d.ordinal, d.name, d.capability.0, d.capability.1
        )
    }

    fn zeros(&self, len: usize, kind: Kind) -> Result<CudaTensor> {
        let _turn = self.turn()?;
        let half = self.precision == Precision::Bf16;
        match kind {
            Kind::Frozen | Kind::Activation => {
                CudaTensor::zeros(&self.device, len, self.format(), false)
            }
            Kind::Trained => CudaTensor::zeros(&self.device, len, Format::F32, half),
            Kind::Exact => CudaTensor::zeros(&self.device, len, Format::F32, false),
        }
    }

    fn len(&self, tensor: &CudaTensor) -> usize {
        tensor.len
    }

    fn upload(&self, from: &[f32], to: &mut CudaTensor, offset: usize) -> Result<()> {
        self.upload_numbers(from, to, offset)
    }

    fn download(&self, from: &CudaTensor, offset: usize, to: &mut [f32]) -> Result<()> {
        self.download_numbers(from, offset, to)
    }

    fn clear(&self, len: usize, x: &mut CudaTensor) -> Result<()> {
        self.clear_buffers([(len, x)])
    }

    fn indices(&self, len: usize) -> Result<CudaIndex> {
        let _turn = self.turn()?;
        Ok(CudaIndex { len, numbers: Buffer::zeros(&self.device, 4 * len)?, version: 0 })
    }

    fn upload_indices(&self, from: &[u32], to: &mut CudaIndex) -> Result<()> {
        self.upload_index(from, to)
    }
}

impl Layers for Cuda {
    fn embed(
        &self,
        n: usize,
        d: usize,
        weight: &CudaTensor,
        tokens: &CudaIndex,
        out: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        let vocab = weight.len / d.max(1);
        let (weight, tokens) = (self.read(weight, 0)?, self.index(tokens, n)?);
        let out = self.write(out, n * d)?;
        self.launch(&turn, EMBED, n, row_threads(d), (d, vocab, weight, tokens, out))
    }

    fn embed_backward(
        &self,
        n: usize,
        d: usize,
        dout: &CudaTensor,
        tokens: &CudaIndex,
        dweight: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        let vocab = dweight.len / d.max(1);
        let (dout, tokens) = (self.read(dout, n * d)?, self.index(tokens, n)?);
        let dweight = self.write_exact(dweight, 0)?;
        self.launch(&turn, EMBED_BACKWARD, n, 256, (n, d, vocab, dout, tokens, dweight))
    }

    fn rms_norm(
        &self,
        n: usize,
        norm: Norm<'_, CudaTensor>,
        x: &CudaTensor,
        normed: Normed<'_, CudaTensor>,
    ) -> Result<()> {
        let turn = self.turn()?;
        let Norm { d, eps, weight } = norm;
        let (x, weight) = (self.read(x, n * d)?, self.read(weight, d)?);
        let (rstd, out) = (self.write_exact(normed.rstd, n)?, self.write(normed.out, n * d)?);
        self.launch(&turn, RMS_NORM, n, row_threads(d), (d, eps, x, weight, rstd, out))
    }

    fn add_rms_norm(
        &self,
        n: usize,
        norm: Norm<'_, CudaTensor>,
        x: &CudaTensor,
        delta: &CudaTensor,
        sum: &mut CudaTensor,
        normed: Normed<'_, CudaTensor>,
    ) -> Result<()> {
        let Norm { d, eps, weight } = norm;
        let (turn, part) = self.turn_to_wait()?.take_part(delta.numbers.id, n * d)?;
        let (x, delta, weight) =
            (self.read(x, n * d)?, self.read(delta, n * d)?, self.read(weight, d)?);
        let sum = self.write(sum, n * d)?;
        let (rstd, out) = (self.write_exact(normed.rstd, n)?, self.write(normed.out, n * d)?);
        self.launch(
            &turn,
            ADD_RMS_NORM,
            n,
            row_threads(d),
            (d, eps, x, delta, part, weight, sum, rstd, out),
        )
    }

    fn rms_norm_backward(
        &self,
        n: usize,
        norm: Norm<'_, CudaTensor>,
        input: NormInput<'_, CudaTensor>,
        dout: &CudaTensor,
        dx: &mut CudaTensor,
        dweight: Option<&mut CudaTensor>,
    ) -> Result<()> {
        let turn = self.turn()?;
        let d = norm.d;
        let (x, weight) = (self.read(input.x, n * d)?, self.read(norm.weight, d)?);
        let rstd = self.read_exact(input.rstd, n)?;
        let (dout, dx) = (self.read(dout, n * d)?, self.write(dx, n * d)?);
        self.launch(&turn, RMS_NORM_BACKWARD, n, row_threads(d), (d, x, weight, rstd, dout, dx))?;
        match dweight {
            Some(dweight) => {
                let sums = self.write_exact(dweight, d)?;
                self.add_column_sums(&turn, [n, d], dout, Some((x, rstd)), sums)
            }
            None => Ok(()),
        }
    }

    fn linear(
        &self,
        n: usize,
        map: Affine<'_, CudaTensor>,
        x: &CudaTensor,
        y: &mut CudaTensor,
    ) -> Result<()> {
        self.linear_forward(n, map, x, y)
    }

    fn check_fp8(&self) -> Result<()> {
        self.can_fp8()
    }

    fn round_to_fp8(&self, shape: Shape, weight: &mut CudaTensor) -> Result<()> {
        self.matrix_to_fp8(shape, weight)
    }

    fn linear_backward_input(
        &self,
        n: usize,
        map: Affine<'_, CudaTensor>,
        dy: &CudaTensor,
        dx: &mut CudaTensor,
    ) -> Result<()> {
        self.linear_input_gradient(n, map, dy, dx)
    }

    fn linear_backward_weight(
        &self,
        n: usize,
        shape: Shape,
        dy: &CudaTensor,
        x: &CudaTensor,
        dweight: &mut CudaTensor,
        dbias: Option<&mut CudaTensor>,
    ) -> Result<()> {
        self.linear_weight_gradient(n, shape, dy, x, dweight, dbias)
    }

    fn lora(
        &self,
        n: usize,
        lora: &Lora<'_, CudaTensor>,
        x: &CudaTensor,
        t: &mut CudaTensor,
        y: &mut CudaTensor,
    ) -> Result<()> {
        self.lora_forward(n, lora, x, t, y)
    }

    fn lora_backward(
        &self,
        n: usize,
        lora: &Lora<'_, CudaTensor>,
        inner: Inner<'_, CudaTensor>,
        dy: &CudaTensor,
        dx: &mut CudaTensor,
        gradients: LoraGradients<'_, CudaTensor>,
    ) -> Result<()> {
        self.lora_gradients(n, lora, inner, dy, dx, gradients)
    }

    fn rope(
        &self,
        n: usize,
        heads: Heads,
        direction: Direction,
        positions: &CudaIndex,
        table: &CudaTensor,
        qkv: &mut CudaTensor,
    ) -> Result<()> {
        self.rotate_heads(n, heads, direction, positions, table, qkv)
    }

    fn attention(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &CudaTensor,
        out: &mut CudaTensor,
        lse: &mut CudaTensor,
    ) -> Result<()> {
        self.attention_forward(heads, packed, qkv, out, lse)
    }

    fn attention_backward(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        attended: Attended<'_, CudaTensor>,
        dout: &CudaTensor,
        dqkv: &mut CudaTensor,
    ) -> Result<()> {
        self.attention_gradient(heads, packed, attended, dout, dqkv)
    }

    fn swiglu(&self, n: usize, f: usize, gate_up: &CudaTensor, out: &mut CudaTensor) -> Result<()> {
        let (turn, part) = self.turn_to_wait()?.take_part(gate_up.numbers.id, 2 * n * f)?;
        let (gate_up, out) = (self.read(gate_up, 2 * n * f)?, self.write(out, n * f)?);
        let grid = Grid::of((n, per_thread(f).div_ceil(256), 1), 256);
        self.launch_box(&turn, SWIGLU, grid, (f, gate_up, part, out))
    }

    fn swiglu_backward(
        &self,
        n: usize,
        f: usize,
        gate_up: &CudaTensor,
        dout: &CudaTensor,
        dgate_up: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn_beside()?.writing(&[dgate_up.numbers.id])?.settle()?;
        let (gate_up, dout) = (self.read(gate_up, 2 * n * f)?, self.read(dout, n * f)?);
        let dgate_up = self.write(dgate_up, 2 * n * f)?;
        let grid = Grid::of((n, per_thread(f).div_ceil(256), 1), 256);
        self.launch_box(&turn, SWIGLU_BACKWARD, grid, (f, gate_up, dout, dgate_up))
    }

    fn head(
        &self,
        head: &Head<'_, CudaTensor, CudaIndex>,
        x: &CudaTensor,
        scores: Scores<'_, CudaTensor>,
    ) -> Result<()> {
        self.head_forward(head, x, scores)
    }

    fn head_backward(
        &self,
        n: usize,
        head: &Head<'_, CudaTensor, CudaIndex>,
        x: &CudaTensor,
        lse: &CudaTensor,
        coefficients: &CudaTensor,
        gradients: HeadGradients<'_, CudaTensor>,
    ) -> Result<()> {
        self.head_gradient(n, head, x, lse, coefficients, gradients)
    }
}

impl Decode for Cuda {
    fn replay(&self, key: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.replay_body(key, body)
    }

    fn decode_rows(&self, n: usize) -> usize {
        match n {
            0..=16 => n.next_multiple_of(8).max(8),
            17..=64 => n.next_multiple_of(16),
            _ => n.next_multiple_of(64),
        }
    }

    fn gather(
        &self,
        m: usize,
        d: usize,
        x: &CudaTensor,
        rows: &CudaIndex,
        out: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        let n = x.len / d.max(1);
        let (x, rows, out) = (self.read(x, 0)?, self.index(rows, m)?, self.write(out, m * d)?);
        self.launch(&turn, GATHER, m, row_threads(d), (d, n, x, rows, out))
    }

    fn cache_write(
        &self,
        n: usize,
        heads: Heads,
        qkv: &CudaTensor,
        slots: &CudaIndex,
        cache: &mut CudaTensor,
    ) -> Result<()> {
        self.keep_rows(n, heads, qkv, slots, cache)
    }

    fn cache_attention(
        &self,
        n: usize,
        heads: Heads,
        qkv: &CudaTensor,
        cache: &CudaTensor,
        spans: &CudaIndex,
        out: &mut CudaTensor,
    ) -> Result<()> {
        self.decode_attention(n, heads, qkv, cache, spans, out)
    }

    fn cache_copy(
        &self,
        sequences: usize,
        heads: Heads,
        places: &CudaIndex,
        cache: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        let capacity = cache.len / (2 * heads.kv()).max(1);
        let places = self.index(places, 4 * sequences)?.cast::<Four>();
        let list = (2 * heads.kv(), capacity, places, self.write(cache, 0)?);
        self.launch_box(&turn, CACHE_COPY, Grid::of((sequences, 8, 1), 256), list)
    }

    fn prompt_attention(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &CudaTensor,
        cache: &CudaTensor,
        places: &CudaIndex,
        out: &mut CudaTensor,
    ) -> Result<()> {
        self.attention_of_ends(heads, packed, qkv, cache, places, out)
    }

    fn sample(
        &self,
        vocab: usize,
        logits: &CudaTensor,
        sampling: Sampling,
        draws: &mut Draws,
    ) -> Result<()> {
        self.draw(vocab, logits, sampling, draws)
    }
}

impl Optimize for Cuda {
    fn clear_all(&self, tensors: &mut [&mut CudaTensor]) -> Result<()> {
        self.clear_buffers(tensors.iter_mut().map(|x| (x.len, &mut **x)))
    }

    fn sum_of_squares(&self, tensors: &[&CudaTensor]) -> Result<f64> {
        self.squares(tensors)
    }

    fn adamw(&self, step: &AdamW, updates: &mut [Update<'_, CudaTensor>]) -> Result<()> {
        self.update_parameters(step, updates)
    }
}

/// Threads that a row of `f` takes: eight numbers each where rows allow it.
fn per_thread(f: usize) -> usize {
    if f.is_multiple_of(8) { f / 8 } else { f }
}
