//! Pass@N: independent rollouts from the root, several at a time. A miss abandons the rollout.
//!
//! With distinct samples the rollouts are distinct: each goes down the tree as [`descend`] says,
//! drawn without replacement from the rollouts that have not been seen to their end. (Those in
//! lockstep choose their way before they see what the others found.)

use std::collections::VecDeque;

use catamount_objective::Objective;

use crate::descent::descend;
use crate::kind::{Family, Method};
use crate::parameter::Parameter;
use crate::strategy::{Choose, Expand, Strategy};
use crate::tree::{NodeId, Reached, Tree};

/// Parameters; the defaults are the paper's (table search_params).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassSettings {
    /// Rollouts in lockstep.
    pub batch: usize,
}

impl Default for PassSettings {
    fn default() -> Self {
        PassSettings { batch: 16 }
    }
}

impl Method for PassSettings {
    const NAME: &'static str = "pass";
    const LABEL: &'static str = "Pass@N";
    const OBJECTIVE: Objective = Objective::Pass;
    const FAMILY: Family = Family::Rollouts;
    const PARAMETERS: &'static [Parameter<Self>] = &[Parameter::whole(
        "batch",
        1..=65_536,
        "rollouts in flight",
        |s| s.batch as u64,
        |s, v| s.batch = v as usize,
    )];

    fn strategy(&self) -> Box<dyn Strategy> {
        Box::new(Pass::new(self.batch))
    }
}

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
    fn select(&mut self, tree: &Tree, choose: &mut Choose<'_>) -> Vec<Expand> {
        if tree.is_distinct() {
            for rollout in &mut self.rollouts {
                let below = descend(tree, *rollout, choose);
                match below.or_else(|| descend(tree, NodeId::ROOT, choose)) {
                    Some(way) => *rollout = way.last().copied().unwrap_or(*rollout),
                    None => return Vec::new(),
                }
            }
        }
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

    fn nothing_left(&mut self, _node: NodeId) {
        let rollout = self.awaited.pop_front().expect("an answer for every question");
        self.rollouts[rollout] = NodeId::ROOT;
    }

    fn score(&self, _tree: &Tree, _node: NodeId) -> Option<f64> {
        None
    }

    fn key(&self) -> Vec<u64> {
        let rollouts = self.rollouts.iter().map(|node| node.0.into());
        rollouts.chain(self.awaited.iter().map(|&rollout| rollout as u64)).collect()
    }

    fn boxed_clone(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}
