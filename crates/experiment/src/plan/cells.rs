//! What is planned after the branches: tournaments, and where each model is searched.

use catamount_search::Deployment;
use serde_json::json;

use super::Plan;
use super::training::Roots;
use crate::candidates;
use crate::error::Result;
use crate::experiment::{Experiment, ObjectiveChoice};
use crate::file::{Cells, LeanFile};
use crate::step::{Step, Tournament, Trained};

impl Plan {
    /// A tournament for every strategy and budget, with the branches that compete in it.
    pub(super) fn tournaments(
        &mut self,
        experiment: &Experiment,
        controls: &[(Trained, String)],
        roots: &Roots,
    ) -> Result<Vec<(Tournament, String)>> {
        let evaluation = &experiment.evaluation;
        let mut tournaments = Vec::new();
        for &budget in &evaluation.budgets {
            for &strategy in &evaluation.strategies {
                let deployment = evaluation.deployment(strategy, budget)?;
                let mut models: Vec<(Trained, Option<f64>)> = Vec::new();
                let mut after: Vec<String> = Vec::new();
                for (trained, key) in controls {
                    models.push((trained.clone(), None));
                    after.push(key.clone());
                }
                for (choice, trained_for) in candidates::choices(experiment, strategy, budget)? {
                    let trained = Trained::branch(&choice.name, None);
                    let key = self.branch(experiment, &choice, trained_for, &trained, roots)?;
                    models.push((trained, Some(choice.temperature)));
                    after.push(key);
                }
                let contenders = candidates::contenders(experiment, &deployment, &models)?;
                let file = &experiment.file;
                let settings = within_limits(
                    experiment,
                    json!([
                        deployment,
                        file.tune,
                        file.evaluation.steps.to_string(),
                        file.evaluation.time_limit,
                        experiment.seed,
                    ]),
                );
                let tournament = Tournament { deployment, contenders };
                let after: Vec<&str> = after.iter().map(String::as_str).collect();
                let step = Step::Tournament(tournament.clone());
                tournaments.push((tournament, self.push(step, &after, settings)));
            }
        }
        Ok(tournaments)
    }
}

/// How a branch is deployed: under every strategy it belongs to, at every budget; one of several
/// branches of an objective only at the budget it was trained for.
pub(super) fn deployed(
    experiment: &Experiment,
    choice: &ObjectiveChoice,
    own: Option<u64>,
) -> Result<Vec<Deployment>> {
    let evaluation = &experiment.evaluation;
    let mut deployments = Vec::new();
    for &budget in evaluation.budgets.iter().filter(|&&budget| own.is_none_or(|own| own == budget))
    {
        for &strategy in &evaluation.strategies {
            let anywhere = evaluation.cells == Cells::All && choice.under.is_none();
            if anywhere || choice.belongs_under(strategy) {
                deployments.push(choice.deployment(strategy, budget)?);
            }
        }
    }
    Ok(deployments)
}

/// Everything that a cell's outcome depends on besides its model and deployment.
pub(super) fn searched(experiment: &Experiment) -> serde_json::Value {
    let evaluation = &experiment.file.evaluation;
    let searched = within_limits(
        experiment,
        json!([
            [json!(evaluation.limit), json!(evaluation.steps.to_string()), json!(evaluation.trees)],
            [evaluation.time_limit, evaluation.theorem_time_limit],
            experiment.seed,
        ]),
    );
    // Another sampler gives other samples.
    match &experiment.file.policy {
        Some(policy) => json!([searched, policy]),
        None => searched,
    }
}

/// Settings of searches, with what Lean may spend where the file says. How many workers it has
/// changes no outcome.
pub(super) fn within_limits(
    experiment: &Experiment,
    settings: serde_json::Value,
) -> serde_json::Value {
    let lean = experiment.file.data.lean.clone().map(|lean| LeanFile { workers: None, ..lean });
    match lean {
        Some(lean) if lean != LeanFile::default() => json!([settings, lean]),
        _ => settings,
    }
}
