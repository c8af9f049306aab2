//! The objectives by name, and the one entry point: log-probabilities in, log J and weights out.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::backtrack::{self, Count, Scores, Visits};
use crate::error::ObjectiveError;
use crate::geometric;
use crate::lanes::{LANES, Lanes};
use crate::number::StepOdds;
use crate::prior::Prior;
use crate::wide::Wide;
use crate::{retry, widening};

/// Which model of the deployed search a trace's weights come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Objective {
    /// Cross-entropy: one attempt at the whole trace (eq:sft_loss).
    Ce,
    /// Uniform allocation: N/L attempts at every step (eq:mf_objective_main).
    Ua,
    /// N independent rollouts of the whole trace (eq:passn_objective). N counts rollouts.
    Pass,
    /// Best-first search: retry in place, one shared budget (eq:bfs_trace_recurrence).
    Bfs,
    /// Depth-first search: the same recurrence as `Bfs`.
    Dfs,
    /// Randomised depth-first search: back to a uniform ancestor.
    Rdfs,
    /// Value-guided depth-first search: back to an ancestor by Levin score.
    Vdfs,
    /// Monte Carlo tree search: progressive widening (eq:mcts_selector).
    Mcts,
}

impl Objective {
    /// All of them, in the paper's order.
    pub const ALL: [Objective; 8] = [
        Objective::Ce,
        Objective::Ua,
        Objective::Pass,
        Objective::Bfs,
        Objective::Dfs,
        Objective::Rdfs,
        Objective::Vdfs,
        Objective::Mcts,
    ];

    /// The name used on the command line and in logs.
    pub fn name(self) -> &'static str {
        match self {
            Objective::Ce => "ce",
            Objective::Ua => "ua",
            Objective::Pass => "pass",
            Objective::Bfs => "bfs",
            Objective::Dfs => "dfs",
            Objective::Rdfs => "rdfs",
            Objective::Vdfs => "vdfs",
            Objective::Mcts => "mcts",
        }
    }

    /// All names, for messages.
    pub fn names() -> String {
        Objective::ALL.map(Objective::name).join(", ")
    }

    /// The smallest budget with which a trace of this length can succeed.
    pub fn minimum_budget(self, length: usize) -> u64 {
        match self {
            Objective::Ce => 0,
            Objective::Pass => 1,
            Objective::Mcts => widening::minimum_budget(length),
            _ => length as u64,
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(name: &str) -> Result<Self, ObjectiveError> {
        Objective::ALL
            .into_iter()
            .find(|objective| objective.name() == name)
            .ok_or_else(|| ObjectiveError::Unknown { name: name.to_string() })
    }
}

/// What the surrogate says of one trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighed {
    /// log J: the logarithm of the modelled success probability.
    pub log_success: f64,
    /// w_t = d log J / d log p_t, one for each step.
    pub weights: Vec<f64>,
    /// False if no run of the search could find the trace within the budget (J = 0). Such a trace
    /// has no weights of its own and carries those of the smallest budget that can succeed: the CE
    /// limit, all ones and log J = sum of log p.
    pub feasible: bool,
}

/// A trace-supported surrogate: an objective, the budget it is to be deployed with, and a prior on
/// what misses cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surrogate {
    objective: Objective,
    budget: u64,
    prior: Prior,
}

impl Surrogate {
    /// An objective at a budget of `budget` expansions (rollouts for `pass`; ignored by `ce`).
    pub fn new(objective: Objective, budget: u64) -> Self {
        Surrogate { objective, budget, prior: Prior::NONE }
    }

    /// The same with an off-trace prior. Refused for `pass` with a kappa, which has no meaning for
    /// rollouts.
    pub fn with_prior(self, prior: Prior) -> Result<Self, ObjectiveError> {
        if self.objective == Objective::Pass && prior.kappa() != 1.0 {
            return Err(ObjectiveError::PassKappa);
        }
        Ok(Surrogate { prior, ..self })
    }

    /// The objective.
    pub fn objective(&self) -> Objective {
        self.objective
    }

    /// The budget as given.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// The prior.
    pub fn prior(&self) -> Prior {
        self.prior
    }

