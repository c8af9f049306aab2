//! Speed on this GPU: LoRA training and sampling with 7B-shape weights, small models, each as a
//! line of a table.
//!
//! `cargo run --release -p catamount-cuda --example gpu_bench -- [dense] [packed] [recompute]
//! [decode] [small] [profile]` (all of them by default). Weights are random; times are medians
//! after warm-up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use catamount_cuda::{Cuda, Timing};
use catamount_model::{
    Activations, AdamW, Adapter, Batch, Config, Error, Family, Generator, GeneratorConfig, Heads,
    Keep, Kind, LoraConfig, Memory, Model, Optimize, Result, Sampling, Tokenizer,
};
use catamount_search::{Policy, Request, Stream};

/// Enough for many prompts to be computed together.
const POSITIONS: usize = 8320;

type Failure = Box<dyn std::error::Error>;

fn main() -> std::result::Result<(), Failure> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    let start = Instant::now();
    let cuda = match Cuda::new(0) {
        Ok(cuda) => Arc::new(cuda),
        Err(reason) => {
            println!("nothing to measure: {reason}");
            return Ok(());
        }
    };
    println!("{} (ready in {:.1} s)", cuda.describe(), start.elapsed().as_secs_f64());
    if ["dense", "packed", "recompute", "decode", "profile"].iter().any(|w| wants(w)) {
        let mut model = random_model(&cuda, seven_b())?;
        if wants("decode") {
            // Twice, since an adapter in force costs something.
            model = decode(model, "7B shape", 64, 128, wants("profile"))?;
        }
        model.swap_adapter(Some(Adapter::new(
            &*cuda,
            &model.config,
            LoraConfig::default(),
            true,
            Stream::new(1),
        )?));
        if wants("dense") {
            train(
                &cuda,
                &mut model,
                "7B shape, LoRA r=16, 4 x 512",
                &[dense(4, 512)],
                Keep::All,
                None,
            )?;
        }
        if wants("profile") {
            profile(&cuda, &mut model, &dense(4, 512))?;
        }
        if wants("packed") {
            for rows in [4096, 8192, 16_384] {
                let name = format!("7B shape, LoRA r=16, dropout 0.05, packed to {rows}");
                train(&cuda, &mut model, &name, &packed(rows, 6), Keep::All, Some(1))?;
            }
        }
        if wants("recompute") {
            let name = "7B shape, LoRA r=16, dropout 0.05, packed to 16384, recomputed";
            train(&cuda, &mut model, name, &packed(16_384, 4), Keep::Inputs, Some(1))?;
        }
        if wants("decode") {
            decode(model, "7B shape with LoRA", 64, 128, wants("profile"))?;
        }
    }
    if wants("small") {
        let mut small = Config::small(4096, 256, 6, POSITIONS);
        small.intermediate = 704;
        decode(random_model(&cuda, small.clone())?, "6 layers, d=256", 512, 128, wants("profile"))?;
        decode(random_model(&cuda, small.clone())?, "6 layers, d=256", 32, 128, wants("profile"))?;
        decode(random_model(&cuda, smol())?, "135M shape", 512, 128, wants("profile"))?;
        let mut model = Model::init(cuda.clone(), small, Stream::new(1))?;
        train(
            &cuda,
            &mut model,
            "6 layers, d=256, all weights, 32 x 256",
            &[dense(32, 256)],
            Keep::All,
            None,
        )?;
    }
    Ok(())
}

/// Qwen2.5-7B's shape.
fn seven_b() -> Config {
    Config {
        family: Family::Qwen2,
        vocab: 152_064,
        hidden: 3584,
        intermediate: 18_944,
        layers: 28,
        heads: Heads { heads: 28, kv_heads: 4, dim: 128 },
        norm_eps: 1e-6,
        rope_theta: 1e6,
        rope_scaling: None,
        positions: POSITIONS,
        tied: false,
        qkv_bias: true,
        o_bias: false,
    }
}

/// SmolLM2-135M's shape.
fn smol() -> Config {
    let mut config = Config::small(49_152, 576, 30, POSITIONS);
    config.heads = Heads { heads: 9, kv_heads: 3, dim: 64 };
    config.intermediate = 1536;
    config
}

fn random_model(cuda: &Arc<Cuda>, config: Config) -> Result<Model<Cuda>> {
    let mut model = Model::zeros(cuda.clone(), config, false)?;
    for (i, p) in model.base_mut().enumerate() {
        if p.name.contains("norm") {
            cuda.upload(&vec![1.0; p.len()], &mut p.value, 0)?;
        } else {
            cuda.randomize(&mut p.value, 0.02, i as u64)?;
        }
    }
    Ok(model)
}

