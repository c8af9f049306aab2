//! What the matrix products alone take: a step that did nothing else could not be faster, as long
//! as the products are what they are.

use std::time::Instant;

use crate::decoding::weight_bytes;
use catamount_cuda::{Cuda, CudaTensor};
use catamount_model::{Affine, Fused, Kind, Layers, Memory, Model, Result, Shape};

/// The frozen base's products, each with its own weights, on random numbers: zeros would be faster.
struct Products<'a> {
    cuda: &'a Cuda,
    model: &'a Model<Cuda>,
    rows: usize,
    /// What is read, as wide as the widest operand.
    input: CudaTensor,
    output: CudaTensor,
    logits: CudaTensor,
}

impl<'a> Products<'a> {
    fn new(cuda: &'a Cuda, model: &'a Model<Cuda>, rows: usize, scored: usize) -> Result<Self> {
        let (config, mut widest) = (&model.config, 0);
        for fused in Fused::ALL {
            let Shape { outputs, inputs } = fused.shape(config);
            widest = widest.max(outputs).max(inputs);
        }
        let widest = (rows * widest).max(scored * config.vocab);
        let mut input = cuda.zeros(widest, Kind::Activation)?;
        cuda.randomize(&mut input, 1.0, 77)?;
        let output = cuda.zeros(rows * widest.div_ceil(rows), Kind::Activation)?;
        let logits = cuda.zeros(scored * config.vocab, Kind::Exact)?;
        Ok(Products { cuda, model, rows, input, output, logits })
    }

    fn maps(model: &Model<Cuda>) -> impl Iterator<Item = Affine<'_, CudaTensor>> {
        (0..model.blocks.len()).flat_map(move |layer| {
            let map = move |fused| Affine { bias: None, ..model.map(layer, fused) };
            Fused::ALL.into_iter().map(map)
        })
    }

    fn head(model: &Model<Cuda>) -> Affine<'_, CudaTensor> {
        let shape = Shape { outputs: model.config.vocab, inputs: model.config.hidden };
        Affine { shape, weight: model.head_weight(), bias: None, fp8: false }
    }

    fn blocks(&mut self) -> Result<()> {
        for map in Self::maps(self.model) {
            self.cuda.linear(self.rows, map, &self.input, &mut self.output)?;
        }
        Ok(())
    }

    fn scores(&mut self) -> Result<()> {
        let head = Self::head(self.model);
        self.cuda.linear(self.rows, head, &self.input, &mut self.logits)
    }

    /// The gradients of every product's input; frozen weights have none.
    fn backward(&mut self) -> Result<()> {
        for map in std::iter::once(Self::head(self.model)).chain(Self::maps(self.model)) {
            self.cuda.linear_backward_input(self.rows, map, &self.input, &mut self.output)?;
        }
        Ok(())
    }

    /// The median seconds of `work`.
    fn time(&mut self, work: impl Fn(&mut Self) -> Result<()>) -> Result<f64> {
        let mut seconds = Vec::new();
        for _ in 0..9 {
            self.cuda.synchronize()?;
            let start = Instant::now();
            work(self)?;
            self.cuda.synchronize()?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        // The first two find algorithms and warm up.
        let timed = &mut seconds[2..];
        timed.sort_by(f64::total_cmp);
        Ok(timed[timed.len() / 2])
    }
}

/// The floor of a training step of `rows` tokens, all scored, and of decoding steps of so many
/// samples each, after prompts of 128 tokens and for 128 new ones.
pub fn floor(cuda: &Cuda, model: &Model<Cuda>, rows: usize, batches: &[usize]) -> Result<()> {
    let config = &model.config;
    let embedding = if config.tied { 0 } else { config.vocab * config.hidden };
    let weights = (config.parameters() - embedding as u64) as f64;
    let mut products = Products::new(cuda, model, rows, rows)?;
    let step = products.time(|p| {
        p.blocks()?;
        p.scores()?;
        p.backward()
    })?;
    println!(
        "floor | the products of a training step, {rows} tokens, frozen base, no adapter, {} | \
         {:.1} ms | {:.0} tokens/s | {:.0} TFLOP/s",
        model.arithmetic(),
        step * 1e3,
        rows as f64 / step,
        4.0 * weights * rows as f64 / step / 1e12,
    );
    for &batch in batches {
        let mut products = Products::new(cuda, model, batch, batch)?;
        let step = products.time(|p| {
            p.blocks()?;
            p.scores()
        })?;
        let mut prompts = Products::new(cuda, model, 8192, 0)?;
        let prompt = prompts.time(Products::blocks)? * (batch * 128) as f64 / 8192.0;
        println!(
            "floor | the products of a decoding step, batch {batch}, {} | {:.2} ms | \
             {:.0} tokens/s decoding alone, {:.0} with prompts of 128 for 128 new | \
             {:.2} TB/s of weights",
            model.arithmetic(),
            step * 1e3,
            batch as f64 / step,
            (batch * 128) as f64 / (128.0 * step + prompt),
            weight_bytes(config, model.is_fp8()) / step / 1e12,
        );
    }
    Ok(())
}
