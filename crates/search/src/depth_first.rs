//! Depth-first search and its two variants: one active path, extended while tactics are valid; they
//! differ in where a miss leads.

use crate::strategy::{Choose, Expand, Strategy};
use crate::tree::{NodeId, Reached, Tree};

/// Where a miss leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backtrack {
    /// DFS: stay at the node and sample again.
    Stay,
    /// RDFS: to a node of the active path, uniformly.
    Uniform,
    /// VDFS: to a node of the active path, by Levin score.
    Levin,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct DepthFirst {
    backtrack: Backtrack,
    /// The active path, the root first.
    path: Vec<NodeId>,
    missed: bool,
}

impl DepthFirst {
    /// A search that starts at the root.
    pub fn new(backtrack: Backtrack) -> Self {
        DepthFirst { backtrack, path: vec![NodeId::ROOT], missed: false }
    }
}

impl Strategy for DepthFirst {
    fn select(&mut self, tree: &Tree, choose: &mut Choose<'_>) -> Vec<Expand> {
        if std::mem::take(&mut self.missed) && self.path.len() > 1 {
            let weights: Option<Vec<f64>> = match self.backtrack {
                Backtrack::Stay => None,
                Backtrack::Uniform => Some(vec![1.0; self.path.len()]),
                Backtrack::Levin => Some(self.path.iter().map(|&node| tree.levin(node)).collect()),
            };
            if let Some(weights) = weights {
                self.path.truncate(choose(&weights) + 1);
            }
        }
        vec![Expand { node: self.path[self.path.len() - 1], samples: 1 }]
    }

    fn update(&mut self, _tree: &Tree, _node: NodeId, reached: Reached) {
        match reached {
            Reached::Open(child) => self.path.push(child),
            _ => self.missed = true,
        }
    }

    fn score(&self, tree: &Tree, node: NodeId) -> Option<f64> {
        (self.backtrack == Backtrack::Levin).then(|| tree.levin(node))
    }

    fn boxed_clone(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
