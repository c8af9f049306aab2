//! Monte Carlo tree search: UCT over the children, progressive widening of their number, and the
//! policy's own Levin score as the value.
//!
//! With distinct samples a node where nothing is left to draw is not widened, and a child with
//! nothing left at or below it is not selected.

use catamount_objective::Objective;

use crate::kind::{Family, Method};
use crate::parameter::Parameter;
use crate::strategy::{Choose, Expand, Strategy};
use crate::tree::{NodeId, Reached, Tree};

/// Parameters; the default is the paper's (table search_params).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MonteCarloSettings {
    /// UCT's exploration constant c.
    pub exploration: f64,
}

impl Default for MonteCarloSettings {
    fn default() -> Self {
        MonteCarloSettings { exploration: 0.5 }
    }
}

impl Method for MonteCarloSettings {
    const NAME: &'static str = "mcts";
    const LABEL: &'static str = "MCTS";
    const OBJECTIVE: Objective = Objective::Mcts;
    const FAMILY: Family = Family::Batches;
    const PARAMETERS: &'static [Parameter<Self>] = &[Parameter::real(
        "exploration",
        0.0..=1e6,
        "UCT's exploration constant",
        |s| s.exploration,
        |s, v| s.exploration = v,
    )];

    fn strategy(&self) -> Box<dyn Strategy> {
        Box::new(MonteCarlo::new(self.exploration))
    }
}

#[derive(Clone, Debug, Default)]
struct Statistics {
    /// n: evaluations at or below the node.
    visits: u64,
    /// m: tactics sampled at the node.
    samples: u64,
    /// W: the sum of values backed up.
    value: f64,
    children: Vec<NodeId>,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct MonteCarlo {
    exploration: f64,
    nodes: Vec<Statistics>,
}

impl MonteCarlo {
    /// A search with UCT's exploration constant c.
    pub fn new(exploration: f64) -> Self {
        MonteCarlo { exploration, nodes: vec![Statistics::default()] }
    }

    fn at(&mut self, node: NodeId) -> &mut Statistics {
        let index = node.0 as usize;
        if self.nodes.len() <= index {
            self.nodes.resize_with(index + 1, Statistics::default);
        }
        &mut self.nodes[index]
    }

    /// Q + c sqrt(ln n_parent / n).
    fn uct(&self, parent: &Statistics, child: NodeId) -> f64 {
        let child = &self.nodes[child.0 as usize];
        let visits = child.visits as f64;
        child.value / visits + self.exploration * ((parent.visits as f64).ln() / visits).sqrt()
    }
}

impl Strategy for MonteCarlo {
    fn select(&mut self, tree: &Tree, _choose: &mut Choose<'_>) -> Vec<Expand> {
        let mut node = NodeId::ROOT;
        if tree.below(node) == 0.0 {
            return Vec::new();
        }
        loop {
            let here = &self.nodes[node.0 as usize];
            // m < ceil(sqrt(n + 1)), in whole numbers.
            let widens = here.samples * here.samples < here.visits + 1;
            let children = || here.children.iter().filter(|&&child| tree.below(child) > 0.0);
            if tree.left(node) > 0.0 && (widens || children().next().is_none()) {
                return vec![Expand { node, samples: 1 }];
            }
            node = *children()
                // `max_by` keeps the last of equals; reversed, the first child found wins a tie.
                .rev()
                .max_by(|&&a, &&b| self.uct(here, a).total_cmp(&self.uct(here, b)))
                .expect("something is left at or below every node on the way");
        }
    }

    fn update(&mut self, tree: &Tree, node: NodeId, reached: Reached) {
        self.at(node).samples += 1;
        let mut value = 0.0;
        if let Reached::Open(child) = reached {
            value = tree.levin(child);
            let found = self.at(child);
            found.visits += 1;
            found.value += value;
            if !self.at(node).children.contains(&child) {
                self.at(node).children.push(child);
            }
        }
        let mut ancestor = node;
        loop {
            let statistics = self.at(ancestor);
            statistics.visits += 1;
            statistics.value += value;
            if ancestor == NodeId::ROOT {
                break;
            }
            ancestor = tree.parent(ancestor);
        }
    }

    fn score(&self, tree: &Tree, node: NodeId) -> Option<f64> {
        Some(tree.levin(node))
    }

    fn key(&self) -> Vec<u64> {
        let mut key = Vec::new();
        for node in &self.nodes {
            key.extend([node.visits, node.samples, node.value.to_bits()]);
            key.push(node.children.len() as u64);
            key.extend(node.children.iter().map(|child| u64::from(child.0)));
        }
        key
    }

    fn boxed_clone(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
