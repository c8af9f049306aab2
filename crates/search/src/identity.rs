//! What a policy or a prover is, by content: what must be the same for results to be the same.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Named parts, each a hash or a setting: `weights`, `database`, `imports`. Where it lies, what it
/// is called and which device computes it are no part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Identity(BTreeMap<String, String>);

impl Identity {
    /// Something of a kind: `model`, `ngram`, `metamath`.
    pub fn new(kind: &str) -> Self {
        Identity::default().with("kind", kind)
    }

    /// With one more part.
    pub fn with(mut self, part: &str, value: impl fmt::Display) -> Self {
        self.0.insert(part.to_string(), value.to_string());
        self
    }

    /// A part.
    pub fn get(&self, part: &str) -> Option<&str> {
        self.0.get(part).map(String::as_str)
    }

    /// The parts that differ: their names, what they were here and what they are there.
    pub fn differences<'a>(&'a self, other: &'a Identity) -> Vec<(&'a str, &'a str, &'a str)> {
        let mut parts: Vec<&str> =
            self.0.keys().chain(other.0.keys()).map(String::as_str).collect();
        parts.sort_unstable();
        parts.dedup();
        let value = |of: &'a Identity, part: &str| of.get(part).unwrap_or("nothing");
        parts
            .into_iter()
            .map(|part| (part, value(self, part), value(other, part)))
            .filter(|(_, a, b)| a != b)
            .collect()
    }
}
