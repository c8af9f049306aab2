//! [`Cuda`] as a [`Backend`]: small operations here, the larger ones in files of their own.

use std::sync::atomic::Ordering;

use catamount_model::{AdamW, Backend, Draws, Heads, Kind, Lora, Packed, Result, Sampling};
use cudarc::driver::result;

use crate::cuda::{Cuda, Precision, long_enough, row_threads};
use crate::device::{Buffer, Explain};
use crate::kernels::args;
use crate::tensor::{CudaIndex, CudaTensor, Format};

impl Cuda {
    pub(crate) fn clear_bytes(&self, pointer: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller has checked that the buffer is that long.
        unsafe { result::memset_d8_async(pointer, 0, bytes, self.device.current()) }
            .explain("clearing memory")
    }

    /// `y = a x + b y`.
    fn axpby(
        &self,
        len: usize,
        a: f32,
        x: Option<&CudaTensor>,
        b: f32,
        y: &mut CudaTensor,
    ) -> Result<()> {
        let _turn = self.turn()?;
        long_enough(y.len, len)?;
        let (from, format) = match x {
            Some(x) => {
                long_enough(x.len, len)?;
                (x.numbers.pointer(), x.format)
            }
            None => (0, y.format),
        };
        let kernel = match (format, y.format) {
            (Format::F32, Format::F32) => c"axpby_f32_f32",
            (Format::F32, Format::Bf16) => c"axpby_f32_bf16",
            (Format::Bf16, Format::F32) => c"axpby_bf16_f32",
            (Format::Bf16, Format::Bf16) => c"axpby_bf16_bf16",
        };
        y.version += 1;
        let to = y.numbers.pointer();
        // Without x its factor is zero, and the kernel reads nothing of it.
        self.launch(kernel, len.div_ceil(256), 256, args![len as u64, a, from, b, to])?;
        self.refresh(y, 0, len)
    }
}

impl Backend for Cuda {
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

    fn indices(&self, len: usize) -> Result<CudaIndex> {
        let _turn = self.turn()?;
        Ok(CudaIndex { len, numbers: Buffer::zeros(&self.device, 4 * len)?, version: 0 })
    }

    fn upload_indices(&self, from: &[u32], to: &mut CudaIndex) -> Result<()> {
        self.upload_index(from, to)
    }

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

    fn clear(&self, len: usize, x: &mut CudaTensor) -> Result<()> {
        let turn = self.turn_to_wait()?;
        long_enough(x.len, len)?;
        x.version += 1;
        let copies = [
            Some((x.numbers.pointer(), x.format.bytes())),
            x.working.as_ref().map(|w| (w.pointer(), 2)),
        ];
        for (pointer, bytes) in copies.into_iter().flatten() {
            if self.device.recording.load(Ordering::Relaxed) {
                self.clear_bytes(pointer, len * bytes)?;
            } else {
                self.queue_clear(&turn, pointer, len * bytes)?;
            }
        }
        Ok(())
    }

    fn scale(&self, len: usize, factor: f32, x: &mut CudaTensor) -> Result<()> {
        self.axpby(len, 0.0, None, factor, x)
    }

    fn axpy(&self, len: usize, factor: f32, x: &CudaTensor, y: &mut CudaTensor) -> Result<()> {
        self.axpby(len, factor, Some(x), 1.0, y)
    }

    fn sum_of_squares(&self, tensors: &[&CudaTensor]) -> Result<f64> {
        self.squares(tensors)
    }

    fn embed(
        &self,
        n: usize,
        d: usize,
        weight: &CudaTensor,
        tokens: &CudaIndex,
        out: &mut CudaTensor,
    ) -> Result<()> {
        let _turn = self.turn()?;
        let vocab = weight.len / d.max(1);
        let (weight, tokens) = (self.read(weight, 0)?, self.index(tokens, n)?);
        let out = self.write(out, n * d)?;
        self.launch(c"embed", n, row_threads(d), args![d, vocab, weight, tokens, out])
    }

