//! Compares gradients and a whole training run with what `parity/reference.py` wrote, and writes
//! the curves beside it.
//!
//! `cargo run --release -p catamount-cuda --example gpu_parity -- FOLDER`
//!
//! PyTorch in f32 is what both are measured against: this crate's errors stand beside those of
//! PyTorch in bf16, as PEFT trains. Exits with 1 if a gradient here is more than half again as far
//! from f32 as PyTorch's own, or if the curves part further than bf16 parts PyTorch's own two. On
//! the processor, in f32, where there is no GPU.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use catamount_cuda::Cuda;
use catamount_model::{
    Activations, AdamW, Backend, Batch, Cpu, Keep, Kind, Model, Result, load, load_adapter,
    peft_name,
};

type Failure = Box<dyn std::error::Error>;
type Reference = HashMap<String, Vec<f32>>;

fn main() -> std::result::Result<(), Failure> {
    let folder =
        std::env::args().nth(1).ok_or("usage: gpu_parity FOLDER (from parity/reference.py)")?;
    match Cuda::new(0) {
        Ok(cuda) => compare(Arc::new(cuda), Path::new(&folder)),
        Err(reason) => {
            println!("on the processor: {reason}");
            compare(Arc::new(Cpu), Path::new(&folder))
        }
    }
}

fn read(path: &Path) -> std::result::Result<Reference, Failure> {
    let bytes = std::fs::read(path)?;
    let tensors = safetensors::SafeTensors::deserialize(&bytes)?;
    let numbers =
        |data: &[u8]| data.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    Ok(tensors.tensors().into_iter().map(|(name, t)| (name, numbers(t.data()))).collect())
}

/// A step's sequences, every token but the first scored.
fn batch(reference: &Reference, step: usize) -> Batch {
    let (tokens, lengths, steps) =
        (&reference["tokens"], &reference["lengths"], reference["rates"].len());
    let sequences = lengths.len() / steps;
    let longest = tokens.len() / lengths.len();
    let mut batch = Batch::new();
    for i in step * sequences..(step + 1) * sequences {
        let sequence: Vec<u32> =
            tokens[i * longest..][..lengths[i] as usize].iter().map(|t| *t as u32).collect();
        batch.push(&sequence[..1], &sequence[1..]);
    }
    batch
}

/// The relative error in the Euclidean norm, and the cosine of the angle between two gradients.
fn apart(got: &[f32], want: &[f32]) -> (f64, f64) {
    let sum = |f: &dyn Fn(f64, f64) -> f64| {
        got.iter().zip(want).map(|(g, w)| f(f64::from(*g), f64::from(*w))).sum::<f64>()
    };
    let (size, length) = (sum(&|_, w| w * w).sqrt(), sum(&|g, _| g * g).sqrt());
    (
        sum(&|g, w| (g - w) * (g - w)).sqrt() / size.max(1e-30),
        sum(&|g, w| g * w) / (size * length).max(1e-30),
    )
}

/// The loss of the batch that is forwarded, and its gradient added.
fn differentiate<B: Backend>(
    model: &mut Model<B>,
    acts: &mut Activations<B>,
    batch: &Batch,
) -> Result<f64> {
    model.clear_gradients()?;
    model.forward(batch, acts, None)?;
    let log_p = model.score(acts)?;
    model.backward(acts, &vec![-1.0 / log_p.len() as f32; log_p.len()])?;
    Ok(-log_p.iter().map(|l| f64::from(*l)).sum::<f64>() / log_p.len() as f64)
}

/// The adapter's gradients under PEFT's names.
fn gradients<B: Backend>(model: &Model<B>) -> Result<Vec<(String, Vec<f32>)>> {
    let mut found = Vec::new();
    let Some(adapter) = &model.adapter else { return Ok(found) };
    for (l, layer) in adapter.layers.iter().enumerate() {
        for lora in layer.iter().flatten() {
            let (rank, inputs, mut row) = (adapter.config.rank, lora.a.shape[1], 0);
            for (i, (part, target)) in lora.parts.iter().zip(&lora.targets).enumerate() {
                let mut take =
                    |p: &catamount_model::Parameter<B>, which, offset, len| -> Result<()> {
                        let mut numbers = vec![0.0; len];
                        if let Some(grad) = &p.grad {
                            model.backend.download(grad, offset, &mut numbers)?;
                        }
                        found.push((peft_name(l, *target, which), numbers));
                        Ok(())
                    };
                take(&lora.a, "A", i * rank * inputs, rank * inputs)?;
                take(&lora.b, "B", row * rank, part.len() * rank)?;
                row += part.len();
            }
        }
    }
    Ok(found)
}

