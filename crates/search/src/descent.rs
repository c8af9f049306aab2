//! The way down the tree to where the next distinct sample is drawn.

use crate::strategy::Choose;
use crate::tree::{NodeId, Tree};

/// The nodes from below `node` to where a tactic is to be drawn; empty if that is `node` itself,
/// none if nothing is left at or below it. At every node the way ends with the probability of what
/// has not been drawn there, and goes on to an open child with that of its tactic times what is
/// left below it: as if tactics were sampled one after the other, but never any that cannot lead to
/// something new. A tactic that is passed through this way is not sampled again, and costs nothing.
pub(crate) fn descend(
    tree: &Tree,
    mut node: NodeId,
    choose: &mut Choose<'_>,
) -> Option<Vec<NodeId>> {
    if tree.below(node) == 0.0 {
        return None;
    }
    let mut way = Vec::new();
    loop {
        let (mut places, mut weights) = (vec![None], vec![tree.left(node)]);
        for (child, share) in tree.children(node).filter(|(child, _)| tree.below(*child) > 0.0) {
            places.push(Some(child));
            weights.push(share * tree.below(child));
        }
        // No number is drawn where there is no choice.
        let place = if places.len() == 1 { None } else { places[choose(&weights)] };
        let Some(child) = place else { return Some(way) };
        way.push(child);
        node = child;
    }
}
