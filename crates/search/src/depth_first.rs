//! Depth-first search and its two variants: one active path, extended while tactics are valid; they
//! differ in where a miss leads.
//!
//! With distinct samples a miss does not lead to where nothing is left at or below a node, and from
//! where it leads the path goes down again as [`descend`] says: to go back to a node is to have
//! another chance below it, although what was drawn there is not drawn again.

use catamount_objective::Objective;

use crate::descent::descend;
use crate::kind::{Family, Method};
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
    (
        $(#[$doc:meta])*
        $variant:ident, $name:literal, $label:literal, $objective:expr, $also:expr, $how:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $variant;

        impl Method for $variant {
            const NAME: &'static str = $name;
            const LABEL: &'static str = $label;
            const OBJECTIVE: Objective = $objective;
            const ALSO: &'static [Objective] = $also;
            const FAMILY: Family = Family::DepthFirst;
            // Levin scores are made of probabilities.
            const CHOICES_MOVE: bool = matches!($how, Backtrack::Levin);
            const PARAMETERS: &'static [Parameter<Self>] = &[];

            fn strategy(&self) -> Box<dyn Strategy> {
                Box::new(DepthFirst::new($how))
            }
        }
    };
}

variant! {
    /// DFS: a miss stays. It shares its recurrence with best-first search.
    Dfs, "dfs", "DFS", Objective::Dfs, &[Objective::Bfs], Backtrack::Stay
}
variant! {
    /// RDFS: a miss goes back to a uniform ancestor.
    Rdfs, "rdfs", "RDFS", Objective::Rdfs, &[], Backtrack::Uniform
}
variant! {
    /// VDFS: a miss goes back to an ancestor by Levin score.
    Vdfs, "vdfs", "VDFS", Objective::Vdfs, &[], Backtrack::Levin
}

impl DepthFirst {
    /// A search that starts at the root.
    pub fn new(backtrack: Backtrack) -> Self {
        DepthFirst { backtrack, path: vec![NodeId::ROOT], missed: false }
    }
}

impl Strategy for DepthFirst {
    fn select(&mut self, tree: &Tree, choose: &mut Choose<'_>) -> Vec<Expand> {
        // Without distinct samples something is left everywhere.
        let last = self.path.iter().rposition(|&node| tree.below(node) > 0.0);
        let Some(last) = last else { return Vec::new() };
        if std::mem::take(&mut self.missed) && self.path.len() > 1 {
            let weigh = |weight: &dyn Fn(NodeId) -> f64| -> Vec<f64> {
                let left = |node| if tree.below(node) > 0.0 { weight(node) } else { 0.0 };
                self.path.iter().map(|&node| left(node)).collect()
            };
            let to = match self.backtrack {
                Backtrack::Stay => last,
                Backtrack::Uniform => choose(&weigh(&|_| 1.0)),
                Backtrack::Levin => choose(&weigh(&|node| tree.levin(node))),
            };
            self.path.truncate(to + 1);
        }
        if tree.is_distinct() {
            let way = descend(tree, self.path[self.path.len() - 1], choose);
            self.path.extend(way.into_iter().flatten());
        }
        vec![Expand { node: self.path[self.path.len() - 1], samples: 1 }]
    }

    fn update(&mut self, _tree: &Tree, _node: NodeId, reached: Reached) {
        match reached {
            Reached::Open(child) => self.path.push(child),
            _ => self.missed = true,
        }
    }

    fn nothing_left(&mut self, _node: NodeId) {
        self.missed = true;
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
