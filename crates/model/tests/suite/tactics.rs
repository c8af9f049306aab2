//! A small model that knows a few tactics, and a generator that samples from it.

use std::collections::HashMap;
use std::sync::Arc;

use catamount_model::{
    Activations, AdamW, Backend, Batch, Config, Cpu, Generator, GeneratorConfig, Keep, Kind,
    Memory, Model, Optimize, Sampling, Tokenizer,
};
use catamount_search::{Policy, Sample, Stream};

pub fn tokenizer() -> Tokenizer {
    Tokenizer::train_symbols(["|- ( ph -> ps )", "|- ph", "mp2 ax-1 syl"].iter(), 280).unwrap()
}

pub const TACTICS: [&str; 6] = ["mp2", "ax-1", "syl", "mp2 ax-1", "syl mp2", "ax-1 ax-1 syl"];

/// A model that has seen each tactic after every state a few times: it spreads its probability over
/// them, unevenly.
pub fn model(tokenizer: &Tokenizer, seed: u64) -> Model<Cpu> {
    let mut config = Config::small(tokenizer.vocab(), 32, 2, 96);
    config.heads = catamount_model::Heads { heads: 4, kv_heads: 2, dim: 8 };
    let mut model = Model::init(Arc::new(Cpu), config, Stream::new(seed)).unwrap();
    let mut batch = Batch::new();
    for state in STATES {
        for tactic in TACTICS {
            batch.push(&tokenizer.prompt(state).unwrap(), &tokenizer.tactic(tactic).unwrap());
        }
    }
    fit(&mut model, &batch, 25, 0.02);
    model
}

/// Fits a model to a batch, and gives back the losses.
pub fn fit(model: &mut Model<Cpu>, batch: &Batch, steps: u64, lr: f32) -> Vec<f32> {
    let mut acts = Activations::new(model, batch.len(), Keep::All).unwrap();
    let mut state: Vec<_> =
        model.trained().map(|p| [0, 1].map(|_| Cpu.zeros(p.len(), Kind::Exact).unwrap())).collect();
    let mut losses = Vec::new();
    for step in 1..=steps {
        model.clear_gradients().unwrap();
        model.forward(batch, &mut acts, None).unwrap();
        let log_p = model.score(&mut acts).unwrap();
        losses.push(-log_p.iter().sum::<f32>() / log_p.len() as f32);
        model.backward(&mut acts, &vec![-1.0 / log_p.len() as f32; log_p.len()]).unwrap();
        let (beta1, beta2, eps) = (0.9, 0.95, 1e-8);
        let adamw = AdamW { lr, beta1, beta2, eps, weight_decay: 0.0, step, grad_scale: 1.0 };
        let mut updates: Vec<_> = model
            .trained_mut()
            .zip(&mut state)
            .filter_map(|(p, moments)| p.update(moments))
            .collect();
        Cpu.adamw(&adamw, &mut updates).unwrap();
    }
    losses
}

/// log p of a whole tactic after a state.
pub fn score(model: &Model<Cpu>, tokenizer: &Tokenizer, state: &str, tactic: &str) -> f64 {
    let mut batch = Batch::new();
    batch.push(&tokenizer.prompt(state).unwrap(), &tokenizer.tactic(tactic).unwrap());
    let mut acts = Activations::new(model, batch.len(), Keep::Nothing).unwrap();
    model.forward(&batch, &mut acts, None).unwrap();
    model.score(&mut acts).unwrap().iter().map(|x| f64::from(*x)).sum()
}

pub fn generator(batch: usize, cache: usize, sampling: Sampling) -> Generator<Cpu> {
    let tokenizer = tokenizer();
    let config = GeneratorConfig { sampling, max_tokens: 8, max_prompt: 40, batch, cache };
    Generator::new(model(&tokenizer, 3), tokenizer, config, "test").unwrap()
}

pub const STATES: [&str; 4] = ["|- ph", "|- ( ph -> ps )", "|- ( ps -> ( ph -> ps ) )", ""];
pub const PLAIN: Sampling = Sampling { temperature: 1.0, top_p: 1.0 };

pub fn answers<B: Backend>(generator: &mut Generator<B>) -> HashMap<u64, Vec<Sample>> {
    let mut all = HashMap::new();
    loop {
        let some = generator.poll();
        if some.is_empty() {
            return all;
        }
        all.extend(some.into_iter().map(|(id, answer)| (id, answer.unwrap())));
    }
}
