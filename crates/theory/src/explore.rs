//! The exact deployed success probability J^A (eq:exact_search_recurrence): every branch of the
//! very state machine that searches real provers is followed, over every tactic the policy may
//! sample and every choice the strategy leaves to chance.
//!
//! Configurations are taken forward one expansion at a time. Two of them are one if the strategy's
//! own memory, the tree of open nodes and the questions still unanswered are equal to the last bit:
//! then they can only behave alike. (Rejected tactics need no remembering, because the tree's
//! prover rejects them again.)

use std::collections::{HashMap, VecDeque};

use catamount_search::{
    Answer, Ask, Deployment, NodeId, Overrides, Reached, Search, SettingError, StrategyKind,
};

use crate::tree::{Leads, ProofTree, TreeError};

/// Why an exact answer could not be had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExploreError {
    /// No such deployment.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A tree that cannot be.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Too much to follow.
    #[error(
        "{strategy} has more than {limit} configurations after {spent} expansions on this tree; \
         take a smaller budget or tree, or estimate by simulation"
    )]
    TooMany {
        /// The strategy.
        strategy: StrategyKind,
        /// How many are followed at most.
        limit: usize,
        /// When it became too much.
        spent: u64,
    },
}

/// Configurations followed at once at most: some hundreds of megabytes.
pub const CONFIGURATIONS: usize = 400_000;

/// How the trees' searches are deployed: as in the paper, but no limit on depth that would
/// interfere, and one rollout at a time so that Pass@N is what the paper defines.
pub fn simulation(strategy: StrategyKind, budget: u64) -> Result<Deployment, ExploreError> {
    let mut overrides = Overrides::default();
    overrides.set("max_depth", 10_000u64)?;
    overrides.set("pass_batch", 1u64)?;
    Ok(Deployment::overridden(strategy, budget, &overrides)?)
}

#[derive(Clone)]
struct Configuration {
    search: Search,
    /// The tree of open nodes: each one's parent, and the index of the tactic that led to it.
    nodes: Vec<(u32, u32)>,
    /// The state at each node.
    states: Vec<usize>,
    /// Samples asked for and not yet told, in order.
    pending: VecDeque<NodeId>,
    probability: Mass,
}

/// A probability and its derivatives by log p_1, ..., log p_L as far as they come from the tactics
/// sampled.
#[derive(Clone, Debug)]
struct Mass {
    value: f64,
    tangent: Vec<f64>,
}

impl Mass {
    fn times(&self, factor: f64) -> Mass {
        Mass {
            value: self.value * factor,
            tangent: self.tangent.iter().map(|d| d * factor).collect(),
        }
    }

    fn add(&mut self, other: &Mass) {
        self.value += other.value;
        for (d, other) in self.tangent.iter_mut().zip(&other.tangent) {
            *d += other;
        }
    }
}

/// J^A and dJ^A / d log p_t (at [n - 1][t - 1]) for n = 1, ..., N, where the strategy's own choices
/// are held fixed.
pub(crate) struct Explored {
    pub(crate) success: Vec<f64>,
    pub(crate) derivatives: Vec<Vec<f64>>,
}

type Key = (Vec<u64>, Vec<(u32, u32)>, VecDeque<NodeId>);

/// J^A(n) for n = 1, ..., N, the deployment's budget (the entry of n is at n - 1): with a smaller
/// budget a search does the same and stops sooner.
pub fn exact_success(tree: &ProofTree, deployment: &Deployment) -> Result<Vec<f64>, ExploreError> {
    explore(tree, deployment).map(|explored| explored.success)
}

pub(crate) fn explore(tree: &ProofTree, deployment: &Deployment) -> Result<Explored, ExploreError> {
    let (search, budget) = (deployment.search(), deployment.budget());
    let none = vec![0.0; tree.length()];
    let probability = Mass { value: 1.0, tangent: none.clone() };
    let mut layer = vec![Configuration {
        search,
        nodes: vec![(0, 0)],
        states: vec![0],
        pending: VecDeque::new(),
        probability,
    }];
    let mut proved = Mass { value: 0.0, tangent: none };
    let mut explored = Explored { success: Vec::new(), derivatives: Vec::new() };
    for spent in 0..budget {
        let mut next: Vec<Configuration> = Vec::new();
        let mut known: HashMap<Key, usize> = HashMap::new();
        for configuration in layer {
            for asked in ask(configuration) {
                proved.add(&closing(&asked, tree));
                // What comes after the last expansion does not matter, and is most of the work.
                if spent + 1 < budget {
                    tell(&asked, tree, &mut next, &mut known);
                }
            }
            if next.len() > CONFIGURATIONS {
                return Err(ExploreError::TooMany {
                    strategy: deployment.strategy(),
                    limit: CONFIGURATIONS,
                    spent,
                });
            }
        }
        explored.success.push(proved.value);
        explored.derivatives.push(proved.tangent.clone());
        layer = next;
    }
    Ok(explored)
}

