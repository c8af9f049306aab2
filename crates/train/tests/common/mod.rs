//! A small world to train in: traces whose tactics follow from their states.

#![allow(dead_code)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catamount_model::{Config, Cpu, Model, Tokenizer};
use catamount_objective::{ObjectiveError, Surrogate, Weighed};
use catamount_search::Stream;
use catamount_traces::{Step, Theorem, Trace};
use catamount_train::{
    Batching, Checkpoints, Dataset, LoraRecipe, Measurement, Optimizer, Recipe, Weigh,
};

const SYMBOLS: [&str; 8] = ["ph", "ps", "ch", "th", "ta", "et", "ze", "si"];

/// A sum of symbols is proved by naming them one after another, the first first.
pub fn traces(n: usize) -> Vec<Trace> {
    (0..n)
        .map(|i| {
            let stream = Stream::new(11).child(i as u64);
            let length = 1 + i % 4;
            let symbols: Vec<&str> =
                (0..length as u64).map(|s| SYMBOLS[(stream.uniform(s) * 8.0) as usize]).collect();
            let state = |from: usize| format!("|- {}", symbols[from..].join(" + "));
            let step = |s: usize| Step {
                state: state(s),
                tactic: format!("take {}", symbols[s]),
                next: Some(state(s + 1)),
                ..Step::default()
            };
            let theorem =
                Theorem { name: format!("sum{i}"), statement: state(0), ..Theorem::default() };
            Trace { theorem, steps: (0..length).map(step).collect() }
        })
        .collect()
}

pub fn tokenizer(traces: &[Trace]) -> Tokenizer {
    let texts = traces.iter().flat_map(|t| &t.steps).flat_map(|s| [&s.state, &s.tactic]);
    Tokenizer::train_symbols(texts, 300).unwrap()
}

pub fn model(tokenizer: &Tokenizer) -> Model<Cpu> {
    Model::init(Arc::new(Cpu), Config::small(tokenizer.vocab(), 32, 2, 64), Stream::new(42))
        .unwrap()
}

pub fn data(tokenizer: &Tokenizer, traces: &[Trace]) -> Dataset {
    Dataset::tokenize(tokenizer, traces, 64).unwrap()
}

/// Small steps of a small model, with a checkpoint every fourth.
pub fn recipe() -> Recipe {
    Recipe {
        max_tokens: 64,
        batch: Batching { examples: 8, tokens: 96, recompute: false },
        optimizer: Optimizer { lr: 3e-3, ..Optimizer::default() },
        checkpoints: Checkpoints { every: 4, keep: 2 },
        ..Recipe::default()
    }
}

pub fn lora() -> Option<LoraRecipe> {
    Some(LoraRecipe { rank: 2, alpha: 4.0, dropout: 0.1, ..LoraRecipe::default() })
}

/// The lines of a metrics file without what depends on the clock.
pub fn metrics(path: &Path) -> Vec<Measurement> {
    let text = std::fs::read_to_string(path).unwrap();
    let line = |l: &str| Measurement { tokens_per_s: 0.0, ..serde_json::from_str(l).unwrap() };
    text.lines().map(line).collect()
}

/// A surrogate that breaks, or asks the run to stop, once it has weighed so many traces.
pub struct Fuse {
    pub inner: Surrogate,
    pub left: AtomicUsize,
    pub stop: Option<Arc<AtomicBool>>,
}

impl Fuse {
    pub fn new(inner: Surrogate, left: usize, stop: Option<Arc<AtomicBool>>) -> Self {
        Fuse { inner, left: AtomicUsize::new(left), stop }
    }
}

impl Weigh for Fuse {
    fn name(&self) -> String {
        Weigh::name(&self.inner)
    }

    fn budget(&self) -> Option<u64> {
        Weigh::budget(&self.inner)
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn depends_on_p(&self) -> bool {
        self.inner.depends_on_p()
    }

    fn weigh(&self, log_p: &[f64]) -> Result<Weighed, ObjectiveError> {
        if self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
            .is_err()
        {
            match &self.stop {
                Some(stop) => stop.store(true, Ordering::Relaxed),
                None => return Err(ObjectiveError::EmptyTrace),
            }
        }
        self.inner.weigh(log_p)
    }
}
