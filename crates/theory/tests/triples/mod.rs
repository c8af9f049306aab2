//! What two deployed searches do on a chain, as triples: the surrogates they would have if nothing
//! were simplified.

use catamount_objective::{Dual, Status, Strategy};

fn status(solved: bool, budget: u64) -> Status {
    if solved {
        Status::Solved
    } else if budget == 0 {
        Status::Dead
    } else {
        Status::Live
    }
}

/// Rollouts, one after another, where every sample costs one unit rather than every rollout.
pub struct ChargedRollouts;

impl Strategy for ChargedRollouts {
    type Configuration = (u64, usize);

    fn start(&self, _length: usize, budget: u64) -> Self::Configuration {
        (budget, 0)
    }

    fn status(&self, &(budget, t): &Self::Configuration, length: usize) -> Status {
        status(t == length, budget)
    }

    fn selection(&self, &(_, t): &Self::Configuration, _p: &[Dual]) -> Vec<(usize, Dual)> {
        vec![(t, Dual::constant(1.0))]
    }

    fn advance(&self, &(budget, t): &Self::Configuration, _node: usize) -> Self::Configuration {
        (budget - 1, t + 1)
    }

    fn miss(&self, &(budget, _): &Self::Configuration, _node: usize) -> Self::Configuration {
        (budget - 1, 0)
    }
}

/// Progressive widening in which evaluating a state counts as a visit to it, every time it is
/// reached.
pub struct EvaluatedWidening;

impl Strategy for EvaluatedWidening {
    /// (visits, samples) of the states reached, the deepest last; the trace's length; remaining
    /// budget.
    type Configuration = (Vec<(u64, u64)>, usize, u64);

    fn start(&self, length: usize, budget: u64) -> Self::Configuration {
        (vec![(0, 0)], length, budget)
    }

    fn status(&self, (nodes, _, budget): &Self::Configuration, length: usize) -> Status {
        status(nodes.len() > length, *budget)
    }

    fn selection(&self, (nodes, ..): &Self::Configuration, _p: &[Dual]) -> Vec<(usize, Dual)> {
        let widens = |&(visits, samples): &(u64, u64)| samples * samples < visits + 1;
        let node = nodes.iter().position(widens).unwrap_or(nodes.len() - 1);
        vec![(node, Dual::constant(1.0))]
    }

    fn advance(&self, configuration: &Self::Configuration, node: usize) -> Self::Configuration {
        let mut next = self.miss(configuration, node);
        if node + 1 == next.0.len() {
            next.0.push((0, 0));
        }
        next.0[node + 1].0 += 1;
        next
    }

    fn miss(
        &self,
        (nodes, length, budget): &Self::Configuration,
        node: usize,
    ) -> Self::Configuration {
        let mut nodes = nodes.clone();
        nodes[node].1 += 1;
        for visited in &mut nodes[..=node] {
            visited.0 += 1;
        }
        (nodes, *length, budget - 1)
    }
}
