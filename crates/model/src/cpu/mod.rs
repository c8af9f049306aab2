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

use gemm::{Mat, PackedB, Sizes, Start};

use crate::backend::no_fp8;
use crate::{
    AdamW, Affine, Attended, Decode, Direction, Draws, Error, Head, HeadGradients, Heads, Inner,
    Kind, Layers, Lora, LoraGradients, Memory, Norm, NormInput, Normed, Optimize, Packed, Result,
    Sampling, Scores, Shape, Update,
};

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

impl Memory for Cpu {
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

    fn clear(&self, len: usize, x: &mut CpuTensor) -> Result<()> {
        x.change()[..len].fill(0.0);
        Ok(())
    }

    fn indices(&self, len: usize) -> Result<Vec<u32>> {
        Ok(vec![0; len])
    }

    fn upload_indices(&self, from: &[u32], to: &mut Vec<u32>) -> Result<()> {
        to[..from.len()].copy_from_slice(from);
        Ok(())
    }
}

impl Layers for Cpu {
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
        norm: Norm<'_, CpuTensor>,
        x: &CpuTensor,
        normed: Normed<'_, CpuTensor>,
    ) -> Result<()> {
        elementwise::rms_norm(n, numbers(norm), &x.data, changed(normed));
        Ok(())
    }

    fn add_rms_norm(
        &self,
        n: usize,
        norm: Norm<'_, CpuTensor>,
        x: &CpuTensor,
        delta: &CpuTensor,
        sum: &mut CpuTensor,
        normed: Normed<'_, CpuTensor>,
    ) -> Result<()> {
        let (norm, normed) = (numbers(norm), changed(normed));
        elementwise::add_rms_norm(n, norm, &x.data, &delta.data, sum.change(), normed);
        Ok(())
    }

    fn rms_norm_backward(
        &self,
        n: usize,
        norm: Norm<'_, CpuTensor>,
        input: NormInput<'_, CpuTensor>,
        dout: &CpuTensor,
        dx: &mut CpuTensor,
        dweight: Option<&mut CpuTensor>,
    ) -> Result<()> {
        let input = NormInput { x: &input.x.data[..], rstd: &input.rstd.data[..] };
        let (dx, dweight) = (dx.change(), dweight.map(CpuTensor::change));
        elementwise::rms_norm_backward(n, numbers(norm), input, &dout.data, dx, dweight);
        Ok(())
    }

    fn linear(
        &self,
        n: usize,
        map: Affine<'_, CpuTensor>,
        x: &CpuTensor,
        y: &mut CpuTensor,
    ) -> Result<()> {
        refuse_fp8(map)?;
        let Shape { outputs, inputs } = map.shape;
        let start = map.bias.map_or(Start::Zero, |b| Start::Bias(&b.data));
        let weight = map.weight.packed(outputs, inputs);
        gemm::gemm_packed(n, Mat::rows(&x.data, inputs), weight, start, y.change(), outputs);
        Ok(())
    }

    fn linear_backward_input(
        &self,
        n: usize,
        map: Affine<'_, CpuTensor>,
        dy: &CpuTensor,
        dx: &mut CpuTensor,
    ) -> Result<()> {
        refuse_fp8(map)?;
        let Shape { outputs, inputs } = map.shape;
        let (dy, weight) = (Mat::rows(&dy.data, outputs), Mat::rows(&map.weight.data, inputs));
        let sizes = Sizes { m: n, n: inputs, k: outputs };
        gemm::gemm(sizes, dy, weight, Start::Zero, dx.change(), inputs);
        Ok(())
    }

    fn linear_backward_weight(
        &self,
        n: usize,
        shape: Shape,
        dy: &CpuTensor,
        x: &CpuTensor,
        dweight: &mut CpuTensor,
        dbias: Option<&mut CpuTensor>,
    ) -> Result<()> {
        let Shape { outputs, inputs } = shape;
        let (a, b) = (Mat::columns(&dy.data, outputs), Mat::rows(&x.data, inputs));
        let sizes = Sizes { m: outputs, n: inputs, k: n };
        gemm::gemm(sizes, a, b, Start::Old, dweight.change(), inputs);
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
        let lora = lora.with(&lora.a.data[..], &lora.b.data[..]);
        lora::forward(n, &lora, &x.data, t.change(), y.change());
        Ok(())
    }

    fn lora_backward(
        &self,
        n: usize,
        lora: &Lora<'_, CpuTensor>,
        inner: Inner<'_, CpuTensor>,
        dy: &CpuTensor,
        dx: &mut CpuTensor,
        gradients: LoraGradients<'_, CpuTensor>,
    ) -> Result<()> {
        let lora = lora.with(&lora.a.data[..], &lora.b.data[..]);
        let inner = Inner { x: &inner.x.data[..], t: &inner.t.data[..] };
        let gradients = LoraGradients { da: gradients.da.change(), db: gradients.db.change() };
        lora::backward(n, &lora, inner, &dy.data, dx.change(), gradients);
        Ok(())
    }

    fn rope(
        &self,
        n: usize,
        heads: Heads,
        direction: Direction,
        positions: &Vec<u32>,
        table: &CpuTensor,
        qkv: &mut CpuTensor,
    ) -> Result<()> {
        elementwise::rope(n, heads, direction, positions, &table.data, qkv.change());
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
        attended: Attended<'_, CpuTensor>,
        dout: &CpuTensor,
        dqkv: &mut CpuTensor,
    ) -> Result<()> {
        let starts = &packed.starts[..packed.sequences + 1];
        let Attended { qkv, lse, .. } = attended;
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
        head: &Head<'_, CpuTensor, Vec<u32>>,
        x: &CpuTensor,
        scores: Scores<'_, CpuTensor>,
    ) -> Result<()> {
        let scores = Scores { log_p: scores.log_p.change(), lse: scores.lse.change() };
        head::forward(head, &x.data, scores);
        Ok(())
    }

    fn head_backward(
        &self,
        n: usize,
        head: &Head<'_, CpuTensor, Vec<u32>>,
        x: &CpuTensor,
        lse: &CpuTensor,
        coefficients: &CpuTensor,
        gradients: HeadGradients<'_, CpuTensor>,
    ) -> Result<()> {
        let gradients = HeadGradients {
            dx: gradients.dx.change(),
            dweight: gradients.dweight.map(CpuTensor::change),
        };
        head::backward(n, head, &x.data, &lse.data, &coefficients.data, gradients);
        Ok(())
    }
}

