//! A training step, as `catamount` takes it.

use std::time::Instant;

use catamount_cuda::Cuda;
use catamount_model::{Activations, AdamW, Batch, Keep, Kind, Memory, Model, Optimize};

use crate::Failure;
use crate::profiles::print_profile;

type Outcome<T> = catamount_model::Result<T>;

/// One optimizer step.
struct Trainer {
    acts: Activations<Cuda>,
    moments: Vec<[<Cuda as Memory>::Tensor; 2]>,
    step: u64,
}

impl Trainer {
    fn new(cuda: &Cuda, model: &Model<Cuda>, rows: usize, keep: Keep) -> Outcome<Self> {
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
    ) -> Outcome<f64> {
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

/// What is trained on, and how.
pub struct Training<'a> {
    pub name: &'a str,
    /// Taken in turn.
    pub batches: &'a [Batch],
    pub keep: Keep,
    pub dropout: Option<u64>,
    pub profiled: bool,
}

pub fn train(cuda: &Cuda, model: &mut Model<Cuda>, training: &Training) -> Result<(), Failure> {
    let &Training { name, batches, keep, dropout, profiled } = training;
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
    if profiled {
        let step = || trainer.step(cuda, model, &batches[0], dropout).map(|_| ());
        let timings = cuda.profile(step)?;
        print_profile(&format!("a training step, {name}"), &timings, median);
    }
    Ok(())
}
