//! Tactic generators that are not our own model: counts fitted to traces ([`Ngram`]),
//! demonstrations played back ([`Replay`]), and any OpenAI-compatible server
//! ([`Http`]).
//!
//! ```
//! use catamount_policies::Ngram;
//! use catamount_search::{Policy, Request, Stream};
//! use catamount_traces::{Step, Theorem, Trace};
//!
//! let step = |state: &str, tactic: &str| {
//!     Step { state: state.into(), tactic: tactic.into(), ..Step::default() }
//! };
//! let theorem = Theorem { name: "t".into(), ..Theorem::default() };
//! let steps = vec![step("⊢ p → q", "intro h"), step("h : p\n⊢ q", "exact h")];
//! let trace = Trace { theorem, steps };
//! let mut policy = Ngram::fit(&[trace], 1.0)?;
//! let (state, stream) = ("⊢ a → b".into(), Stream::new(1));
//! policy.submit(Request { id: 7, state, samples: 2, stream, urn: None });
//! let (id, samples) = policy.poll().remove(0);
//! assert_eq!((id, samples?.len()), (7, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod http;
mod ngram;
mod replay;
mod text;

pub use http::{Api, Http, HttpError, HttpSettings, Layout, ServedAdapter};
pub use ngram::{Ngram, NgramError};
pub use replay::Replay;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
