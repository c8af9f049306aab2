//! Weighted supervised fine-tuning: a warm-up with cross-entropy, then branches that differ in
//! nothing but their weights.
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::{Arc, atomic::AtomicBool};
//!
//! use catamount_model::{Config, Cpu, Model, Tokenizer};
//! use catamount_objective::{Objective, Surrogate};
//! use catamount_search::Stream;
//! use catamount_train::{Dataset, Recipe, Run, Snapshot, train};
//!
//! let traces = catamount_traces::read_any(Path::new("train.jsonl"))?.traces;
//! let texts = traces.iter().flat_map(|t| &t.steps).flat_map(|s| [&s.state, &s.tactic]);
//! let tokenizer = Tokenizer::train_symbols(texts, 4096)?;
//! let config = Config::small(tokenizer.vocab(), 256, 6, 512);
//! let mut model = Model::init(Arc::new(Cpu), config, Stream::new(42))?;
//!
//! let (recipe, stop) = (Recipe::default(), AtomicBool::new(false));
//! let data = Dataset::tokenize(&tokenizer, &traces, recipe.max_tokens)?;
//! let run = Run::new(Path::new("training"), "warm-up", &stop);
//! train(&mut model, &data, &Surrogate::new(Objective::Ce, 0), &recipe, &run)?;
//! let warm = Snapshot::take(&model)?;
//! for objective in [Objective::Ce, Objective::Bfs] {
//!     warm.restore(&mut model)?;
//!     let run = Run::new(Path::new("training"), objective.name(), &stop);
//!     train(&mut model, &data, &Surrogate::new(objective, 256), &recipe, &run)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod card;
mod checkpoint;
mod data;
mod distribution;
mod error;
mod export;
mod metrics;
mod optimizer;
mod pack;
mod plan;
mod probabilities;
mod quantile_map;
mod recipe;
mod schedule;
mod score;
mod scores;
mod snapshot;
mod step;
mod tensorboard;
mod tensors;
mod train;
mod validation;
mod weights;

pub use card::Card;
pub use checkpoint::Checkpoint;
pub use data::{Dataset, Example};
pub use distribution::{Distribution, LEVELS, distance};
pub use error::{Error, Result};
pub use export::{export, prepare};
pub use metrics::{Measurement, QUANTILES};
pub use plan::Plan;
pub use probabilities::{Probabilities, Reading, mapped};
pub use quantile_map::QuantileMap;
pub use recipe::{
    Batching, Checkpoints, HOTTEST, LoraRecipe, Normalise, Optimizer, Recipe, Refresh, Schedule,
    Weighting,
};
pub use score::{Scored, score, score_data};
pub use scores::Scores;
pub use snapshot::Snapshot;
pub use tensorboard::{EventFile, crc32c, masked_crc32c};
pub use train::{Outcome, Run, Summary, train};
pub use validation::Validation;
pub use weights::{Custom, Weigh};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
