//! Policy-guided best-first search: pop the best-scoring nodes of the frontier, sample a few
//! tactics at each, insert the children.
//!
//! With distinct samples a node that was popped goes back on the frontier as long as anything is
//! left to draw there, in the place that its next child would have. There is then nothing to start
//! over for, and the two settings about that have no effect.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};

use catamount_objective::Objective;

use crate::kind::{Family, Method};
use crate::parameter::Parameter;
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

impl Method for BestFirstSettings {
    const NAME: &'static str = "bfs";
    const LABEL: &'static str = "BFS";
    // One recurrence serves best-first and depth-first search.
    const OBJECTIVE: Objective = Objective::Bfs;
    const ALSO: &'static [Objective] = &[Objective::Dfs];
    const FAMILY: Family = Family::Batches;
    const PARAMETERS: &'static [Parameter<Self>] = &[
        Parameter::whole(
            "beam",
            1..=65_536,
            "nodes popped at a time",
            |s| s.beam as u64,
            |s, v| s.beam = v as usize,
        ),
        Parameter::whole(
            "samples",
            1..=65_536,
            "samples at each popped node",
            |s| s.samples as u64,
            |s, v| s.samples = v as usize,
        ),
        Parameter::real(
            "alpha",
            0.0..=10.0,
            "exponent of the depth in the score",
            |s| s.alpha,
            |s, v| s.alpha = v,
        ),
        Parameter::optional(
            "restart_after",
            1..=1_000_000_000,
            "start over after so many expansions (not with distinct samples)",
            |s| s.restart_after,
            |s, v| s.restart_after = v,
        ),
        Parameter::flag(
            "restart_when_empty",
            "start over when the frontier is empty (not with distinct samples)",
            |s| s.restart_when_empty,
            |s, v| s.restart_when_empty = v,
        ),
    ];

    fn strategy(&self) -> Box<dyn Strategy> {
        Box::new(BestFirst::new(*self))
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
    /// Nodes popped last, where samples are distinct.
    popped: Vec<NodeId>,
}

impl BestFirst {
    /// A search that starts at the root.
    pub fn new(settings: BestFirstSettings) -> Self {
        let mut search = BestFirst {
            settings,
            frontier: BinaryHeap::new(),
            inserted: HashSet::new(),
            since_restart: 0,
            popped: Vec::new(),
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

    /// Puts what was popped last back on the frontier, where something is left to draw.
    fn put_back(&mut self, tree: &Tree) {
        for node in self.popped.drain(..).filter(|&node| tree.left(node) > 0.0) {
            let score = tree.next_score(node, self.settings.alpha);
            self.frontier.push(Candidate { score, node });
        }
    }
}

impl Strategy for BestFirst {
    fn select(&mut self, tree: &Tree, _choose: &mut Choose<'_>) -> Vec<Expand> {
        if tree.is_distinct() {
            self.put_back(tree);
        } else {
            let due = self.settings.restart_after.is_some_and(|limit| self.since_restart >= limit);
            if due || (self.frontier.is_empty() && self.settings.restart_when_empty) {
                self.restart();
            }
        }
        let wanted: Vec<Expand> = (0..self.settings.beam)
            .map_while(|_| self.frontier.pop())
            .map(|best| Expand { node: best.node, samples: self.settings.samples })
            .collect();
        if tree.is_distinct() {
            self.popped = wanted.iter().map(|expand| expand.node).collect();
        }
        wanted
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

    fn key(&self) -> Vec<u64> {
        // Sorted: the order of insertion is forgotten as soon as nodes are popped by their scores,
        // which are a function of the tree.
        let nodes = |nodes: &mut dyn Iterator<Item = NodeId>| {
            let mut nodes: Vec<u64> = nodes.map(|node| node.0.into()).collect();
            nodes.sort_unstable();
            nodes
        };
        let frontier = nodes(&mut self.frontier.iter().map(|candidate| candidate.node));
        let inserted = nodes(&mut self.inserted.iter().copied());
        let restart = self.settings.restart_after.map_or(0, |_| self.since_restart);
        let popped = nodes(&mut self.popped.iter().copied());
        let lengths = vec![restart, frontier.len() as u64, popped.len() as u64];
        [lengths, frontier, popped, inserted].concat()
    }

    fn boxed_clone(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