impl Decode for Cpu {
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

    fn cache_copy(
        &self,
        sequences: usize,
        heads: Heads,
        places: &Vec<u32>,
        cache: &mut CpuTensor,
    ) -> Result<()> {
        cache::copy(heads, &places[..4 * sequences], cache.change());
        Ok(())
    }

    fn prompt_attention(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &CpuTensor,
        cache: &CpuTensor,
        places: &Vec<u32>,
        out: &mut CpuTensor,
    ) -> Result<()> {
        let starts = &packed.starts[..packed.sequences + 1];
        attention::ends(heads, starts, &qkv.data, &cache.data, places, out.change());
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

impl Optimize for Cpu {
    fn clear_all(&self, tensors: &mut [&mut CpuTensor]) -> Result<()> {
        tensors.iter_mut().for_each(|x| x.change().fill(0.0));
        Ok(())
    }

    fn sum_of_squares(&self, tensors: &[&CpuTensor]) -> Result<f64> {
        Ok(tensors.iter().map(|t| elementwise::sum_of_squares(&t.data)).sum())
    }

    fn adamw(&self, step: &AdamW, updates: &mut [Update<'_, CpuTensor>]) -> Result<()> {
        for Update { grad, m, v, value } in updates {
            elementwise::adamw(step, &grad.data, m.change(), v.change(), value.change());
        }
        Ok(())
    }
}

fn numbers(norm: Norm<'_, CpuTensor>) -> Norm<'_, [f32]> {
    Norm { d: norm.d, eps: norm.eps, weight: &norm.weight.data }
}

fn changed(normed: Normed<'_, CpuTensor>) -> Normed<'_, [f32]> {
    Normed { rstd: normed.rstd.change(), out: normed.out.change() }
}

fn refuse_fp8(map: Affine<'_, CpuTensor>) -> Result<()> {
    if map.fp8 { Err(no_fp8()) } else { Ok(()) }
}
