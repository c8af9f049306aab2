//! The true weights w*_t = d log J^A / d log p_t under proportional reallocation
//! (eq:search_elasticity), from the exact J^A.

use catamount_search::Deployment;

use crate::explore::{ExploreError, exact_success, explore};
use crate::tree::ProofTree;

/// What a strategy deployed on a tree does, exactly, at every budget up to the one asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployed {
    /// J^A(n) at n - 1.
    pub success: Vec<f64>,
    /// w*_t(n) at [t - 1][n - 1]; not a number where J^A(n) = 0.
    pub weights: Vec<Vec<f64>>,
    /// How far the weights may be off: zero where they are carried along exactly, the difference
    /// between two orders where they come from central differences.
    pub doubt: f64,
}

/// J^A and w* for every budget up to the deployment's.
///
/// The derivative is carried along with every configuration, whatever the strategy, but where its
/// own random choices are a smooth function of p, as those of `vdfs`: weights then come from
/// [`by_differences`]. `bfs` and `mcts` compare scores that depend on p; where two of them tie J^A
/// jumps, and between such points, where there is a derivative, this is it.
pub fn deployed(tree: &ProofTree, deployment: &Deployment) -> Result<Deployed, ExploreError> {
    if deployment.strategy().choices_move() {
        return by_differences(tree, deployment);
    }
    let explored = explore(tree, deployment)?;
    let weight = |n: usize, t: usize| {
        let success = explored.success[n];
        if success > 0.0 { explored.derivatives[n][t] / success } else { f64::NAN }
    };
    let weights = (0..tree.length())
        .map(|t| (0..explored.success.len()).map(|n| weight(n, t)).collect())
        .collect();
    Ok(Deployed { weights, success: explored.success, doubt: 0.0 })
}

/// Largest step in log p.
const STEP: f64 = 2e-3;

/// The same by central differences of sixth order: six explorations for each step of the trace.
/// `doubt` is large if J^A jumps nearby.
pub fn by_differences(tree: &ProofTree, deployment: &Deployment) -> Result<Deployed, ExploreError> {
    let success = exact_success(tree, deployment)?;
    let mut out = Deployed { success, weights: Vec::new(), doubt: 0.0 };
    for t in 0..tree.length() {
        let step = STEP.min(-tree.p()[t].ln() / 4.0);
        let at = |k: f64| {
            let mut p = tree.p().to_vec();
            p[t] *= (k * step).exp();
            exact_success(&tree.with_p(&p)?, deployment)
        };
        let mut differences = Vec::new();
        for k in [1.0, 2.0, 3.0] {
            let (above, below) = (at(k)?, at(-k)?);
            differences
                .push(above.iter().zip(&below).map(|(a, b)| (a - b) / step).collect::<Vec<f64>>());
        }
        let mut weights = Vec::with_capacity(out.success.len());
        for (n, &success) in out.success.iter().enumerate() {
            let [one, two, three] = [differences[0][n], differences[1][n], differences[2][n]];
            let sixth = 0.75 * one - 0.15 * two + three / 60.0;
            let fourth = (8.0 * one - two) / 12.0;
            if success > 0.0 {
                out.doubt = out.doubt.max((sixth - fourth).abs() / success);
            }
            weights.push(if success > 0.0 { sixth / success } else { f64::NAN });
        }
        out.weights.push(weights);
    }
    Ok(out)
}