/// `sequences` of `len` rows, every token scored.
fn dense(sequences: usize, len: usize) -> Batch {
    let mut batch = Batch::new();
    for i in 0..sequences as u32 {
        let tokens: Vec<u32> = (0..=len as u32).map(|j| (i * 977 + j * 31) % 4096).collect();
        batch.push(&tokens[..1], &tokens[1..]);
    }
    batch
}

/// Batches of up to `rows` rows of examples of realistic length: lognormal with median 130, between
/// 16 and 512 tokens.
fn packed(rows: usize, count: usize) -> Vec<Batch> {
    let stream = Stream::new(7);
    let mut draw = 0;
    let mut length = || {
        draw += 2;
        let normal = (-2.0 * (1.0 - stream.uniform(draw)).ln()).sqrt()
            * (std::f64::consts::TAU * stream.uniform(draw + 1)).cos();
        ((4.87 + 0.8 * normal).exp() as usize).clamp(16, 512)
    };
    let mut next = length();
    (0..count)
        .map(|_| {
            let mut batch = Batch::new();
            while batch.len() + next <= rows {
                let tokens: Vec<u32> =
                    (0..=next as u32).map(|j| (j * 31 + next as u32) % 4096).collect();
                batch.push(&tokens[..1], &tokens[1..]);
                next = length();
            }
            batch
        })
        .collect()
}

/// One optimizer step.
struct Trainer {
    acts: Activations<Cuda>,
    moments: Vec<[<Cuda as Memory>::Tensor; 2]>,
    step: u64,
}

impl Trainer {
    fn new(cuda: &Cuda, model: &Model<Cuda>, rows: usize, keep: Keep) -> Result<Self> {
        let mut moments = Vec::new();
        for p in model.trained() {
            moments.push([cuda.zeros(p.len(), Kind::Exact)?, cuda.zeros(p.len(), Kind::Exact)?]);
        }
        Ok(Trainer { acts: Activations::new(model, rows, keep)?, moments, step: 0 })
    }

    fn step(
        &mut self,
        cuda: &Cuda,
        model: &mut Model<Cuda>,
        batch: &Batch,
        dropout: Option<u64>,
    ) -> Result<f64> {
        self.step += 1;
        model.clear_gradients()?;
        model.forward(batch, &mut self.acts, dropout.map(|d| d + self.step))?;
        let log_p = model.score(&mut self.acts)?;
        let weight = -1.0 / log_p.len() as f32;
        model.backward(&mut self.acts, &vec![weight; log_p.len()])?;
        let norm = model.gradient_norm()?;
        let grad_scale = (1.0 / norm).min(1.0) as f32;
        let adamw = AdamW {
            lr: 1e-4,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.01,
            step: self.step,
            grad_scale,
        };
        let parameters = model.trained_mut().zip(&mut self.moments);
        let mut updates: Vec<_> = parameters.filter_map(|(p, moments)| p.update(moments)).collect();
        cuda.adamw(&adamw, &mut updates)?;
        Ok(-log_p.iter().map(|&l| f64::from(l)).sum::<f64>() / log_p.len() as f64)
    }
}

fn train(
    cuda: &Cuda,
    model: &mut Model<Cuda>,
    name: &str,
    batches: &[Batch],
    keep: Keep,
    dropout: Option<u64>,
) -> std::result::Result<(), Failure> {
    let rows = batches.iter().map(Batch::len).max().unwrap_or(0);
    let before = cuda.memory()?.0;
    let mut trainer = Trainer::new(cuda, model, rows, keep)?;
    let (mut losses, mut seconds) = (Vec::new(), Vec::new());
    let (mut tokens, mut examples) = (0, 0);
    let steps = if batches.len() == 1 { 14 } else { batches.len() * 2 };
    for i in 0..steps {
        let batch = &batches[i % batches.len()];
        cuda.synchronize()?;
        let start = Instant::now();
        losses.push(trainer.step(cuda, model, batch, dropout)?);
        cuda.synchronize()?;
        // With several batches, the first round is the warm-up.
        if i >= 4.max(if batches.len() > 1 { batches.len() } else { 0 }) {
            seconds.push(start.elapsed().as_secs_f64());
            tokens += batch.len();
            examples += batch.sequences();
        }
    }
    let total: f64 = seconds.iter().sum();
    let (free, all) = cuda.memory()?;
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    println!(
        "train | {name} | {:.1} ms/step (median; fastest {:.1}) | {:.0} tokens/s by the median, \
         {:.0} on average | {:.1} examples/s | loss {:.3} to {:.3} | \
         {:.1} GiB used, {:.1} for the step",
        median * 1e3,
        seconds[0] * 1e3,
        tokens as f64 / seconds.len() as f64 / median,
        tokens as f64 / total,
        examples as f64 / total,
        losses[0],
        losses[losses.len() - 1],
        (all - free) as f64 / (1u64 << 30) as f64,
        before.saturating_sub(free) as f64 / (1u64 << 30) as f64,
    );
    Ok(())
}

