//! What a base in fp8 costs in accuracy: log-probabilities, an adapter's gradients and a short
//! training run in f32, in bf16, and in bf16 with the base's products in fp8, all on the GPU.
//!
//! `cargo run --release -p catamount-cuda --example gpu_fp8 -- [MODEL]`: a Hugging Face folder or a
//! GGUF file, or random weights where none is named. f32 with the weights that bf16 has is what
//! both are measured against.
//!
//! Where there is no GPU, a model that is named is measured by the plain backend: the rounding to
//! fp8 alone, everything else in f32, and no training (a model of 135 M parameters takes minutes).

use std::path::Path;
use std::sync::Arc;

use catamount_cuda::{Cuda, Precision};
use catamount_model::{
    Activations, AdamW, Adapter, Backend, Batch, Config, Family, Heads, Keep, Kind, LoraConfig,
    Memory, Model, Reference, Result, open,
};
use catamount_search::Stream;

type Failure = Box<dyn std::error::Error>;

/// Something to read for models that can.
const TEXT: &str = include_str!("../README.md");
/// Steps of the training run, and the batches that are taken in turn.
const STEPS: usize = 40;
const BATCHES: usize = 4;

/// What one arithmetic gave.
struct Run {
    log_p: Vec<f32>,
    gradients: Vec<(String, Vec<f32>)>,
    losses: Vec<f64>,
}

fn main() -> std::result::Result<(), Failure> {
    let name = std::env::args().nth(1);
    match (Cuda::new(0), name) {
        (Ok(cuda), name) => on_the_gpu(Arc::new(cuda), name.as_deref()),
        (Err(reason), Some(name)) => {
            println!("by the plain backend ({reason})");
            plainly(&name)
        }
        (Err(reason), None) => {
            println!("nothing to measure: {reason}");
            Ok(())
        }
    }
}

fn on_the_gpu(half: Arc<Cuda>, name: Option<&str>) -> std::result::Result<(), Failure> {
    let (mut model, batches) = match name {
        Some(name) => opened(name, &half)?,
        None => (random(&half)?, (0..BATCHES as u64).map(made_up).collect()),
    };
    introduce(name.unwrap_or("random weights"), &model);
    let exact = Arc::new(Cuda::with_precision(0, Precision::F32)?);
    let mut copy = Model::zeros(exact.clone(), model.config.clone(), false)?;
    for (from, to) in model.base().zip(copy.base_mut()) {
        exact.upload(&from.to_host(&half)?, &mut to.value, 0)?;
    }
    let single = run(&mut copy, &batches, STEPS)?;
    drop(copy);
    let bf16 = run(&mut model, &batches, STEPS)?;
    model.use_fp8()?;
    let fp8 = run(&mut model, &batches, STEPS)?;
    for line in half.fp8_scaling()? {
        println!("{line}");
    }
    println!("| against f32 | bf16 | base in fp8 |\n|---|---|---|");
    let both = [&bf16, &fp8];
    table(&single, both);
    let gaps = both.map(|r| {
        let gaps = || r.losses.iter().zip(&single.losses).map(|(a, b)| (a - b).abs());
        [gaps().fold(0.0, f64::max), gaps().sum::<f64>() / STEPS as f64]
    });
    row(&format!("{STEPS} steps: largest gap of the losses"), [0, 1].map(|i| gaps[i][0]));
    row(&format!("{STEPS} steps: mean gap of the losses"), [0, 1].map(|i| gaps[i][1]));
    let last = |r: &Run| r.losses[STEPS - BATCHES..].iter().sum::<f64>() / BATCHES as f64;
    println!(
        "loss from {:.4} to {:.4} in f32, {:.4} in bf16, {:.4} with the base in fp8",
        single.losses[0],
        last(&single),
        last(&bf16),
        last(&fp8)
    );
    Ok(())
}

fn plainly(name: &str) -> std::result::Result<(), Failure> {
    let (mut model, batches) = opened(name, &Arc::new(Reference))?;
    introduce(name, &model);
    let exact = run(&mut model, &batches, 0)?;
    model.use_fp8()?;
    let fp8 = run(&mut model, &batches, 0)?;
    println!("loss of a batch in f32: {:.6}", -mean(&exact.log_p));
    println!("| against f32 | base in fp8, all else in f32 |\n|---|---|");
    table(&exact, [&fp8]);
    Ok(())
}

