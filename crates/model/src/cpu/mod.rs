//! The operations on the processor, in f32.

mod attention;
mod cache;
mod elementwise;
mod gemm;
mod head;
mod lora;
mod parallel;
mod sample;
pub(crate) mod simd;
mod tile;

use std::sync::OnceLock;

use gemm::{Mat, PackedB, Start};

use crate::{AdamW, Backend, Draws, Error, Heads, Kind, Lora, Packed, Result, Sampling};

/// The processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

/// Numbers in memory. A weight that has been multiplied by is also kept in the order the product
/// reads it, until it changes.
pub struct CpuTensor {
    data: Vec<f32>,
    packed: OnceLock<PackedB>,
}

impl CpuTensor {
    fn change(&mut self) -> &mut [f32] {
        self.packed.take();
        &mut self.data
    }

    /// The matrix `[outputs, inputs]`, transposed and packed.
    fn packed(&self, outputs: usize, inputs: usize) -> &PackedB {
        self.packed.get_or_init(|| PackedB::new(Mat::columns(&self.data, inputs), inputs, outputs))
    }
}

impl Backend for Cpu {
    type Tensor = CpuTensor;
    type Index = Vec<u32>;

    fn describe(&self) -> String {
        format!("cpu, {} threads, {:?}", rayon::current_num_threads(), simd::level()).to_lowercase()
    }

    fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        rayon::scope(|_| work())
    }

    fn zeros(&self, len: usize, _: Kind) -> Result<CpuTensor> {
        // Asked for first, without touching it: an allocation that fails ends the process.
        Vec::<f32>::new().try_reserve_exact(len).map_err(|_| {
            Error::Device(format!("a tensor of {len} numbers is more than this machine can hold"))
        })?;
        Ok(CpuTensor { data: vec![0.0; len], packed: OnceLock::new() })
    }

    fn len(&self, tensor: &CpuTensor) -> usize {
        tensor.data.len()
    }

    fn upload(&self, from: &[f32], to: &mut CpuTensor, offset: usize) -> Result<()> {
        to.change()[offset..offset + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn download(&self, from: &CpuTensor, offset: usize, to: &mut [f32]) -> Result<()> {
        to.copy_from_slice(&from.data[offset..offset + to.len()]);
        Ok(())
    }

    fn indices(&self, len: usize) -> Result<Vec<u32>> {
        Ok(vec![0; len])
    }

    fn upload_indices(&self, from: &[u32], to: &mut Vec<u32>) -> Result<()> {
        to[..from.len()].copy_from_slice(from);
        Ok(())
    }

    fn clear(&self, len: usize, x: &mut CpuTensor) -> Result<()> {
        x.change()[..len].fill(0.0);
        Ok(())
    }

    fn scale(&self, len: usize, factor: f32, x: &mut CpuTensor) -> Result<()> {
        x.change()[..len].iter_mut().for_each(|v| *v *= factor);
        Ok(())
    }

    fn axpy(&self, len: usize, factor: f32, x: &CpuTensor, y: &mut CpuTensor) -> Result<()> {
        elementwise::axpy(&mut y.change()[..len], factor, &x.data[..len]);
        Ok(())
    }

    fn sum_of_squares(&self, tensors: &[&CpuTensor]) -> Result<f64> {
        Ok(tensors.iter().map(|t| elementwise::sum_of_squares(&t.data)).sum())
    }

    fn embed(
        &self,
        n: usize,
        d: usize,
        weight: &CpuTensor,
        tokens: &Vec<u32>,
        out: &mut CpuTensor,
    ) -> Result<()> {
        elementwise::embed(n, d, &weight.data, tokens, out.change());
        Ok(())
    }

    fn embed_backward(
        &self,
        n: usize,
        d: usize,
        dout: &CpuTensor,
        tokens: &Vec<u32>,
        dweight: &mut CpuTensor,
    ) -> Result<()> {
        elementwise::embed_backward(n, d, &dout.data, tokens, dweight.change());
        Ok(())
    }

    fn rms_norm(
        &self,
        n: usize,
        d: usize,
        eps: f32,
        x: &CpuTensor,
        weight: &CpuTensor,
        rstd: &mut CpuTensor,
        out: &mut CpuTensor,
    ) -> Result<()> {
        elementwise::rms_norm(n, d, eps, &x.data, &weight.data, rstd.change(), out.change());
        Ok(())
    }

    fn add_rms_norm(
        &self,
        n: usize,
        d: usize,
        eps: f32,
        x: &CpuTensor,
        delta: &CpuTensor,
        weight: &CpuTensor,
        sum: &mut CpuTensor,
        rstd: &mut CpuTensor,
        out: &mut CpuTensor,
    ) -> Result<()> {
        let (sum, rstd, out) = (sum.change(), rstd.change(), out.change());
        elementwise::add_rms_norm(n, d, eps, &x.data, &delta.data, &weight.data, sum, rstd, out);
        Ok(())
    }

    fn rms_norm_backward(
        &self,
        n: usize,
        d: usize,
        x: &CpuTensor,
        weight: &CpuTensor,
        rstd: &CpuTensor,
        dout: &CpuTensor,
        dx: &mut CpuTensor,
        dweight: Option<&mut CpuTensor>,
    ) -> Result<()> {
        let dweight = dweight.map(CpuTensor::change);
        elementwise::rms_norm_backward(
            n,
            d,
            &x.data,
            &weight.data,
            &rstd.data,
            &dout.data,
            dx.change(),
            dweight,
        );
        Ok(())
    }

    fn linear(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
        x: &CpuTensor,
        weight: &CpuTensor,
        bias: Option<&CpuTensor>,
        y: &mut CpuTensor,
    ) -> Result<()> {
        let start = bias.map_or(Start::Zero, |b| Start::Bias(&b.data));
        let weight = weight.packed(outputs, inputs);
        gemm::gemm_packed(n, Mat::rows(&x.data, inputs), weight, start, y.change(), outputs);
        Ok(())
    }

    fn linear_backward_input(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
        dy: &CpuTensor,
        weight: &CpuTensor,
        dx: &mut CpuTensor,
    ) -> Result<()> {
        let (dy, weight) = (Mat::rows(&dy.data, outputs), Mat::rows(&weight.data, inputs));
        gemm::gemm(n, inputs, outputs, dy, weight, Start::Zero, dx.change(), inputs);
        Ok(())
    }

    fn linear_backward_weight(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
        dy: &CpuTensor,
        x: &CpuTensor,
        dweight: &mut CpuTensor,
        dbias: Option<&mut CpuTensor>,
    ) -> Result<()> {
        let (a, b) = (Mat::columns(&dy.data, outputs), Mat::rows(&x.data, inputs));
        gemm::gemm(outputs, inputs, n, a, b, Start::Old, dweight.change(), inputs);
        if let Some(dbias) = dbias {
            elementwise::column_sums(n, outputs, &dy.data, dbias.change());
        }
        Ok(())
    }

    fn lora(
        &self,
        n: usize,
        lora: &Lora<'_, CpuTensor>,
        x: &CpuTensor,
        t: &mut CpuTensor,
        y: &mut CpuTensor,
    ) -> Result<()> {
        lora::forward(n, lora, &lora.a.data, &lora.b.data, &x.data, t.change(), y.change());
        Ok(())
    }

    fn lora_backward(
        &self,
        n: usize,
        lora: &Lora<'_, CpuTensor>,
        x: &CpuTensor,
        t: &CpuTensor,
        dy: &CpuTensor,
        dx: &mut CpuTensor,
        da: &mut CpuTensor,
        db: &mut CpuTensor,
    ) -> Result<()> {
        let (a, b) = (&lora.a.data, &lora.b.data);
        lora::backward(
            n,
            lora,
            a,
            b,
            &x.data,
            &t.data,
            &dy.data,
            dx.change(),
            da.change(),
            db.change(),
        );
        Ok(())
    }

    fn rope(
        &self,
        n: usize,
        heads: Heads,
        qkv: &mut CpuTensor,
        positions: &Vec<u32>,
        table: &CpuTensor,
        inverse: bool,
    ) -> Result<()> {
        elementwise::rope(n, heads, qkv.change(), positions, &table.data, inverse);
        Ok(())
    }

    fn attention(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &CpuTensor,
        out: &mut CpuTensor,
        lse: &mut CpuTensor,
    ) -> Result<()> {
        let starts = &packed.starts[..packed.sequences + 1];
        attention::forward(heads, starts, &qkv.data, out.change(), lse.change());
        Ok(())
    }

    fn attention_backward(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &CpuTensor,
        _: &CpuTensor,
        lse: &CpuTensor,
        dout: &CpuTensor,
        dqkv: &mut CpuTensor,
    ) -> Result<()> {
        let starts = &packed.starts[..packed.sequences + 1];
        attention::backward(heads, starts, &qkv.data, &lse.data, &dout.data, dqkv.change());
        Ok(())
    }

    fn swiglu(&self, n: usize, f: usize, gate_up: &CpuTensor, out: &mut CpuTensor) -> Result<()> {
        elementwise::swiglu(n, f, &gate_up.data, out.change());
        Ok(())
    }

    fn swiglu_backward(
        &self,
        n: usize,
        f: usize,
        gate_up: &CpuTensor,
        dout: &CpuTensor,
        dgate_up: &mut CpuTensor,
    ) -> Result<()> {
        elementwise::swiglu_backward(n, f, &gate_up.data, &dout.data, dgate_up.change());
        Ok(())
    }

    fn head(
        &self,
        m: usize,
        vocab: usize,
        d: usize,
        x: &CpuTensor,
        weight: &CpuTensor,
        rows: &Vec<u32>,
        targets: &Vec<u32>,
        temperature: f32,
        log_p: &mut CpuTensor,
        lse: &mut CpuTensor,
    ) -> Result<()> {
        let (weight, t) = (weight.packed(vocab, d), temperature);
        let (log_p, lse) = (log_p.change(), lse.change());
        head::forward(m, vocab, d, &x.data, weight, rows, targets, t, log_p, lse);
        Ok(())
    }

    fn head_backward(
        &self,
        n: usize,
        m: usize,
        vocab: usize,
        d: usize,
        x: &CpuTensor,
        weight: &CpuTensor,
        rows: &Vec<u32>,
        targets: &Vec<u32>,
        temperature: f32,
        lse: &CpuTensor,
        coefficients: &CpuTensor,
        dx: &mut CpuTensor,
        dweight: Option<&mut CpuTensor>,
    ) -> Result<()> {
        let (packed, dweight) = (weight.packed(vocab, d), dweight.map(CpuTensor::change));
        let (x, w, lse, c) = (&x.data, &weight.data, &lse.data, &coefficients.data);
        let (t, dx) = (temperature, dx.change());
        head::backward(n, m, vocab, d, x, w, packed, rows, targets, t, lse, c, dx, dweight);
        Ok(())
    }

    fn adamw(
        &self,
        len: usize,
        step: &AdamW,
        grad: &CpuTensor,
        m: &mut CpuTensor,
        v: &mut CpuTensor,
        value: &mut CpuTensor,
    ) -> Result<()> {
        elementwise::adamw(len, step, &grad.data, m.change(), v.change(), value.change());
        Ok(())
    }

    fn gather(
        &self,
        m: usize,
        d: usize,
        x: &CpuTensor,
        rows: &Vec<u32>,
        out: &mut CpuTensor,
    ) -> Result<()> {
        head::gather(m, d, &x.data, rows, out.change());
        Ok(())
    }

    fn cache_write(
        &self,
        n: usize,
        heads: Heads,
        qkv: &CpuTensor,
        slots: &Vec<u32>,
        cache: &mut CpuTensor,
    ) -> Result<()> {
        cache::write(n, heads, &qkv.data, slots, cache.change());
        Ok(())
    }

    fn cache_attention(
        &self,
        n: usize,
        heads: Heads,
        qkv: &CpuTensor,
        cache: &CpuTensor,
        spans: &Vec<u32>,
        out: &mut CpuTensor,
    ) -> Result<()> {
        cache::attention(n, heads, &qkv.data, &cache.data, spans, out.change());
        Ok(())
    }

    fn sample(
        &self,
        vocab: usize,
        logits: &CpuTensor,
        sampling: Sampling,
        draws: &mut Draws,
    ) -> Result<()> {
        sample::sample(vocab, &logits.data, sampling, draws);
        Ok(())
    }
}
