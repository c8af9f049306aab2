#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod error;
mod folder;
mod found;
mod lean;
mod library;
mod making;
mod metamath;
mod reopen;
mod source;

pub use error::{Error, Result};
pub use found::traced;
pub use lean::{Tracing, trace_corpus, trace_lean};
pub use library::{LeanLimits, Library, database_path, find_corpora, find_corpus};
pub use making::{Making, Progress, Summary};
pub use metamath::Extracting;
pub use reopen::{Elsewhere, Reopened, Trust, reopen};
pub use source::{Source, load};