fn profile(
    cuda: &Cuda,
    model: &mut Model<Cuda>,
    batch: &Batch,
) -> std::result::Result<(), Failure> {
    let mut trainer = Trainer::new(cuda, model, batch.len(), Keep::All)?;
    trainer.step(cuda, model, batch, None)?;
    let timings = cuda.profile(|| trainer.step(cuda, model, batch, None).map(|_| ()))?;
    print_profile("a dense training step", &timings);
    Ok(())
}

fn print_profile(what: &str, timings: &BTreeMap<String, Timing>) {
    let total: f64 = timings.values().map(|t| t.milliseconds).sum();
    let mut rows: Vec<_> = timings.iter().collect();
    rows.sort_by(|a, b| b.1.milliseconds.total_cmp(&a.1.milliseconds));
    println!(
        "where the time of {what} goes ({total:.1} ms in kernels, each with a few microseconds of \
         timing):"
    );
    for (name, t) in rows.iter().take(24) {
        println!(
            "  {:7.2} ms {:5.1} % {:5} x {name}",
            t.milliseconds,
            100.0 * t.milliseconds / total,
            t.count
        );
    }
}

/// `batch` samples of `new` tokens after prompts of about 128, twice: with their prompts to be
/// computed, and with them cached.
fn decode(
    model: Model<Cuda>,
    name: &str,
    batch: usize,
    new: usize,
    profiled: bool,
) -> std::result::Result<Model<Cuda>, Failure> {
    let c = model.config.clone();
    let tokenizer = Tokenizer::train_bpe(["a"].iter(), 300)?;
    let config = GeneratorConfig {
        sampling: Sampling { temperature: 1.0, top_p: 1.0 },
        max_tokens: new,
        max_prompt: 8192,
        batch,
        cache: batch * 300 + 16_384,
    };
    let config = GeneratorConfig { max_prompt: config.max_prompt.min(c.positions - new), ..config };
    let mut generator = Generator::new(model, tokenizer, config, name)?;
    let mut speeds = Vec::new();
    // The first round also warms up: it is left out.
    for round in 0..4u64 {
        let start = Instant::now();
        for i in 0..batch as u64 {
            // Distinct states, so that nothing is shared between samples; asked again in the last
            // round.
            let state = format!("{:0>127}", i + 100_000 * round.min(2));
            generator.submit(Request {
                id: i,
                state,
                samples: 1,
                stream: Stream::new(round * 1000 + i),
                urn: None,
            });
        }
        let tokens = answers(&mut generator, batch)?;
        speeds.push((tokens as f64 / start.elapsed().as_secs_f64(), start.elapsed().as_secs_f64()));
    }
    let bytes = step_bytes(&c, batch, 128 + new / 2);
    let (speed, seconds) = speeds[3];
    let bandwidth = bytes * new as f64 / seconds;
    println!(
        "decode | {name} | batch {batch}, prompts of 128, {new} new | {:.0} new tokens/s with \
         prompts | {speed:.0} decoding alone, {:.2} ms/step | \
         {:.2} TB/s of {:.1} GB of weights and cache a step",
        speeds[2].0,
        seconds / new as f64 * 1e3,
        bandwidth / 1e12,
        bytes / 1e9,
    );
    if profiled {
        for i in 0..batch as u64 {
            let state = format!("{:0>127}", i + 200_000);
            generator.submit(Request {
                id: i,
                state,
                samples: 1,
                stream: Stream::new(i),
                urn: None,
            });
        }
        let cuda = generator.model().backend.clone();
        let timings = cuda.profile(|| answers(&mut generator, batch).map(|_| ()))?;
        print_profile(&format!("{new} decoding steps"), &timings);
    }
    Ok(generator.into_parts().0)
}

/// Waits for `count` answers and counts their tokens.
fn answers(generator: &mut Generator<Cuda>, count: usize) -> Result<usize> {
    let (mut tokens, mut answered) = (0, 0);
    while answered < count {
        for (_, samples) in generator.poll() {
            answered += 1;
            let samples = samples.map_err(|fault| Error::Device(fault.0))?;
            tokens += samples.iter().map(|s| s.tokens).sum::<usize>();
        }
    }
    Ok(tokens)
}

/// The least bytes a decoding step moves: weights, the cache, logits written and read.
fn step_bytes(c: &Config, batch: usize, past: usize) -> f64 {
    let embedding = if c.tied { 0 } else { c.vocab * c.hidden };
    let weights = 2.0 * (c.parameters() as f64 - embedding as f64);
    let cache = (batch * past * c.layers * 2 * c.heads.kv() * 2) as f64;
    weights + cache + (batch * c.vocab * 4 * 2) as f64
}
