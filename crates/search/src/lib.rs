//! Search strategies as ask/tell state machines, and the three interfaces around them.
//!
//! A [`Search`] decides *where* to sample; a [`Policy`] says *what* to try there; an
//! [`Environment`] judges it. None of them knows the others: a driver (in `catamount-evaluate`)
//! carries questions and answers between them. Nothing in this crate knows time, processes or
//! files, so the same seed and the same verdicts give the same questions.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod best_first;
mod deployment;
mod depth_first;
mod descent;
mod environment;
mod identity;
#[macro_use]
mod kind;
mod monte_carlo;
mod parameter;
mod pass;
mod patience;
mod policy;
mod search;
mod spent;
mod strategy;
mod tree;
mod trie;
mod urn;

pub use best_first::{BestFirst, BestFirstSettings};
pub use catamount_base::Stream;
pub use catamount_objective::Objective;
pub use deployment::{Deployment, Overrides};
pub use depth_first::{Backtrack, DepthFirst, Dfs, Rdfs, Vdfs};
pub use environment::{Checked, Environment, Fault, Session, Setup, StateId, Verdict};
pub use identity::Identity;
pub use kind::{Family, Method, StrategyKind, UnknownStrategy};
pub use monte_carlo::{MonteCarlo, MonteCarloSettings};
pub use parameter::{Allowed, Parameter, ParameterHelp, SettingError, Value};
pub use pass::{Pass, PassSettings};
pub use patience::Patience;
pub use policy::{Policy, Request, RequestId, Sample};
pub use search::{Answer, Ask, Finish, Search};
pub use spent::Spent;
pub use strategy::{Choose, Expand, Strategy};
pub use tree::{NodeId, Reached, Tree};
pub use trie::{DRAWN_OUT, Place, Step, Trie};
pub use urn::Urn;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