/// The configurations in which the next sample is settled: one for every way the strategy's random
/// choices can fall. None if the search has finished.
fn ask(configuration: Configuration) -> Vec<Configuration> {
    if !configuration.pending.is_empty() {
        return vec![configuration];
    }
    let mut out = Vec::new();
    let mut scripts = vec![Vec::new()];
    while let Some(script) = scripts.pop() {
        let mut asked = configuration.clone();
        let mut made: Vec<(usize, Vec<f64>)> = Vec::new();
        let answer = asked.search.ask(&mut |weights| {
            let fresh = || weights.iter().position(|&weight| weight > 0.0).unwrap_or(0);
            let index = script.get(made.len()).copied().unwrap_or_else(fresh);
            made.push((index, weights.to_vec()));
            index
        });
        // Choices beyond the script took the first possible way; every later way is a script of its
        // own.
        for depth in script.len()..made.len() {
            let (index, weights) = &made[depth];
            for other in (index + 1..weights.len()).filter(|&other| weights[other] > 0.0) {
                scripts.push(made[..depth].iter().map(|made| made.0).chain([other]).collect());
            }
        }
        for (index, weights) in &made {
            asked.probability =
                asked.probability.times(weights[*index] / weights.iter().sum::<f64>());
        }
        if let Ask::Expand(wanted) = answer {
            asked.pending = wanted
                .iter()
                .flat_map(|expand| std::iter::repeat_n(expand.node, expand.samples))
                .collect();
            out.push(asked);
        }
    }
    out
}

/// The probability of a tactic being sampled next, by its index among those of its state.
fn sampled(asked: &Configuration, tree: &ProofTree, state: usize, index: usize, p: f64) -> Mass {
    let mut probability = asked.probability.times(p);
    if let Some((t, score)) = tree.score(state, index) {
        probability.tangent[t] += probability.value * score;
    }
    probability
}

/// The probability that the next sample completes a proof.
fn closing(asked: &Configuration, tree: &ProofTree) -> Mass {
    let state = asked.states[asked.pending[0].0 as usize];
    let mut proved = Mass { value: 0.0, tangent: vec![0.0; tree.length()] };
    for (index, (_, p, leads)) in tree.tactics(state).into_iter().enumerate() {
        if leads == Leads::Proved {
            proved.add(&sampled(asked, tree, state, index, p));
        }
    }
    proved
}

/// Tells every tactic the policy may sample next that does not complete a proof.
fn tell(
    asked: &Configuration,
    tree: &ProofTree,
    next: &mut Vec<Configuration>,
    known: &mut HashMap<Key, usize>,
) {
    let node = asked.pending[0];
    let state = asked.states[node.0 as usize];
    for (index, (name, p, leads)) in tree.tactics(state).into_iter().enumerate() {
        let answer = match leads {
            Leads::Proved => continue,
            Leads::Open(_) => Answer::Open,
            Leads::Rejected => Answer::Rejected,
        };
        let mut told = asked.clone();
        told.pending.pop_front();
        let reached = told.search.tell(node, name, p.ln(), answer);
        if let (Reached::Open(child), Leads::Open(state)) = (reached, leads)
            && child.0 as usize == told.nodes.len()
        {
            told.nodes.push((node.0, index as u32));
            told.states.push(state);
        }
        let probability = sampled(asked, tree, state, index, p);
        let key = (told.search.key(), told.nodes.clone(), told.pending.clone());
        match known.get(&key) {
            Some(&same) => next[same].probability.add(&probability),
            None => {
                told.probability = probability;
                known.insert(key, next.len());
                next.push(told);
            }
        }
    }
}
