//! Search strategies as ask/tell state machines, and the three interfaces around them.
//!
//! A [`Search`] decides *where* to sample; a [`Policy`] says *what* to try there; an [`Environment`] judges it. None of them
//! knows the others: a driver (in `catamount-evaluate`) carries questions and answers between them. Nothing in this crate
//! knows time, processes or files, so the same seed and the same verdicts give the same questions.

mod environment;
mod policy;

pub use environment::{Checked, Environment, Fault, Session, StateId, Verdict};
pub use policy::{Policy, Request, RequestId, Sample, Stream};
