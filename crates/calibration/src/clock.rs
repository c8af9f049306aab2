//! How the surrogate's budget runs against the search's.

use std::fmt;

use catamount_objective::{Objective, ObjectiveError, Prior, Surrogate};
use serde::{Deserialize, Serialize};

/// Expansions that one rollout of Pass@N is taken to cost where nothing was fitted: the paper
/// trains with a quarter of the expansions.
pub const ROLLOUT: u64 = 4;

/// What a budget of n deployed expansions is worth to the surrogate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Clock {
    /// As the paper trains: every expansion counts, every fourth for rollouts.
    Uncalibrated,
    /// The paper's off-trace prior.
    Prior {
        /// Expansions a miss consumes.
        kappa: f64,
        /// Probability that a miss is never recovered from.
        absorption: f64,
    },
    /// n expansions are worth N_eff (n / N)^exponent. Other than a prior, this can say that the
    /// first expansions are worth nothing (they are sampled side by side), or that an expansion is
    /// worth more than one (none is wasted on a repetition).
    Effective {
        /// N_eff: what the deployed budget is worth.
        worth: f64,
        /// The deployed budget N.
        budget: u64,
        /// How the worth grows with the budget.
        exponent: f64,
    },
}

impl Clock {
    /// The surrogate's budget after `n` expansions on a trace of `length` steps.
    pub(crate) fn reading(&self, objective: Objective, n: f64, length: usize) -> f64 {
        let length = length as f64;
        match *self {
            Clock::Effective { worth, budget, exponent } => {
                worth * (n / budget as f64).powf(exponent)
            }
            _ if objective == Objective::Pass => n / ROLLOUT as f64,
            Clock::Prior { kappa, .. } if n > length => length + (n - length) / kappa,
            Clock::Prior { .. } | Clock::Uncalibrated => n,
        }
    }

    /// Probability that a miss is never recovered from.
    pub fn absorption(&self) -> f64 {
        match *self {
            Clock::Prior { absorption, .. } => absorption,
            Clock::Uncalibrated | Clock::Effective { .. } => 0.0,
        }
    }

    /// The surrogate to train with for a deployed budget.
    pub fn surrogate(
        &self,
        objective: Objective,
        budget: u64,
    ) -> Result<Surrogate, ObjectiveError> {
        if let Clock::Effective { .. } = self {
            let worth = self.reading(objective, budget as f64, 0).round();
            return Ok(Surrogate::new(objective, (worth as u64).max(1)));
        }
        let tries = if objective == Objective::Pass { (budget / ROLLOUT).max(1) } else { budget };
        let surrogate = Surrogate::new(objective, tries);
        match *self {
            Clock::Prior { kappa, absorption } => {
                surrogate.with_prior(Prior::new(kappa, absorption)?)
            }
            _ => Ok(surrogate),
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Clock::Uncalibrated => write!(f, "uncalibrated"),
            Clock::Prior { kappa, absorption } => {
                write!(f, "kappa {kappa:.2}, q {absorption:.3}")
            }
            Clock::Effective { worth, budget, exponent } => {
                write!(f, "{worth:.1} of {budget} expansions, exponent {exponent:.2}")
            }
        }
    }
}