    /// log J and the weights of a trace from the log-probabilities of its tactics.
    pub fn weigh(&self, log_p: &[f64]) -> Result<Weighed, ObjectiveError> {
        self.check(log_p)?;
        let ones = |feasible| Weighed {
            log_success: log_p.iter().sum(),
            weights: vec![1.0; log_p.len()],
            feasible,
        };
        let length = log_p.len();
        if self.objective == Objective::Ce {
            return Ok(ones(true));
        }
        if self.budget < self.objective.minimum_budget(length) {
            return Ok(ones(false));
        }
        let q = self.prior.absorption();
        let effective = self.prior.effective_budget(length, self.budget);
        let budget = effective.floor() as usize;
        Ok(match self.objective {
            Objective::Ce => unreachable!("answered above"),
            Objective::Ua => uniform_allocation(log_p, effective / length as f64, q),
            Objective::Pass => {
                let proof = geometric::attempts(log_p.iter().sum(), self.budget as f64, q);
                Weighed {
                    log_success: proof.log_success,
                    weights: vec![proof.elasticity; length],
                    feasible: true,
                }
            }
            Objective::Bfs | Objective::Dfs => match narrow(log_p, q) {
                Some(steps) => retry::solve(&steps, budget, q),
                None => retry::solve(&wide(log_p, q), budget, q),
            },
            Objective::Rdfs | Objective::Vdfs => {
                backtracking(log_p, &self.scores(log_p), budget, q)
            }
            Objective::Mcts if (budget as u64) < self.objective.minimum_budget(length) => {
                ones(false)
            }
            Objective::Mcts => match narrow(log_p, q) {
                Some(steps) => widening::solve(&steps, budget, q),
                None => widening::solve(&wide(log_p, q), budget, q),
            },
        })
    }
}

impl Surrogate {
    /// How `rdfs` and `vdfs` score ancestors.
    fn scores<'a>(&self, log_p: &'a [f64]) -> Scores<'a> {
        if self.objective == Objective::Vdfs { Scores::Levin(log_p) } else { Scores::Uniform }
    }

    /// The same for many traces, in their order: to the last bit what [`Self::weigh`] says of each.
    /// `bfs`, `dfs`, `rdfs` and `vdfs` take traces of one length many at a time, because a
    /// single recurrence is one long chain that the processor waits for.
    pub fn weigh_all(&self, traces: &[&[f64]]) -> Vec<Result<Weighed, ObjectiveError>> {
        let mut weighed: Vec<Option<Weighed>> = vec![None; traces.len()];
        let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (i, log_p) in traces.iter().enumerate().filter(|_| self.side_by_side().is_some()) {
            if self.check(log_p).is_ok() && self.budget >= log_p.len() as u64 && is_narrow(log_p) {
                by_length.entry(log_p.len()).or_default().push(i);
            }
        }
        let mut visits = Visits::new();
        for (length, mut members) in by_length {
            let budget = self.prior.effective_budget(length, self.budget).floor() as usize;
            for count in self.side_by_side().into_iter().flatten() {
                for group in members.chunks(LANES) {
                    // Quicker alone; and it must not wait to be counted in another way, together
                    // with those that this one leaves in doubt.
                    if let &[i] = group {
                        weighed[i] = self.weigh(traces[i]).ok();
                        continue;
                    }
                    // Lanes that no trace is left for repeat the last one.
                    let trace = |lane: usize| traces[group[lane.min(group.len() - 1)]];
                    let lanes = std::array::from_fn(trace);
                    let answers = self.weigh_lanes(lanes, *count, budget, &mut visits);
                    for (&i, answer) in group.iter().zip(answers) {
                        weighed[i] = answer;
                    }
                }
                members.retain(|&i| weighed[i].is_none());
            }
        }
        weighed
            .into_iter()
            .zip(traces)
            .map(|(weighed, log_p)| weighed.map_or_else(|| self.weigh(log_p), Ok))
            .collect()
    }

    /// The ways to count in which this objective's recurrence is run for several traces at once,
    /// the later ones for what the earlier leave in doubt; none if it is not.
    fn side_by_side(&self) -> Option<&'static [Count]> {
        match self.objective {
            Objective::Bfs | Objective::Dfs => Some(&COUNTS[..1]),
            Objective::Rdfs | Objective::Vdfs => Some(&COUNTS),
            _ => None,
        }
    }

    /// Traces of one length; nothing for those whose answer is in doubt.
    fn weigh_lanes(
        &self,
        lanes: [&[f64]; LANES],
        count: Count,
        budget: usize,
        visits: &mut Visits,
    ) -> [Option<Weighed>; LANES] {
        let q = self.prior.absorption();
        let steps = Lanes::steps(lanes, q);
        if matches!(self.objective, Objective::Bfs | Objective::Dfs) {
            let sums = retry::sums_of_lanes(&steps, budget, q);
            return std::array::from_fn(|lane| Some(sums.weighed(q, |s: Lanes| s.0[lane])));
        }
        let scores = lanes.map(|log_p| self.scores(log_p));
        backtrack::solve_lanes(&steps, &scores, count, budget, q, visits)
            .map(|estimate| (!estimate.doubtful).then_some(estimate.weighed))
    }
}

