//! One figure a file: its data, the claim checked on that data, and how it is drawn.

mod absorption;
mod allocation;
mod bypass;
mod criticality;
mod deployment;
mod excursion;
mod weight_by_budget;
mod weight_by_p;

pub use absorption::absorption;
pub use allocation::allocation;
pub use bypass::bypass;
pub use criticality::criticality;
pub use deployment::{Row, deployment, deployment_by_budget, rows};
pub use excursion::excursion;
pub use weight_by_budget::weight_by_budget;
pub use weight_by_p::weight_by_p;

use catamount_objective::{Objective, ObjectiveError, Prior, Surrogate};

/// Expansions to a rollout: the paper trains `pass` for N expansions with N/4 rollouts.
pub(crate) const EXPANSIONS_PER_ROLLOUT: u64 = 4;

/// A marker that no line joins to the next one.
pub(crate) fn apart_dots((x, y): (f64, f64)) -> [(f64, f64); 2] {
    [(x, y), (x, f64::NAN)]
}

/// The surrogate's weights at a budget of N expansions, as the paper would train with.
pub(crate) fn surrogate(
    objective: Objective,
    expansions: u64,
    prior: Prior,
    p: &[f64],
) -> Result<Vec<f64>, ObjectiveError> {
    let budget = if objective == Objective::Pass {
        (expansions / EXPANSIONS_PER_ROLLOUT).max(1)
    } else {
        expansions
    };
    let log_p: Vec<f64> = p.iter().map(|p| p.ln()).collect();
    Ok(Surrogate::new(objective, budget).with_prior(prior)?.weigh(&log_p)?.weights)
}