fn compare<B: Backend>(backend: Arc<B>, folder: &Path) -> std::result::Result<(), Failure> {
    let reference = read(&folder.join("reference.safetensors"))?;
    println!("{}", backend.describe());
    let (mut model, _) = load(&folder.join("model"), backend.clone(), false)?;
    let adapter = |name: &str| load_adapter(&*backend, &model.config, &folder.join(name), true);
    let (random, fresh) = (adapter("adapter-random")?, adapter("adapter")?);
    let rates = reference["rates"].clone();
    let batches: Vec<Batch> = (0..rates.len()).map(|step| batch(&reference, step)).collect();
    let rows = batches.iter().map(Batch::len).max().unwrap_or(0);

    model.swap_adapter(Some(random));
    let mut acts = Activations::new(&model, rows, Keep::All)?;
    let loss = differentiate(&mut model, &mut acts, &batches[0])?;
    let (exact, half) = (f64::from(reference["f32.loss"][0]), f64::from(reference["bf16.loss"][0]));
    println!("loss of one batch: {loss:.5} here, {half:.5} PyTorch bf16, {exact:.5} PyTorch f32");
    let mut failures = Vec::new();
    let (mut worst, mut mean, mut count) = ([(0.0f64, 1.0f64); 2], [0.0; 2], 0.0);
    for (name, got) in gradients(&model)? {
        let want = &reference[&format!("f32.grad.{name}")];
        let both = [apart(&got, want), apart(&reference[&format!("bf16.grad.{name}")], want)];
        for (i, (error, cosine)) in both.into_iter().enumerate() {
            worst[i] = (worst[i].0.max(error), worst[i].1.min(cosine));
            mean[i] += error;
        }
        count += 1.0;
        let [(here, _), (there, _)] = both;
        // Nothing here may be further off than rounding explains.
        if here.is_nan() || here > 1.5 * there + 2e-3 {
            failures.push(format!("{name}: relative error {here:.1e}, PyTorch's {there:.1e}"));
        }
    }
    for (i, who) in ["here", "PyTorch bf16"].into_iter().enumerate() {
        let ((error, cosine), mean) = (worst[i], mean[i] / count);
        println!(
            "gradients of {count} tensors against f32, {who}: relative error {mean:.2e} on \
             average, {error:.2e} at worst; cosine at least {cosine:.6}"
        );
    }

    model.swap_adapter(Some(fresh));
    let losses = train(&mut model, rows, &batches, &rates)?;
    let mut table = String::from("step,here,pytorch_bf16,pytorch_f32\n");
    for (i, loss) in losses.iter().enumerate() {
        writeln!(
            table,
            "{},{loss:.6},{:.6},{:.6}",
            i + 1,
            reference["bf16.losses"][i],
            reference["f32.losses"][i]
        )?;
    }
    std::fs::write(folder.join("curves.csv"), table)?;
    let gap = |other: &str, curve: &[f64]| {
        let gaps = || curve.iter().zip(&reference[other]).map(|(a, b)| (a - f64::from(*b)).abs());
        (gaps().fold(0.0, f64::max), gaps().sum::<f64>() / curve.len() as f64)
    };
    let theirs: Vec<f64> = reference["bf16.losses"].iter().map(|l| f64::from(*l)).collect();
    let (here, own) = (gap("bf16.losses", &losses), gap("f32.losses", &theirs));
    let (first, last) = (losses[0], losses[losses.len() - 1]);
    println!(
        "{} steps, loss {first:.4} to {last:.4}; curves in {}",
        losses.len(),
        folder.join("curves.csv").display()
    );
    println!(
        "gap to PyTorch bf16: {:.4} at most, {:.4} on average; PyTorch bf16 to its f32: {:.4}, \
         {:.4}",
        here.0, here.1, own.0, own.1
    );
    let (most, average) = gap("f32.losses", &losses);
    println!("gap to PyTorch f32: {most:.4} at most, {average:.4} on average");
    if average.is_nan() || average > 2.0 * own.1 + 2e-3 {
        failures.push(format!("the curves part by {average:.4} on average"));
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

/// The losses of a run: AdamW, gradients clipped to norm 1.
fn train<B: Backend>(
    model: &mut Model<B>,
    rows: usize,
    batches: &[Batch],
    rates: &[f32],
) -> Result<Vec<f64>> {
    let backend = model.backend.clone();
    let mut acts = Activations::new(model, rows, Keep::All)?;
    let zeros = |len| backend.zeros(len, Kind::Exact);
    let mut moments = model
        .trained()
        .map(|p| Ok([zeros(p.len())?, zeros(p.len())?]))
        .collect::<Result<Vec<_>>>()?;
    let mut losses = Vec::new();
    for (step, (batch, &lr)) in batches.iter().zip(rates).enumerate() {
        losses.push(differentiate(model, &mut acts, batch)?);
        let norm = model.gradient_norm()?;
        let (step, grad_scale) = (step as u64 + 1, (1.0 / (norm + 1e-6)).min(1.0) as f32);
        let adamw =
            AdamW { lr, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01, step, grad_scale };
        let parameters = model.trained_mut().zip(&mut moments);
        let mut updates: Vec<_> = parameters.filter_map(|(p, moments)| p.update(moments)).collect();
        backend.adamw(&adamw, &mut updates)?;
    }
    Ok(losses)
}
