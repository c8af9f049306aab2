//! One proof search: a strategy, its tree and its budget, driven by questions and answers.

use crate::strategy::{Choose, Expand, Strategy};
use crate::tree::{NodeId, Reached, Tree};

/// What a search wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Sample tactics at these nodes and tell what came of each, in this order.
    Expand(Vec<Expand>),
    /// Nothing more.
    Finished(Finish),
}

/// How a search ended by itself. (Clocks and faults are the driver's business.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// A proof, as its tactics.
    Proved(Vec<String>),
    /// The strategy has nothing left to expand.
    Exhausted,
    /// The budget is spent.
    Budget,
}

/// The prover's answer to one sampled tactic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing is left to prove.
    Proved,
    /// Valid, and leaves something to prove.
    Open,
    /// Invalid.
    Rejected,
}

/// A search in progress. Pure: the same choices and the same answers give the same questions.
#[derive(Clone)]
pub struct Search {
    tree: Tree,
    strategy: Box<dyn Strategy>,
    budget: u64,
    spent: u64,
    max_depth: u32,
    depths: Vec<u64>,
    proof: Option<Vec<String>>,
}

impl Search {
    /// A search that may sample `budget` tactics and build proofs of at most `max_depth` of them.
    pub fn new(strategy: Box<dyn Strategy>, budget: u64, max_depth: u32) -> Self {
        Search {
            tree: Tree::default(),
            strategy,
            budget,
            spent: 0,
            max_depth,
            depths: Vec::new(),
            proof: None,
        }
    }

    /// The same search with distinct samples: at a node no tactic is sampled twice. Whoever drives
    /// it says after each answer what is left ([`Search::remains`]), and the strategies come back
    /// to a node for what is left there rather than for what it gave before.
    pub fn distinct(mut self) -> Self {
        self.tree.make_distinct();
        self
    }

    /// The next question. `choose` decides whatever the strategy leaves to chance.
    pub fn ask(&mut self, choose: &mut Choose<'_>) -> Ask {
        if let Some(proof) = &self.proof {
            return Ask::Finished(Finish::Proved(proof.clone()));
        }
        let mut left = self.budget - self.spent;
        if left == 0 || self.max_depth == 0 {
            return Ask::Finished(Finish::Budget);
        }
        let mut wanted = self.strategy.select(&self.tree, choose);
        wanted.retain_mut(|expand| {
            expand.samples = expand.samples.min(left as usize);
            left -= expand.samples as u64;
            expand.samples > 0
        });
        if wanted.is_empty() { Ask::Finished(Finish::Exhausted) } else { Ask::Expand(wanted) }
    }

    /// What came of a tactic if it was tried at this node before: then there is no need to ask the
    /// prover.
    pub fn tried(&self, node: NodeId, tactic: &str) -> Option<Reached> {
        self.tree.tried(node, tactic)
    }

    /// Tells what came of one sampled tactic. Each costs one unit of budget, duplicates too.
    pub fn tell(&mut self, node: NodeId, tactic: &str, log_p: f64, answer: Answer) -> Reached {
        self.spent += 1;
        let depth = self.tree.depth(node) as usize;
        if self.depths.len() <= depth {
            self.depths.resize(depth + 1, 0);
        }
        self.depths[depth] += 1;
        self.tree.note(node, log_p);
        let reached = self.tree.tried(node, tactic).unwrap_or_else(|| {
            let reached = match answer {
                Answer::Open => Ok(()),
                Answer::Proved => Err(Reached::Proved),
                Answer::Rejected => Err(Reached::Rejected),
            };
            self.tree.record(node, tactic, log_p, reached, self.max_depth)
        });
        if reached == Reached::Proved {
            let mut proof = self.tree.path(node);
            proof.push(tactic.to_string());
            self.proof = Some(proof);
        } else {
            self.strategy.update(&self.tree, node, reached);
        }
        reached
    }

    /// A key of what the strategy remembers: see [`Strategy::key`].
    pub fn key(&self) -> Vec<u64> {
        self.strategy.key()
    }

    /// Says, of distinct samples and before telling what came of them, what share of a node's
    /// distribution they left undrawn.
    pub fn remains(&mut self, node: NodeId, left: f64) {
        self.tree.remains(node, left);
    }

    /// Says what share of its parent's distribution the tactic to an open node has; it is taken
    /// for its probability at temperature 1 otherwise.
    pub fn weigh(&mut self, node: NodeId, share: f64) {
        self.tree.weigh(node, share);
    }

    /// Tells, of one of the distinct samples asked for, that there is nothing left to draw at the
    /// node. It costs no budget: the strategy does not ask there again.
    pub fn tell_nothing_left(&mut self, node: NodeId) {
        self.tree.drawn_out(node);
        self.strategy.nothing_left(node);
    }

    /// The tactics from the root to a node.
    pub fn path(&self, node: NodeId) -> Vec<String> {
        self.tree.path(node)
    }

    /// Expansions so far.
    pub fn expansions(&self) -> u64 {
        self.spent
    }

    /// Expansions at each depth, the root first.
    pub fn depths(&self) -> &[u64] {
        &self.depths
    }

    /// The strategy's score of a node, where it has one.
    pub fn score(&self, node: NodeId) -> Option<f64> {
        self.strategy.score(&self.tree, node)
    }
}
