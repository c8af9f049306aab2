//! Where the weights come from: an objective, and the log-probabilities it is given.

use catamount_objective::{Objective, ObjectiveError, Surrogate, Weighed};

/// What says how much each step of a trace matters. [`Surrogate`] does; so can a strategy of one's own, through
/// [`catamount_objective::by_recurrence`].
pub trait Weigh: Sync {
    /// The objective's name, for metrics.
    fn name(&self) -> String;
    /// The budget it is to be deployed with, where it has one.
    fn budget(&self) -> Option<u64>;
    /// Everything that distinguishes it: a checkpoint made under another description is not continued.
    fn describe(&self) -> String;
    /// log J and the weights of a trace.
    fn weigh(&self, log_p: &[f64]) -> Result<Weighed, ObjectiveError>;
    /// Whether the weights depend on the log-probabilities at all; without, no scoring pass is ever needed.
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
        format!("{} with budget {}, kappa {kappa}, absorption {absorption}", self.objective(), Surrogate::budget(self))
    }

    fn weigh(&self, log_p: &[f64]) -> Result<Weighed, ObjectiveError> {
        Surrogate::weigh(self, log_p)
    }

    fn depends_on_p(&self) -> bool {
        self.objective() != Objective::Ce
    }
}

/// The log-probability of every example of the data, as a scoring pass found it; not a number where none has been.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table(pub Vec<f64>);

impl Table {
    pub fn new(examples: usize) -> Self {
        Table(vec![f64::NAN; examples])
    }
}
