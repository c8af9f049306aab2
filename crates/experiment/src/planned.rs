//! A step with its place in a plan.

use crate::step::Step;

/// A step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// What it is.
    pub step: Step,
    /// Its name for people.
    pub name: String,
    /// Hash of everything that its outcome depends on.
    pub key: String,
    /// The keys of the steps that must be done before.
    pub after: Vec<String>,
}
