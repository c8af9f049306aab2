//! Policy-guided best-first search: pop the best-scoring nodes of the frontier, sample a few
//! tactics at each, insert the children.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};

use crate::strategy::{Choose, Expand, Strategy};
use crate::tree::{NodeId, Reached, Tree};

/// Parameters; the defaults are the paper's (table search_params).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestFirstSettings {
    /// Nodes popped at a time.
    pub beam: usize,
    /// Samples at each popped node.
    pub samples: usize,
    /// The score is the sum of log p over depth^alpha: 1 is eq:bfs_score, 0.5 the paper's
    /// experiments.
    pub alpha: f64,
    /// Start over from the root after this many expansions without a proof.
    pub restart_after: Option<u64>,
    /// Start over from the root when the frontier is empty, rather than leave budget unspent.
    pub restart_when_empty: bool,
}

impl Default for BestFirstSettings {
    fn default() -> Self {
        BestFirstSettings {
            beam: 2,
            samples: 4,
            alpha: 0.5,
            restart_after: None,
            restart_when_empty: true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    score: f64,
    node: NodeId,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    /// The best score first; among equals the node found first.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.node.cmp(&self.node))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct BestFirst {
    settings: BestFirstSettings,
    frontier: BinaryHeap<Candidate>,
    /// Every node that has been on the frontier since the last start: a tactic sampled twice does
    /// not insert its child twice.
    inserted: HashSet<NodeId>,
    since_restart: u64,
}

impl BestFirst {
    /// A search that starts at the root.
    pub fn new(settings: BestFirstSettings) -> Self {
        let mut search = BestFirst {
            settings,
            frontier: BinaryHeap::new(),
            inserted: HashSet::new(),
            since_restart: 0,
        };
        search.restart();
        search
    }

    fn restart(&mut self) {
        self.frontier.clear();
        self.inserted.clear();
        self.since_restart = 0;
        self.frontier.push(Candidate { score: 0.0, node: NodeId::ROOT });
    }
}

impl Strategy for BestFirst {
    fn select(&mut self, _tree: &Tree, _choose: &mut Choose<'_>) -> Vec<Expand> {
        let due = self.settings.restart_after.is_some_and(|limit| self.since_restart >= limit);
        if due || (self.frontier.is_empty() && self.settings.restart_when_empty) {
            self.restart();
        }
        let samples = self.settings.samples.max(1);
        (0..self.settings.beam.max(1))
            .map_while(|_| self.frontier.pop())
            .map(|best| Expand { node: best.node, samples })
            .collect()
    }

    fn update(&mut self, tree: &Tree, _node: NodeId, reached: Reached) {
        self.since_restart += 1;
        if let Reached::Open(child) = reached
            && self.inserted.insert(child)
        {
            self.frontier
                .push(Candidate { score: tree.score(child, self.settings.alpha), node: child });
        }
    }

    fn score(&self, tree: &Tree, node: NodeId) -> Option<f64> {
        Some(tree.score(node, self.settings.alpha).exp())
    }

    fn boxed_clone(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
