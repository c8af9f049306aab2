//! Where the weights come from: an objective, and the log-probabilities it is given.

use catamount_objective::{Objective, ObjectiveError, Strategy, Surrogate, Weighed, solve};

use crate::Dataset;

/// What says how much each step of a trace matters: a [`Surrogate`], or a strategy of one's own as
/// a [`Custom`].
pub trait Weigh: Sync {
    /// The objective's name, for metrics.
    fn name(&self) -> String;
    /// The budget it is to be deployed with, where it has one.
    fn budget(&self) -> Option<u64>;
    /// Everything that distinguishes it: a checkpoint made under another description is not
    /// continued.
    fn describe(&self) -> String;
    /// log J and the weights of a trace.
    fn weigh(&self, log_p: &[f64]) -> Result<Weighed, ObjectiveError>;
    /// Whether the weights depend on the log-probabilities at all; without, no scoring pass is ever
    /// needed.
    fn depends_on_p(&self) -> bool {
        true
    }
}

impl Weigh for Surrogate {
    fn name(&self) -> String {
        self.objective().to_string()
    }

    fn budget(&self) -> Option<u64> {
        self.depends_on_p().then_some(Surrogate::budget(self))
    }

    fn describe(&self) -> String {
        if !self.depends_on_p() {
            return self.name();
        }
        let (kappa, absorption) = (self.prior().kappa(), self.prior().absorption());
        format!(
            "{} with budget {}, kappa {kappa}, absorption {absorption}",
            self.objective(),
            Surrogate::budget(self)
        )
    }

    fn weigh(&self, log_p: &[f64]) -> Result<Weighed, ObjectiveError> {
        Surrogate::weigh(self, log_p)
    }

    fn depends_on_p(&self) -> bool {
        self.objective() != Objective::Ce
    }
}

/// A search strategy of one's own, given as the triple (selection, advance, miss): its weights
/// follow mechanically, by a recurrence that is exact and as slow as the strategy has
/// configurations.
#[derive(Clone, Debug, PartialEq)]
pub struct Custom<S> {
    /// For metrics and checkpoints.
    pub name: String,
    /// The triple.
    pub strategy: S,
    /// The budget it is to be deployed with.
    pub budget: u64,
    /// The probability that a miss is never recovered from.
    pub absorption: f64,
}

impl<S: Strategy + Sync> Weigh for Custom<S> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn budget(&self) -> Option<u64> {
        Some(self.budget)
    }

    fn describe(&self) -> String {
        format!("{} with budget {}, absorption {}", self.name, self.budget, self.absorption)
    }

    fn weigh(&self, log_p: &[f64]) -> Result<Weighed, ObjectiveError> {
        solve(&self.strategy, log_p, self.budget, self.absorption)
    }
}

/// The log-probability of every example of the data, as it was given or as a scoring pass found it;
/// not a number where neither was.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table(pub Vec<f64>);

impl Table {
    pub fn new(data: &Dataset) -> Self {
        Table(data.given().map_or_else(|| vec![f64::NAN; data.examples()], <[f64]>::to_vec))
    }
}