/// A model that can read, and what it is given.
fn opened<B: Backend>(
    name: &str,
    backend: &Arc<B>,
) -> std::result::Result<(Model<B>, Vec<Batch>), Failure> {
    let (model, tokenizer) = open(name, backend, false)?;
    let tokens = tokenizer.encode(TEXT)?;
    Ok((model, (0..BATCHES).map(|i| cut(&tokens, i)).collect()))
}

fn introduce<B: Backend>(name: &str, model: &Model<B>) {
    let (config, name) = (&model.config, Path::new(name));
    let name = name.file_name().unwrap_or(name.as_os_str()).display();
    println!("{name}: {} layers, d = {}", config.layers, config.hidden);
}

/// What log p and gradients are off by.
fn table<const N: usize>(exact: &Run, runs: [&Run; N]) {
    row("loss of a batch, difference", runs.map(|r| mean(&exact.log_p) - mean(&r.log_p)));
    row("log p of a token: mean difference, absolute", runs.map(|r| apart(r, exact).0));
    row("log p of a token: largest difference", runs.map(|r| apart(r, exact).1));
    let errors = runs.map(|r| errors(r, exact));
    row("gradient's error, mean of tensors", errors.map(|e| e.0));
    row("gradient's error, worst tensor", errors.map(|e| e.1));
    row("lowest cosine with f32's gradient", errors.map(|e| e.2));
}

fn row<const N: usize>(what: &str, values: [f64; N]) {
    println!("| {what} | {} |", values.map(|value| format!("{value:.6}")).join(" | "));
}

fn mean(log_p: &[f32]) -> f64 {
    log_p.iter().map(|l| f64::from(*l)).sum::<f64>() / log_p.len() as f64
}

/// How far log p is from f32's: the mean, and the most.
fn apart(run: &Run, exact: &Run) -> (f64, f64) {
    let pairs = || run.log_p.iter().zip(&exact.log_p);
    let gaps = || pairs().map(|(a, b)| f64::from(a - b).abs());
    (gaps().sum::<f64>() / exact.log_p.len() as f64, gaps().fold(0.0, f64::max))
}

/// The mean and the largest relative error of a tensor's gradient, and the lowest cosine.
fn errors(run: &Run, exact: &Run) -> (f64, f64, f64) {
    let (mut sum, mut worst, mut cosine) = (0.0, 0.0f64, 1.0f64);
    for ((_, got), (_, want)) in run.gradients.iter().zip(&exact.gradients) {
        let dot = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
            got.iter().zip(want).map(|(g, w)| f(f64::from(*g), f64::from(*w))).sum()
        };
        let size = dot(&|_, w| w * w).sqrt().max(1e-30);
        let error = dot(&|g, w| (g - w) * (g - w)).sqrt() / size;
        (sum, worst) = (sum + error, worst.max(error));
        cosine = cosine.min(dot(&|g, w| g * w) / (size * dot(&|g, _| g * g).sqrt()).max(1e-30));
    }
    (sum / exact.gradients.len().max(1) as f64, worst, cosine)
}

/// A model between the studies' and the large ones, with the spread of weights that training
/// starts from.
fn random(cuda: &Arc<Cuda>) -> Result<Model<Cuda>> {
    let config = Config {
        family: Family::Qwen2,
        vocab: 4096,
        hidden: 1024,
        intermediate: 2816,
        layers: 8,
        heads: Heads { heads: 16, kv_heads: 4, dim: 64 },
        norm_eps: 1e-6,
        rope_theta: 1e6,
        rope_scaling: None,
        positions: 512,
        tied: false,
        qkv_bias: true,
        o_bias: false,
    };
    let mut model = Model::zeros(cuda.clone(), config, false)?;
    for (i, p) in model.base_mut().enumerate() {
        if p.name.contains("norm") {
            cuda.upload(&vec![1.0; p.len()], &mut p.value, 0)?;
        } else {
            cuda.randomize(&mut p.value, 0.03, i as u64)?;
        }
    }
    Ok(model)
}

