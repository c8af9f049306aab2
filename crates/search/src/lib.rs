//! Search strategies as ask/tell state machines, and the three interfaces around them.
//!
//! A [`Search`] decides *where* to sample; a [`Policy`] says *what* to try there; an
//! [`Environment`] judges it. None of them knows the others: a driver (in `catamount-evaluate`)
//! carries questions and answers between them. Nothing in this crate knows time, processes or
//! files, so the same seed and the same verdicts give the same questions.

mod best_first;
mod depth_first;
mod environment;
mod monte_carlo;
mod pass;
mod policy;
mod search;
mod settings;
mod strategy;
mod tree;

pub use best_first::{BestFirst, BestFirstSettings};
pub use depth_first::{Backtrack, DepthFirst};
pub use environment::{Checked, Environment, Fault, Session, StateId, Verdict};
pub use monte_carlo::MonteCarlo;
pub use pass::Pass;
pub use policy::{Policy, Request, RequestId, Sample, Stream};
pub use search::{Answer, Ask, Finish, Search};
pub use settings::{STRATEGIES, SearchSettings, UnknownStrategy};
pub use strategy::{Choose, Expand, Strategy};
pub use tree::{NodeId, Reached, Tree};
