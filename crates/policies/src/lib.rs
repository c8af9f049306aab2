//! Tactic generators that are not our own model: counts fitted to traces ([`Ngram`]),
//! demonstrations played back ([`Replay`]), and any OpenAI-compatible server
//! ([`Http`]).
//!
//! ```
//! use catamount_policies::Ngram;
//! use catamount_search::{Policy, Request, Stream};
//! use catamount_traces::{Step, Theorem, Trace};
//!
//! let step = |state: &str, tactic: &str| Step { state: state.into(), tactic: tactic.into(), next: None };
//! let theorem = Theorem { name: "t".into(), ..Theorem::default() };
//! let trace = Trace { theorem, steps: vec![step("⊢ p → q", "intro h"), step("h : p\n⊢ q", "exact h")] };
//! let mut policy = Ngram::fit(&[trace], 1.0)?;
//! policy.submit(Request { id: 7, state: "⊢ a → b".into(), samples: 2, stream: Stream::new(1), urn: None });
//! let (id, samples) = policy.poll().remove(0);
//! assert_eq!((id, samples?.len()), (7, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
