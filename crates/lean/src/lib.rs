//! Lean 4 as a proving environment: a proof server written in Lean, two hosts that run it (a native
//! toolchain, or WebAssembly under node), a pool of workers, tracing of libraries, and a judge of
//! finished proofs that runs nothing of theirs.
//!
//! This crate knows nothing of language models and of search strategies.
//!
//! ```no_run
//! use catamount_lean::{Lean, Options};
//! use catamount_search::{Environment, StateId, Verdict};
//! use catamount_traces::Theorem;
//!
//! let lean = Lean::new(Options::default())?;
//! let theorem = Theorem {
//!     name: "swap".into(),
//!     statement: "theorem swap (p q : Prop) : p ∧ q → q ∧ p".into(),
//!     ..Theorem::default()
//! };
//! let mut session = lean.open(&theorem)?;
//! assert_eq!(session.root(), "p q : Prop\n⊢ p ∧ q → q ∧ p");
//! assert_eq!(session.apply(StateId(0), "exact fun h => ⟨h.2, h.1⟩")?, Verdict::Proved);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod api;
mod assets;
mod build;
mod bundled;
mod cache;
mod certificate;
mod challenge;
mod challengers;
mod check;
mod checkouts;
mod child;
mod claim;
mod compile;
#[cfg(test)]
mod compromised;
mod corpus;
mod doctor;
#[doc(hidden)]
pub mod doors;
mod environment;
mod error;
mod escape;
mod export;
mod file_report;
mod found;
mod helpers;
mod identity;
mod judge;
mod lakefile;
mod launch;
mod ledger;
mod modules;
mod nanoda;
mod native;
mod node;
mod npm;
mod olean;
mod options;
mod pace;
mod pool;
mod process;
mod project;
mod reading;
#[cfg(test)]
mod reread;
mod room;
mod sandbox;
mod seat;
mod session;
mod slot;
mod source;
mod terms;
mod tool;
mod trace;
mod warnings;
mod wire;
mod worker;

#[doc(hidden)]
pub use api::names_file;
pub use build::{BuildProgress, BuildReport, FailedModule, build, modules_folder, runtime_name};
pub use bundled::write_bundled_library;
pub use certificate::Certificate;
pub use claim::{Claim, Ruling, RulingVerdict};
pub use corpus::{Corpus, Recipe};
pub use doctor::{Finding, diagnose, self_test};
pub use environment::Lean;
pub use error::Error;
pub use export::export;
pub use file_report::{FileOutcome, FileReport, Message, Sorry};
pub use options::{Host, Kernel, Options, PROVER, STANDARD_AXIOMS};
pub use room::workers_here;
pub use trace::{FileProblem, LostTheorem, TraceProgress, TraceReport, Work, trace, trace_corpus};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
