//! What is planned after the branches: tournaments, and where each model is searched.

use catamount_search::Deployment;
use serde_json::{Value, json};

use super::Plan;
use super::training::Roots;
use crate::candidates;
use crate::error::Result;
use crate::experiment::{Experiment, ObjectiveChoice};
use crate::file::{Cells, LeanFile, PolicyFile};
use crate::inputs::Inputs;
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
                let settings =
                    json!([deployment, file.tune, file.evaluation.time_limit, roots.searched,]);
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

/// What a cell's outcome depends on besides its model, its deployment and what all searches share.
pub(super) fn held_out(experiment: &Experiment, searched: &Value) -> Value {
    let evaluation = &experiment.file.evaluation;
    json!([
        [json!(evaluation.limit), json!(evaluation.trees)],
        [evaluation.time_limit, evaluation.theorem_time_limit],
        searched,
    ])
}

/// What the outcome of every search of a study depends on: lengths of theorems, seed, prover and
/// what it may spend, and who samples.
pub(super) fn searched(experiment: &Experiment, inputs: &Inputs) -> Value {
    let steps = experiment.evaluation.steps.to_string();
    let sampler = match &experiment.file.policy {
        Some(policy) => server(policy),
        None => Value::Null,
    };
    // How many workers Lean has changes no outcome; without limits of its own the key has none.
    let lean = experiment.file.data.lean.clone().map(|lean| LeanFile { workers: None, ..lean });
    let lean = lean.filter(|lean| *lean != LeanFile::default());
    json!([steps, experiment.seed, inputs.prover, sampler, lean])
}

/// Of a server, what makes its samples what they are. How often and for how long it is asked is
/// nothing that they depend on.
fn server(policy: &PolicyFile) -> Value {
    let PolicyFile { url, model, adapters, chat, prompt, stop, grouped, .. } = policy;
    json!([url, model, adapters, chat, prompt, stop, grouped])
}
