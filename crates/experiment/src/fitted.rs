//! What an objective's surrogate is fitted to.

use catamount_search::{SettingError, StrategyKind};

use crate::experiment::{Evaluation, ObjectiveChoice};
use crate::step::{Fit, Trial};

impl Fit {
    /// The fit of an objective's surrogate for a deployed budget: to searches under the strategies
    /// that the objective models, or under all that are deployed if it models none.
    pub(crate) fn of(
        choice: &ObjectiveChoice,
        evaluation: &Evaluation,
        budget: u64,
    ) -> Result<Self, SettingError> {
        let mut strategies: Vec<StrategyKind> = StrategyKind::owning(choice.objective).collect();
        if strategies.is_empty() {
            strategies.clone_from(&evaluation.strategies);
        }
        let trial = |strategy| Ok(Trial { deployment: choice.deployment(strategy, budget)? });
        let trials = strategies.into_iter().map(trial).collect::<Result<_, SettingError>>()?;
        Ok(Fit { objective: choice.objective, budget, trials })
    }
}
