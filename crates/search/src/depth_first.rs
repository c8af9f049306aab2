//! Depth-first search and its two variants: one active path, extended while tactics are valid; they
//! differ in where a miss leads.

use crate::kind::Method;
use crate::parameter::Parameter;
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

/// The three variants have no parameters.
macro_rules! variant {
    ($(#[$doc:meta])* $variant:ident, $name:literal, $label:literal, $objectives:expr, $how:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $variant;

        impl Method for $variant {
            const NAME: &'static str = $name;
            const LABEL: &'static str = $label;
            const OBJECTIVES: &'static [&'static str] = $objectives;
            const PARAMETERS: &'static [Parameter<Self>] = &[];

            fn strategy(&self) -> Box<dyn Strategy> {
                Box::new(DepthFirst::new($how))
            }
        }
    };
}

variant! {
    /// DFS: a miss stays. It shares its recurrence with best-first search.
    Dfs, "dfs", "DFS", &["dfs", "bfs"], Backtrack::Stay
}
variant! {
    /// RDFS: a miss goes back to a uniform ancestor.
    Rdfs, "rdfs", "RDFS", &["rdfs"], Backtrack::Uniform
}
variant! {
    /// VDFS: a miss goes back to an ancestor by Levin score.
    Vdfs, "vdfs", "VDFS", &["vdfs"], Backtrack::Levin
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

    fn key(&self) -> Vec<u64> {
        let path = self.path.iter().map(|node| node.0.into());
        std::iter::once(self.missed.into()).chain(path).collect()
    }

    fn boxed_clone(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