impl Surrogate {
    /// Refuses what has no answer, or none within the time and the precision that are promised.
    pub(crate) fn check(&self, log_p: &[f64]) -> Result<(), ObjectiveError> {
        check_trace(log_p)?;
        let (objective, length) = (self.objective, log_p.len());
        if matches!(objective, Objective::Ce | Objective::Ua | Objective::Pass)
            || self.budget < objective.minimum_budget(length)
        {
            return Ok(());
        }
        let budget = self.prior.effective_budget(length, self.budget).floor();
        if budget > MOST_EXPANSIONS as f64 {
            return Err(ObjectiveError::Budget { objective, budget, most: MOST_EXPANSIONS });
        }
        // What a step of the recurrence costs beside the cheapest, where `f64` is enough and where
        // it is not. Whether it is enough for backtracking is known only after having tried.
        let (readings, cost) = match (objective, is_narrow(log_p)) {
            (Objective::Mcts, true) => (budget, 1.0),
            (Objective::Mcts, false) => (budget, 16.0),
            (Objective::Bfs | Objective::Dfs, true) => (1.0, 16.0),
            (Objective::Bfs | Objective::Dfs, false) => (1.0, 128.0),
            _ => (1.0, 512.0),
        };
        let work = length as f64 * budget * readings * cost;
        if work > MOST_WORK {
            return Err(ObjectiveError::Work { objective, length, budget, work, most: MOST_WORK });
        }
        Ok(())
    }
}

/// The largest budget of a recurrence. Each of its steps may round twice, and so many of them move
/// a weight by less than the 1e-9 that are promised.
const MOST_EXPANSIONS: u64 = 1 << 22;
/// The most operations on one trace: 15 seconds, and far beyond any trace of a library.
const MOST_WORK: f64 = (1u64 << 36) as f64;
/// The least likely trace. The exponents of [`Wide`] go much further, but a sum below this is no
/// log-probability of a tactic: it comes of a mask.
const LEAST: f64 = -1e15;

/// Refuses what is no trace, naming the step.
pub(crate) fn check_trace(log_p: &[f64]) -> Result<(), ObjectiveError> {
    if log_p.is_empty() {
        return Err(ObjectiveError::EmptyTrace);
    }
    match log_p.iter().position(|value| !(value.is_finite() && *value <= 0.0)) {
        Some(index) => Err(ObjectiveError::LogProbability { step: index + 1, value: log_p[index] }),
        None => match log_p.iter().sum::<f64>() {
            sum if sum < LEAST => Err(ObjectiveError::Vanishing { sum }),
            _ => Ok(()),
        },
    }
}

pub(crate) fn uniform_allocation(log_p: &[f64], quota: f64, q: f64) -> Weighed {
    let mut weighed =
        Weighed { log_success: 0.0, weights: Vec::with_capacity(log_p.len()), feasible: true };
    for &log_p in log_p {
        let step = geometric::attempts(log_p, quota, q);
        weighed.log_success += step.log_success;
        weighed.weights.push(step.elasticity);
    }
    weighed
}

/// What is counted first, and what if that leaves a doubt.
const COUNTS: [Count; 2] = [Count::Successes, Count::Failures];

fn backtracking(log_p: &[f64], scores: &Scores<'_>, budget: usize, q: f64) -> Weighed {
    if let Some(steps) = narrow(log_p, q) {
        for count in COUNTS {
            let estimate = backtrack::solve(&steps, scores, count, budget, q);
            if !estimate.doubtful {
                return estimate.weighed;
            }
        }
    }
    backtrack::solve(&wide(log_p, q), scores, Count::Successes, budget, q).weighed
}

/// The smallest probability of a whole trace for which every quantity of a recurrence stays well
/// within the range of `f64`.
const NARROW: f64 = -575.0;

fn is_narrow(log_p: &[f64]) -> bool {
    log_p.iter().sum::<f64>() > NARROW
}

pub(crate) fn narrow(log_p: &[f64], q: f64) -> Option<Vec<StepOdds<f64>>> {
    is_narrow(log_p).then(|| log_p.iter().map(|&log_p| StepOdds::<f64>::new(log_p, q)).collect())
}

pub(crate) fn wide(log_p: &[f64], q: f64) -> Vec<StepOdds<Wide>> {
    log_p.iter().map(|&log_p| StepOdds::<Wide>::new(log_p, q)).collect()
}
