//! What a strategy is at deployment: the pair (S, U) of selection and update, over configurations
//! (the paper's section 2.2).

use crate::tree::{NodeId, Reached, Tree};

/// Decides a random choice: given unnormalised weights, an index. Randomness comes from outside, so
/// that a driver can draw from a theorem's own stream and an exact calculation can follow every
/// branch.
pub type Choose<'a> = dyn FnMut(&[f64]) -> usize + 'a;

/// Some samples at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expand {
    /// Where.
    pub node: NodeId,
    /// How many.
    pub samples: usize,
}

/// A search strategy. Its configuration is the tree together with whatever it keeps in itself.
pub trait Strategy: Send {
    /// S(x | c): the nodes to expand next. Empty if there are none left.
    fn select(&mut self, tree: &Tree, choose: &mut Choose<'_>) -> Vec<Expand>;
    /// U(c, x, z): one sample at `node` led to `reached` (never [`Reached::Proved`]: then the
    /// search is over). Called once for each sample asked for, in the order of asking.
    fn update(&mut self, tree: &Tree, node: NodeId, reached: Reached);
    /// One of the samples asked for at `node` could not be drawn, because nothing is left there;
    /// comes in the place of an update, after those of the samples that could. Only in a search of
    /// distinct samples.
    fn nothing_left(&mut self, node: NodeId) {
        let _ = node;
    }
    /// The score by which nodes are preferred, for logs and viewers.
    fn score(&self, tree: &Tree, node: NodeId) -> Option<f64>;
    /// A key of its own part of the configuration: two copies of one strategy with equal keys, over
    /// equal trees, can only behave alike. Numbers that are not whole go in by their bits.
    fn key(&self) -> Vec<u64>;
    /// A copy, configuration included.
    fn boxed_clone(&self) -> Box<dyn Strategy>;
}

impl Clone for Box<dyn Strategy> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}