    fn embed_backward(
        &self,
        n: usize,
        d: usize,
        dout: &CudaTensor,
        tokens: &CudaIndex,
        dweight: &mut CudaTensor,
    ) -> Result<()> {
        let _turn = self.turn()?;
        let vocab = dweight.len / d.max(1);
        let (dout, tokens) = (self.read(dout, n * d)?, self.index(tokens, n)?);
        let dweight = self.write_exact(dweight, 0)?;
        self.launch(c"embed_backward", n, 256, args![n, d, vocab, dout, tokens, dweight])
    }

    fn rms_norm(
        &self,
        n: usize,
        d: usize,
        eps: f32,
        x: &CudaTensor,
        weight: &CudaTensor,
        rstd: &mut CudaTensor,
        out: &mut CudaTensor,
    ) -> Result<()> {
        let _turn = self.turn()?;
        let (x, weight) = (self.read(x, n * d)?, self.read(weight, d)?);
        let (rstd, out) = (self.write_exact(rstd, n)?, self.write(out, n * d)?);
        self.launch(c"rms_norm", n, row_threads(d), args![d, eps, x, weight, rstd, out])
    }

    fn add_rms_norm(
        &self,
        n: usize,
        d: usize,
        eps: f32,
        x: &CudaTensor,
        delta: &CudaTensor,
        weight: &CudaTensor,
        sum: &mut CudaTensor,
        rstd: &mut CudaTensor,
        out: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn_to_wait()?;
        let part = self.take_part(&turn, delta.numbers.id, n * d)?;
        let (x, delta, weight) =
            (self.read(x, n * d)?, self.read(delta, n * d)?, self.read(weight, d)?);
        let (sum, rstd, out) =
            (self.write(sum, n * d)?, self.write_exact(rstd, n)?, self.write(out, n * d)?);
        self.launch(
            c"add_rms_norm",
            n,
            row_threads(d),
            args![d, eps, x, delta, part, weight, sum, rstd, out],
        )?;
        self.flush(&turn)
    }

    fn rms_norm_backward(
        &self,
        n: usize,
        d: usize,
        x: &CudaTensor,
        weight: &CudaTensor,
        rstd: &CudaTensor,
        dout: &CudaTensor,
        dx: &mut CudaTensor,
        dweight: Option<&mut CudaTensor>,
    ) -> Result<()> {
        let turn = self.turn()?;
        let (x, weight, rstd) =
            (self.read(x, n * d)?, self.read(weight, d)?, self.read_exact(rstd, n)?);
        let (dout, dx) = (self.read(dout, n * d)?, self.write(dx, n * d)?);
        self.launch(c"rms_norm_backward", n, row_threads(d), args![d, x, weight, rstd, dout, dx])?;
        match dweight {
            Some(dweight) => {
                let sums = self.write_exact(dweight, d)?;
                self.add_column_sums(&turn, n, d, dout, x, rstd, sums)
            }
            None => Ok(()),
        }
    }

    fn linear(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
        x: &CudaTensor,
        weight: &CudaTensor,
        bias: Option<&CudaTensor>,
        y: &mut CudaTensor,
    ) -> Result<()> {
        self.linear_forward(n, outputs, inputs, x, weight, bias, y)
    }

    fn linear_backward_input(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
        dy: &CudaTensor,
        weight: &CudaTensor,
        dx: &mut CudaTensor,
    ) -> Result<()> {
        self.linear_input_gradient(n, outputs, inputs, dy, weight, dx)
    }

    fn linear_backward_weight(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
        dy: &CudaTensor,
        x: &CudaTensor,
        dweight: &mut CudaTensor,
        dbias: Option<&mut CudaTensor>,
    ) -> Result<()> {
        self.linear_weight_gradient(n, outputs, inputs, dy, x, dweight, dbias)
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
        x: &CudaTensor,
        t: &CudaTensor,
        dy: &CudaTensor,
        dx: &mut CudaTensor,
        da: &mut CudaTensor,
        db: &mut CudaTensor,
    ) -> Result<()> {
        self.lora_gradients(n, lora, x, t, dy, dx, da, db)
    }

