//! Pass@N: independent rollouts from the root, several at a time. A miss abandons the rollout.

use std::collections::VecDeque;

use crate::strategy::{Choose, Expand, Strategy};
use crate::tree::{NodeId, Reached, Tree};

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Pass {
    /// Where each rollout stands.
    rollouts: Vec<NodeId>,
    /// The rollouts whose samples are awaited, in the order of asking.
    awaited: VecDeque<usize>,
}

impl Pass {
    /// Runs `parallel` rollouts in lockstep: the generation batch of the paper's table of search
    /// parameters.
    pub fn new(parallel: usize) -> Self {
        Pass { rollouts: vec![NodeId::ROOT; parallel.max(1)], awaited: VecDeque::new() }
    }
}

impl Strategy for Pass {
    fn select(&mut self, _tree: &Tree, _choose: &mut Choose<'_>) -> Vec<Expand> {
        // Rollouts that stand together are one question, so that the policy reads their state once.
        let mut order: Vec<usize> = (0..self.rollouts.len()).collect();
        order.sort_by_key(|&rollout| self.rollouts[rollout]);
        let mut wanted: Vec<Expand> = Vec::new();
        for &rollout in &order {
            let node = self.rollouts[rollout];
            match wanted.last_mut() {
                Some(last) if last.node == node => last.samples += 1,
                _ => wanted.push(Expand { node, samples: 1 }),
            }
        }
        self.awaited = order.into();
        wanted
    }

    fn update(&mut self, _tree: &Tree, _node: NodeId, reached: Reached) {
        let rollout = self.awaited.pop_front().expect("an answer for every question");
        self.rollouts[rollout] = match reached {
            Reached::Open(child) => child,
            _ => NodeId::ROOT,
        };
    }

    fn score(&self, _tree: &Tree, _node: NodeId) -> Option<f64> {
        None
    }

    fn boxed_clone(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
