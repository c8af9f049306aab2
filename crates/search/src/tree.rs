//! The search tree: what has been tried where, and what came of it. It doubles as the memo of
//! (state, tactic), so that a tactic sampled again costs budget but no work.

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
}

/// The tree of one search.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node {
            parent: NodeId::ROOT,
            tactic: String::new(),
            depth: 0,
            log_p: 0.0,
            tried: HashMap::new(),
        };
        Tree { nodes: vec![root] }
    }
}

impl Tree {
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
                };
                let id =
                    NodeId(u32::try_from(self.nodes.len()).expect("fewer than 2^32 expansions"));
                self.nodes.push(child);
                Reached::Open(id)
            }
        };
        self.nodes[node.index()].tried.insert(tactic.to_string(), reached);
        reached
    }
}
