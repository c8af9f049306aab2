//! What can be wrong with a question about weights.

use crate::Objective;

/// A question that has no answer, and what to do about it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ObjectiveError {
    /// An objective's name was not recognised.
    #[error("unknown objective `{name}`; the known ones are {}", Objective::names())]
    Unknown {
        /// The name as given.
        name: String,
    },
    /// kappa out of range.
    #[error(
        "kappa is the number of expansions a miss consumes and must be a finite number of at \
         least 1, not {0}"
    )]
    Kappa(f64),
    /// q out of range.
    #[error("absorption is a probability and must lie in [0, 1), not {0}")]
    Absorption(f64),
    /// `pass` with a kappa.
    #[error(
        "`pass` has no kappa: its budget counts rollouts, and a missed rollout costs exactly one \
         of them; \
         leave kappa at 1, or use absorption"
    )]
    PassKappa,
    /// A trace without steps.
    #[error("the trace has no steps; a trace needs at least one tactic")]
    EmptyTrace,
    /// A log-probability that is none.
    #[error("log-probability {value} of step {step} is {}; it must be a finite number of at most \
     0", if value.is_nan() { "not a \
     number" } else if *value > 0.0 { "positive" } else { "infinite (a tactic that is never \
     sampled has no weight)" })]
    LogProbability {
        /// Which step, counted from 1.
        step: usize,
        /// The value as given.
        value: f64,
    },
    /// A trace so unlikely that its numbers would be meaningless.
    #[error(
        "the log-probabilities add up to {sum:e}; below -1e15 a trace has no weights (is a masked \
         or padding value among them? a tactic that is never sampled has no weight)"
    )]
    Vanishing {
        /// The sum.
        sum: f64,
    },
    /// A budget beyond which rounding would show in the digits that are promised.
    #[error(
        "`{objective}` weighs budgets of at most {most} expansions, not {budget}; `ua` and `pass` \
         have no such limit"
    )]
    Budget {
        /// The objective.
        objective: Objective,
        /// The budget after kappa.
        budget: f64,
        /// The largest.
        most: u64,
    },
    /// A question that would take hours.
    #[error(
        "`{objective}` of {length} steps at a budget of {budget} takes {work:.1e} operations, and \
         at most {most:.1e} are done; lower the budget, shorten the trace, or use `ua`"
    )]
    Work {
        /// The objective.
        objective: Objective,
        /// Steps of the trace.
        length: usize,
        /// The budget after kappa.
        budget: f64,
        /// Operations it would take.
        work: f64,
        /// Operations that are done.
        most: f64,
    },
}
