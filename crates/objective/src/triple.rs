//! The eight built-in objectives as triples: the paper's definitions, word for word, against which
//! the fast versions are tested.

use crate::dual::Dual;
use crate::error::ObjectiveError;
use crate::objective::{Objective, Surrogate, Weighed};
use crate::strategy::{Status, Strategy, solve};

/// Solves a surrogate by the generic recurrence over its triple. `ua` is a product of one-step
/// problems and is refused (`None`) where its quota N_eff / L is no whole number, because no search
/// has a fractional attempt.
pub fn by_recurrence(
    surrogate: &Surrogate,
    log_p: &[f64],
) -> Result<Option<Weighed>, ObjectiveError> {
    let (length, q) = (log_p.len(), surrogate.prior().absorption());
    let effective = surrogate.prior().effective_budget(length, surrogate.budget());
    let budget =
        if surrogate.budget() < length as u64 { surrogate.budget() } else { effective as u64 };
    Ok(Some(match surrogate.objective() {
        Objective::Ce => solve(&Rollouts, log_p, 1, 0.0)?,
        Objective::Pass => solve(&Rollouts, log_p, surrogate.budget(), q)?,
        Objective::Bfs | Objective::Dfs => solve(&Retry, log_p, budget, q)?,
        Objective::Rdfs => solve(&Backtrack { levin: false }, log_p, budget, q)?,
        Objective::Vdfs => solve(&Backtrack { levin: true }, log_p, budget, q)?,
        Objective::Mcts => solve(&Widening, log_p, budget, q)?,
        Objective::Ua => {
            let quota = effective / length as f64;
            if quota.fract() != 0.0 {
                return Ok(None);
            }
            let mut all = Weighed { log_success: 0.0, weights: Vec::new(), feasible: quota >= 1.0 };
            for &log_p in log_p {
                let step = solve(&Retry, &[log_p], quota as u64, q)?;
                all.log_success += step.log_success;
                all.weights.extend(step.weights);
            }
            all
        }
    }))
}

/// Pass@N: (r, t), the rollouts left and the next step (eq:passn_recurrence). With one rollout,
/// cross-entropy.
struct Rollouts;

impl Strategy for Rollouts {
    type Configuration = (u64, usize);

    fn start(&self, _length: usize, budget: u64) -> Self::Configuration {
        (budget, 0)
    }

    fn status(&self, &(rollouts, t): &Self::Configuration, length: usize) -> Status {
        status(t == length, rollouts)
    }

    fn selection(&self, &(_, t): &Self::Configuration, _p: &[Dual]) -> Vec<(usize, Dual)> {
        vec![(t, Dual::constant(1.0))]
    }

    fn advance(&self, &(rollouts, t): &Self::Configuration, _node: usize) -> Self::Configuration {
        (rollouts, t + 1)
    }

    fn miss(&self, &(rollouts, _): &Self::Configuration, _node: usize) -> Self::Configuration {
        (rollouts - 1, 0)
    }
}

/// Best-first and depth-first search: (b, t), the retry surrogate (eq:bfs_trace_recurrence).
struct Retry;

impl Strategy for Retry {
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

    fn miss(&self, &(budget, t): &Self::Configuration, _node: usize) -> Self::Configuration {
        (budget - 1, t)
    }
}

/// RDFS and VDFS: the frontier is the whole active path, and after a miss the selector draws from
/// it.
struct Backtrack {
    /// By Levin score rather than uniformly.
    levin: bool,
}

impl Strategy for Backtrack {
    /// Deepest active state, whether the last expansion missed, remaining budget.
    type Configuration = (usize, bool, u64);

    fn start(&self, _length: usize, budget: u64) -> Self::Configuration {
        (0, false, budget)
    }

    fn status(&self, &(t, _, budget): &Self::Configuration, length: usize) -> Status {
        status(t == length, budget)
    }

    fn selection(&self, &(t, missed, _): &Self::Configuration, p: &[Dual]) -> Vec<(usize, Dual)> {
        if !missed {
            return vec![(t, Dual::constant(1.0))];
        }
        let mut product = Dual::constant(1.0);
        let mut scores = vec![Dual::constant(1.0)];
        for (k, p) in p.iter().enumerate().take(t) {
            product = &product * p;
            scores.push(if self.levin {
                product.powf(1.0 / (k + 1) as f64)
            } else {
                Dual::constant(1.0)
            });
        }
        let total = scores.iter().fold(Dual::constant(0.0), |sum, score| &sum + score);
        scores.iter().enumerate().map(|(k, score)| (k, score / &total)).collect()
    }

    fn advance(&self, &(_, _, budget): &Self::Configuration, node: usize) -> Self::Configuration {
        (node + 1, false, budget - 1)
    }

    fn miss(&self, &(_, _, budget): &Self::Configuration, node: usize) -> Self::Configuration {
        (node, true, budget - 1)
    }
}

/// MCTS: visit counts and samples at every state of the trace. Backed-up values are left out: on a
/// trace nothing reads them.
struct Widening;

impl Strategy for Widening {
    /// (n_k, m_k) of the states reached so far, the deepest last; trace length; remaining budget.
    type Configuration = (Vec<(u64, u64)>, usize, u64);

    fn start(&self, length: usize, budget: u64) -> Self::Configuration {
        (vec![(0, 0)], length, budget)
    }

    fn status(&self, (nodes, _, budget): &Self::Configuration, length: usize) -> Status {
        status(nodes.len() > length, *budget)
    }

    fn selection(&self, (nodes, ..): &Self::Configuration, _p: &[Dual]) -> Vec<(usize, Dual)> {
        let deepest = nodes.len() - 1;
        // m < ceil(sqrt(n + 1)) is m^2 < n + 1 in whole numbers.
        let widens = |&(visits, samples): &(u64, u64)| samples * samples < visits + 1;
        let node = nodes.iter().position(widens).unwrap_or(deepest);
        vec![(node, Dual::constant(1.0))]
    }

    fn advance(&self, configuration: &Self::Configuration, node: usize) -> Self::Configuration {
        let mut next = self.miss(configuration, node);
        if node + 1 == next.0.len() {
            next.0.push((0, 0));
        }
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

fn status(solved: bool, budget: u64) -> Status {
    if solved {
        Status::Solved
    } else if budget == 0 {
        Status::Dead
    } else {
        Status::Live
    }
}