/// Four sequences of a text.
fn cut(tokens: &[u32], i: usize) -> Batch {
    let mut batch = Batch::new();
    for j in 0..4 {
        let from = (i * 4 + j) * 61 % tokens.len().saturating_sub(130).max(1);
        let sequence = &tokens[from..(from + 129).min(tokens.len())];
        batch.push(&sequence[..1], &sequence[1..]);
    }
    batch
}

/// Four sequences in which one token mostly says the next.
fn made_up(i: u64) -> Batch {
    let mut batch = Batch::new();
    for j in 0..4 {
        let stream = Stream::new(100 * i + j);
        let mut token = 1;
        let next = |k: u64| {
            let u = stream.uniform(k);
            token = if u < 0.7 { (token * 37 + 11) % 4096 } else { (u * 4096.0) as u32 };
            token
        };
        let sequence: Vec<u32> = (0..257).map(next).collect();
        batch.push(&sequence[..1], &sequence[1..]);
    }
    batch
}

/// A batch's log-probabilities and gradients, and the losses of so many steps, from the same
/// adapter.
fn run<B: Backend>(model: &mut Model<B>, batches: &[Batch], steps: usize) -> Result<Run> {
    let backend = model.backend.clone();
    let lora = LoraConfig { dropout: 0.0, ..LoraConfig::default() };
    let mut adapter = Adapter::new(&*backend, &model.config, lora, true, Stream::new(3))?;
    // B, which begins as zeros, would keep A's gradient at zero.
    for p in adapter.parameters_mut().filter(|p| p.name.ends_with("lora_B")) {
        let stream = Stream::new(4).named(&p.name);
        let values: Vec<f32> =
            (0..p.len() as u64).map(|i| (0.02 * (2.0 * stream.uniform(i) - 1.0)) as f32).collect();
        backend.upload(&values, &mut p.value, 0)?;
    }
    model.swap_adapter(Some(adapter));
    let rows = batches.iter().map(Batch::len).max().unwrap_or(0);
    let mut acts = Activations::new(model, rows, Keep::All)?;
    let log_p = differentiate(model, &mut acts, &batches[0])?;
    let mut gradients = Vec::new();
    for p in model.trained() {
        let mut numbers = vec![0.0; p.len()];
        if let Some(grad) = &p.grad {
            backend.download(grad, 0, &mut numbers)?;
        }
        gradients.push((p.name.clone(), numbers));
    }
    let zeros = |len| backend.zeros(len, Kind::Exact);
    let mut moments = model
        .trained()
        .map(|p| Ok([zeros(p.len())?, zeros(p.len())?]))
        .collect::<Result<Vec<_>>>()?;
    let mut losses = Vec::new();
    for step in 0..steps {
        let log_p = differentiate(model, &mut acts, &batches[step % batches.len()])?;
        losses.push(-mean(&log_p));
        let (step, grad_scale) =
            (step as u64 + 1, (1.0 / (model.gradient_norm()? + 1e-6)).min(1.0) as f32);
        let (lr, beta1, beta2, eps, weight_decay) = (2e-4, 0.9, 0.999, 1e-8, 0.01);
        let adamw = AdamW { lr, beta1, beta2, eps, weight_decay, step, grad_scale };
        let parameters = model.trained_mut().zip(&mut moments);
        let mut updates: Vec<_> = parameters.filter_map(|(p, moments)| p.update(moments)).collect();
        backend.adamw(&adamw, &mut updates)?;
    }
    model.swap_adapter(None);
    Ok(Run { log_p, gradients, losses })
}

fn differentiate<B: Backend>(
    model: &mut Model<B>,
    acts: &mut Activations<B>,
    batch: &Batch,
) -> Result<Vec<f32>> {
    model.clear_gradients()?;
    model.forward(batch, acts, None)?;
    let log_p = model.score(acts)?;
    model.backward(acts, &vec![-1.0 / log_p.len() as f32; log_p.len()])?;
    Ok(log_p)
}
