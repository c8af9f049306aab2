//! Monte Carlo estimates of J^A and of its derivatives, for trees and budgets that cannot be
//! followed exactly.

use catamount_search::{Answer, Ask, Deployment, Finish, Reached, Stream};

use crate::environment::draw;
use crate::tree::{Leads, ProofTree};

/// A mean with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The estimate.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

/// What was seen over many runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// J^A, without bias.
    pub success: Measured,
    /// dJ^A / d log p_t, without bias: the mean over runs of success times the score of everything
    /// sampled. None for a strategy such as `vdfs`, whose own choices move with p in a way the runs
    /// do not show.
    pub derivatives: Option<Vec<Measured>>,
    /// w*_t: the ratio of the two, with a bias of the order of one over the number of runs.
    pub weights: Option<Vec<Measured>>,
}

/// Runs a strategy on a tree `runs` times.
///
/// `bfs` and `mcts` compare scores that depend on p, so J^A jumps where scores tie; between ties
/// their choices do not change with p and the estimate is that of the derivative there.
pub fn estimate(tree: &ProofTree, deployment: &Deployment, runs: u64, seed: u64) -> Estimate {
    let length = tree.length();
    let mut proved = 0.0;
    // Sums over successful runs of the scores and of their squares: unsuccessful runs contribute
    // nothing.
    let (mut sums, mut squares) = (vec![0.0; length], vec![0.0; length]);
    for run in 0..runs {
        let mut scores = vec![0.0; length];
        if attempt(tree, deployment, Stream::new(seed).child(run), &mut scores) {
            proved += 1.0;
            for (t, score) in scores.iter().enumerate() {
                sums[t] += score;
                squares[t] += score * score;
            }
        }
    }
    let n = runs.max(1) as f64;
    let success = proved / n;
    let error = |mean: f64, square: f64| ((square / n - mean * mean).max(0.0) / n).sqrt();
    let derivatives: Vec<Measured> = sums
        .iter()
        .zip(&squares)
        .map(|(sum, &square)| Measured { value: sum / n, error: error(sum / n, square) })
        .collect();
    let weights = sums.iter().zip(&squares).map(|(&sum, &square)| {
        let weight = sum / proved;
        // The delta method: residuals score - weight on successful runs, nothing on the others.
        let residual = square - 2.0 * weight * sum + weight * weight * proved;
        Measured { value: weight, error: residual.max(0.0).sqrt() / proved }
    });
    let known = !deployment.strategy().choices_move();
    Estimate {
        success: Measured { value: success, error: error(success, proved) },
        weights: known.then(|| weights.collect()),
        derivatives: known.then_some(derivatives),
    }
}

/// One run; adds up the scores d log pi / d log p_t of everything sampled.
fn attempt(tree: &ProofTree, deployment: &Deployment, stream: Stream, scores: &mut [f64]) -> bool {
    let mut search = deployment.search();
    let mut states = vec![0];
    let mut drawn = 0;
    let mut uniform = move || {
        drawn += 1;
        stream.uniform(drawn)
    };
    loop {
        let wanted = match search.ask(&mut |weights| draw(weights, uniform())) {
            Ask::Expand(wanted) => wanted,
            Ask::Finished(finish) => return matches!(finish, Finish::Proved(_)),
        };
        for expand in wanted {
            for _ in 0..expand.samples {
                let state = states[expand.node.0 as usize];
                let tactics = tree.tactics(state);
                let weights: Vec<f64> = tactics.iter().map(|y| y.1).collect();
                let index = draw(&weights, uniform());
                if let Some((t, score)) = tree.score(state, index) {
                    scores[t] += score;
                }
                let (name, p, leads) = tactics[index];
                let answer = match leads {
                    Leads::Proved => Answer::Proved,
                    Leads::Open(_) => Answer::Open,
                    Leads::Rejected => Answer::Rejected,
                };
                let reached = search.tell(expand.node, name, p.ln(), answer);
                if reached == Reached::Proved {
                    return true;
                }
                if let (Reached::Open(child), Leads::Open(state)) = (reached, leads)
                    && child.0 as usize == states.len()
                {
                    states.push(state);
                }
            }
        }
    }
}
