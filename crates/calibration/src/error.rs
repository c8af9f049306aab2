//! What cannot be fitted.

use catamount_objective::ObjectiveError;

/// The fewest theorems a fit can rest on: each of the folds of cross-validation has some.
pub const LEAST_THEOREMS: usize = 40;
/// The fewest proofs along the demonstration, without which nothing says how long they take.
pub(crate) const LEAST_ALONG: usize = 10;

/// Observations that a surrogate cannot be fitted to, and what to do about it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// Too few theorems.
    #[error(
        "{found} validation theorems are too few to fit a surrogate on: at least {LEAST_THEOREMS} \
         are needed; make the validation part of the split larger, or widen the lengths"
    )]
    Theorems {
        /// How many there are.
        found: usize,
    },
    /// Too few proofs along the demonstration.
    #[error(
        "only {along} of {theorems} validation theorems were proved along their demonstration \
         ({bypass} otherwise), and at least {LEAST_ALONG} are needed to fit a surrogate; search \
         more theorems, with a larger budget, or train the warm-up further"
    )]
    Along {
        /// Proofs along the demonstration.
        along: usize,
        /// Other proofs.
        bypass: usize,
        /// Theorems searched.
        theorems: usize,
    },
    /// An end after no expansion, or beyond the budget.
    #[error("{theorem} ended after {expansions} expansions of a budget of {budget}")]
    End {
        /// The theorem.
        theorem: String,
        /// When it is said to have ended.
        expansions: u64,
        /// The budget.
        budget: u64,
    },
    /// `ce`, which has no budget.
    #[error("`ce` has no budget, so there is nothing to calibrate; choose another objective")]
    NoBudget,
    /// Log-probabilities that are none.
    #[error("{theorem}: {source}")]
    Trace {
        /// The theorem.
        theorem: String,
        /// What is wrong.
        source: ObjectiveError,
    },
}