    fn rope(
        &self,
        n: usize,
        heads: Heads,
        qkv: &mut CudaTensor,
        positions: &CudaIndex,
        table: &CudaTensor,
        inverse: bool,
    ) -> Result<()> {
        self.rotate_heads(n, heads, qkv, positions, table, inverse)
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
        qkv: &CudaTensor,
        out: &CudaTensor,
        lse: &CudaTensor,
        dout: &CudaTensor,
        dqkv: &mut CudaTensor,
    ) -> Result<()> {
        self.attention_gradient(heads, packed, qkv, out, lse, dout, dqkv)
    }

    fn swiglu(&self, n: usize, f: usize, gate_up: &CudaTensor, out: &mut CudaTensor) -> Result<()> {
        let turn = self.turn_to_wait()?;
        let part = self.take_part(&turn, gate_up.numbers.id, 2 * n * f)?;
        let (gate_up, out) = (self.read(gate_up, 2 * n * f)?, self.write(out, n * f)?);
        self.launch_box(
            c"swiglu",
            (n, per_thread(f).div_ceil(256), 1),
            256,
            0,
            args![f, gate_up, part, out],
        )?;
        self.flush(&turn)
    }

    fn swiglu_backward(
        &self,
        n: usize,
        f: usize,
        gate_up: &CudaTensor,
        dout: &CudaTensor,
        dgate_up: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn_beside()?;
        if turn.state().read_beside.contains(&dgate_up.numbers.id) {
            self.join_loose()?;
        }
        self.flush(&turn)?;
        let (gate_up, dout) = (self.read(gate_up, 2 * n * f)?, self.read(dout, n * f)?);
        let dgate_up = self.write(dgate_up, 2 * n * f)?;
        self.launch_box(
            c"swiglu_backward",
            (n, per_thread(f).div_ceil(256), 1),
            256,
            0,
            args![f, gate_up, dout, dgate_up],
        )
    }

    fn head(
        &self,
        m: usize,
        vocab: usize,
        d: usize,
        x: &CudaTensor,
        weight: &CudaTensor,
        rows: &CudaIndex,
        targets: &CudaIndex,
        temperature: f32,
        log_p: &mut CudaTensor,
        lse: &mut CudaTensor,
    ) -> Result<()> {
        self.head_forward(m, vocab, d, x, weight, rows, targets, temperature, log_p, lse)
    }

    fn head_backward(
        &self,
        n: usize,
        m: usize,
        vocab: usize,
        d: usize,
        x: &CudaTensor,
        weight: &CudaTensor,
        rows: &CudaIndex,
        targets: &CudaIndex,
        temperature: f32,
        lse: &CudaTensor,
        coefficients: &CudaTensor,
        dx: &mut CudaTensor,
        dweight: Option<&mut CudaTensor>,
    ) -> Result<()> {
        let (t, c) = (temperature, coefficients);
        self.head_gradient(n, m, vocab, d, x, weight, rows, targets, t, lse, c, dx, dweight)
    }

    fn adamw(
        &self,
        len: usize,
        step: &AdamW,
        grad: &CudaTensor,
        m: &mut CudaTensor,
        v: &mut CudaTensor,
        value: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn_to_wait()?;
        self.device.refuse_while_recording("an optimizer step")?;
        let (grad, m, v) =
            (self.read_exact(grad, len)?, self.write_exact(m, len)?, self.write_exact(v, len)?);
        let to = self.write_exact(value, len)?;
        let working = value.working.as_ref().map_or(0, Buffer::pointer);
        self.queue_update(&turn, step, [grad, m, v, to, working, len as u64])
    }

    fn gather(
        &self,
        m: usize,
        d: usize,
        x: &CudaTensor,
        rows: &CudaIndex,
        out: &mut CudaTensor,
    ) -> Result<()> {
        let _turn = self.turn()?;
        let n = x.len / d.max(1);
        let (x, rows, out) = (self.read(x, 0)?, self.index(rows, m)?, self.write(out, m * d)?);
        self.launch(c"gather", m, row_threads(d), args![d, n, x, rows, out])
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

/// Threads that a row of `f` takes: eight numbers each where rows allow it.
fn per_thread(f: usize) -> usize {
    if f.is_multiple_of(8) { f / 8 } else { f }
}
