//! Theorems and the demonstrated traces that prove them: the types, the files they live in, and how
//! a set of traces is split into training and held-out pools.
//!
//! This crate knows nothing of provers: a state and a tactic are text.
//!
//! ```
//! use catamount_traces::{Step, Steps, Theorem, Trace, jsonl};
//!
//! let trace = Trace {
//!     theorem: Theorem {
//!         name: "and_comm".into(),
//!         statement: "p ∧ q → q ∧ p".into(),
//!         ..Theorem::default()
//!     },
//!     steps: vec![Step {
//!         state: "⊢ p ∧ q → q ∧ p".into(),
//!         tactic: "tauto".into(),
//!         next: Some(String::new()),
//!         ..Step::default()
//!     }],
//! };
//! let mut bytes = Vec::new();
//! jsonl::write_to(&mut bytes, [&trace])?;
//! let back = jsonl::Reader::new(&bytes[..], "memory").collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(back, [trace]);
//! assert!(!"2-5".parse::<Steps>()?.contains(back[0].steps.len()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod error;
mod folds;
mod format;
mod input;
pub mod jsonl;
mod layout;
pub mod leandojo;
mod manifest;
pub mod parquet;
mod premise;
mod scored;
mod split;
mod statistics;
mod steps;
mod theorem;
mod validate;

pub use error::Error;
pub use folds::folds;
pub use format::{Format, Loaded, Skipped, detect, read_any, read_theorems, write_any};
pub use input::{Input, shards};
pub use layout::{PROMPT, SEPARATOR, prompt};
pub use manifest::{FileEntry, MANIFEST, Manifest, Origin};
pub use premise::{Annotated, Premise};
pub use scored::LogP;
pub use split::{Parts, Share, Split, text_key};
pub use statistics::{Quantiles, Statistics};
pub use steps::{Steps, StepsError};
pub use theorem::{Step, Theorem, Trace};
pub use validate::{Problem, Report, validate};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
