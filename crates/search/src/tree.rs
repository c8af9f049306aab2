//! The search tree: what has been tried where, and what came of it. It doubles as the memo of
//! (state, tactic), so that a tactic sampled again costs budget but no work. Where samples are
//! distinct, it also knows what is left to draw at and below every node.

use std::collections::HashMap;

/// A node of the tree: a state together with the tactics that led to it. The root is `NodeId(0)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// x_0.
    pub const ROOT: NodeId = NodeId(0);

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where one sampled tactic led, as a strategy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// A state that can be searched from; the node may be an old one if the same tactic was sampled
    /// here before.
    Open(NodeId),
    /// A valid state at the maximum depth, from which no expansion is allowed.
    TooDeep,
    /// Nowhere: the tactic is invalid.
    Rejected,
    /// QED.
    Proved,
}

#[derive(Clone, Debug)]
struct Node {
    parent: NodeId,
    /// The tactic that led here from the parent.
    tactic: String,
    depth: u32,
    /// Sum of log-probabilities from the root.
    log_p: f64,
    tried: HashMap<String, Reached>,
    remainder: Remainder,
}

/// What distinct samples have left of a node.
#[derive(Clone, Debug)]
struct Remainder {
    /// The share of the node's own distribution that has not been drawn.
    left: f64,
    /// That, and what is left below the open children, each by its share.
    below: f64,
    /// The share of the tactic that led here in the parent's distribution.
    share: f64,
    children: Vec<NodeId>,
    /// The last answer's log-probabilities, summed, and how many.
    last: (f64, u32),
}

impl Remainder {
    fn new(share: f64) -> Self {
        Remainder { left: 1.0, below: 1.0, share, children: Vec::new(), last: (0.0, 0) }
    }
}

/// The tree of one search.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    distinct: bool,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node {
            parent: NodeId::ROOT,
            tactic: String::new(),
            depth: 0,
            log_p: 0.0,
            tried: HashMap::new(),
            remainder: Remainder::new(1.0),
        };
        Tree { nodes: vec![root], distinct: false }
    }
}

impl Tree {
    /// Whether no tactic is sampled twice at a node.
    pub fn is_distinct(&self) -> bool {
        self.distinct
    }

    /// The share of a node's distribution that has not been drawn; 1 unless samples are distinct.
    pub fn left(&self, node: NodeId) -> f64 {
        self.nodes[node.index()].remainder.left
    }

    /// The probability that a rollout from a node, one tactic after the other, is one that has not
    /// been seen to its end; 1 unless samples are distinct. Zero says that there is nothing to do
    /// at or below the node.
    pub fn below(&self, node: NodeId) -> f64 {
        self.nodes[node.index()].remainder.below
    }

    /// A node's open children, and the share of each in the node's distribution.
    pub fn children(&self, node: NodeId) -> impl DoubleEndedIterator<Item = (NodeId, f64)> + '_ {
        let children = self.nodes[node.index()].remainder.children.iter();
        children.map(|&child| (child, self.nodes[child.index()].remainder.share))
    }

    /// The score that the next tactic at a node would give its child if it were as probable as
    /// those of the last answer there were on (geometric) average.
    pub fn next_score(&self, node: NodeId, alpha: f64) -> f64 {
        let node = &self.nodes[node.index()];
        let (sum, count) = node.remainder.last;
        let next = if count > 0 { sum / f64::from(count) } else { 0.0 };
        (node.log_p + next) / f64::from(node.depth + 1).powf(alpha)
    }

    pub(crate) fn make_distinct(&mut self) {
        self.distinct = true;
    }

    pub(crate) fn remains(&mut self, node: NodeId, left: f64) {
        let remainder = &mut self.nodes[node.index()].remainder;
        remainder.left = left;
        remainder.last = (0.0, 0);
        self.sum_up(node);
    }

    pub(crate) fn drawn_out(&mut self, node: NodeId) {
        self.nodes[node.index()].remainder.left = 0.0;
        self.sum_up(node);
    }

    pub(crate) fn weigh(&mut self, node: NodeId, share: f64) {
        self.nodes[node.index()].remainder.share = share;
        self.sum_up(self.parent(node));
    }

    /// Notes the log-probability of one sample of the answer that [`Tree::remains`] began.
    pub(crate) fn note(&mut self, node: NodeId, log_p: f64) {
        let (sum, count) = &mut self.nodes[node.index()].remainder.last;
        *sum += log_p;
        *count += 1;
    }

    /// Brings what is left below a node up to date, and below everything above it. Summed afresh:
    /// differences would not find back to zero.
    fn sum_up(&mut self, mut node: NodeId) {
        loop {
            let below = self.children(node).map(|(child, share)| share * self.below(child));
            self.nodes[node.index()].remainder.below = self.left(node) + below.sum::<f64>();
            if node == NodeId::ROOT {
                return;
            }
            node = self.parent(node);
        }
    }

    /// Steps from the root.
    pub fn depth(&self, node: NodeId) -> u32 {
        self.nodes[node.index()].depth
    }

    /// The parent; the root is its own.
    pub fn parent(&self, node: NodeId) -> NodeId {
        self.nodes[node.index()].parent
    }

    /// Sum over the path of log p, divided by depth^alpha: the logarithm of the Levin score
    /// (eq:bfs_score) for alpha = 1. The root scores 0.
    pub fn score(&self, node: NodeId, alpha: f64) -> f64 {
        let node = &self.nodes[node.index()];
        if node.depth == 0 { 0.0 } else { node.log_p / f64::from(node.depth).powf(alpha) }
    }

    /// The Levin score itself: the geometric mean of the path's probabilities.
    pub fn levin(&self, node: NodeId) -> f64 {
        self.score(node, 1.0).exp()
    }

    /// The tactics from the root to a node.
    pub fn path(&self, mut node: NodeId) -> Vec<String> {
        let mut tactics = Vec::new();
        while node != NodeId::ROOT {
            tactics.push(self.nodes[node.index()].tactic.clone());
            node = self.parent(node);
        }
        tactics.reverse();
        tactics
    }

    /// What came of a tactic tried at a node before.
    pub fn tried(&self, node: NodeId, tactic: &str) -> Option<Reached> {
        self.nodes[node.index()].tried.get(tactic).copied()
    }

    /// Records a tactic tried for the first time. `open` says that it is valid and leaves something
    /// to prove.
    pub(crate) fn record(
        &mut self,
        node: NodeId,
        tactic: &str,
        log_p: f64,
        reached: Result<(), Reached>,
        max_depth: u32,
    ) -> Reached {
        let parent = &self.nodes[node.index()];
        let reached = match reached {
            Err(reached) => reached,
            Ok(()) if parent.depth + 1 >= max_depth => Reached::TooDeep,
            Ok(()) => {
                let child = Node {
                    parent: node,
                    tactic: tactic.to_string(),
                    depth: parent.depth + 1,
                    log_p: parent.log_p + log_p,
                    tried: HashMap::new(),
                    remainder: Remainder::new(log_p.exp()),
                };
                let id =
                    NodeId(u32::try_from(self.nodes.len()).expect("fewer than 2^32 expansions"));
                self.nodes.push(child);
                self.nodes[node.index()].remainder.children.push(id);
                if self.distinct {
                    self.sum_up(node);
                }
                Reached::Open(id)
            }
        };
        self.nodes[node.index()].tried.insert(tactic.to_string(), reached);
        reached
    }
}
