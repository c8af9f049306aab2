//! What is planned up to the branches: data, warm-up, fits, scores.

use catamount_train::Probabilities;
use serde_json::json;

use super::Plan;
use super::cells::within_limits;
use crate::error::Result;
use crate::experiment::{Experiment, ObjectiveChoice, PriorChoice};
use crate::inputs::Inputs;
use crate::step::{Branch, Fold, Scoring, Step, Trained};

/// What every model of a study goes back to: the keys of the data and of the warm-up, and the
/// settings that the latter is trained with.
pub(super) struct Roots {
    pub data: String,
    pub warm_up: String,
    pub ancestor: serde_json::Value,
}

impl Plan {
    /// Data and warm-up.
    pub(super) fn begun(experiment: &Experiment, inputs: &Inputs) -> (Self, Roots) {
        let mut plan = Plan { steps: Vec::new() };
        let (file, seed) = (&experiment.file, experiment.seed);
        let split = experiment.split_seed.unwrap_or(seed);
        // A recipe names its commit; where its checkout lies does not matter.
        let project = match &file.data.corpus {
            Some(corpus) => json!({ "corpus": corpus }),
            None => json!(file.data.project),
        };
        let from = json!([
            file.data.environment,
            file.data.database,
            file.data.first,
            project,
            [&file.data.traces, &file.data.train, &file.data.valid, &file.data.test],
            file.data.source,
            file.data.split.to_string(),
            experiment.lengths().to_string(),
        ]);
        let data = plan.push(Step::Data, &[], json!([from, split, inputs.source]));
        let trained_on = json!([experiment.data.steps.to_string(), experiment.data.limit]);
        let mut ancestor = vec![json!(file.model), json!(file.warm_up), json!(seed), trained_on];
        // What a base is called does not say what it is.
        ancestor.extend(inputs.base.as_ref().map(|base| json!(base)));
        let ancestor = json!(ancestor);
        let warm_up = plan.push(Step::WarmUp, &[&data], ancestor.clone());
        (plan, Roots { data, warm_up, ancestor })
    }

    /// A branch, and before it the fit and the scores that it needs; planned once whoever wants it.
    pub(super) fn branch(
        &mut self,
        experiment: &Experiment,
        choice: &ObjectiveChoice,
        budget: u64,
        trained: &Trained,
        roots: &Roots,
    ) -> Result<String> {
        let mut after = vec![roots.warm_up.clone()];
        if choice.prior == PriorChoice::Fitted {
            after.push(self.fit(experiment, choice, budget, &roots.warm_up)?);
        }
        let scoring = choice.made_beforehand().map(|probabilities| Scoring {
            probabilities,
            temperature: choice.temperature,
            folds: experiment.folds,
        });
        if let Some(scoring) = scoring {
            after.push(self.scores(experiment, scoring, roots));
        }
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        let prior = match choice.prior {
            PriorChoice::None => json!(null),
            PriorChoice::Given(prior) => json!([prior.kappa(), prior.absorption()]),
            PriorChoice::Fitted => json!("fitted"),
        };
        let settings = json!([
            choice.recipe(&experiment.file.branch),
            choice.name,
            choice.objective.name(),
            prior,
            budget,
        ]);
        let (objective, trained) = (choice.clone(), trained.clone());
        Ok(self.once(
            Step::Branch(Branch { objective, budget, trained, scoring }),
            &after,
            settings,
        ))
    }

    /// A surrogate's fit, and the trials before it.
    pub(super) fn fit(
        &mut self,
        experiment: &Experiment,
        choice: &ObjectiveChoice,
        budget: u64,
        warm_up: &str,
    ) -> Result<String> {
        let evaluation = &experiment.file.evaluation;
        let fit = choice.fit(&experiment.evaluation, budget)?;
        let mut after = Vec::new();
        for trial in &fit.trials {
            let inputs = within_limits(
                experiment,
                json!([
                    trial.deployment,
                    evaluation.steps.to_string(),
                    [evaluation.time_limit, evaluation.theorem_time_limit],
                    experiment.seed,
                    evaluation.trials,
                ]),
            );
            after.push(self.once(Step::Trial(trial.clone()), &[warm_up], inputs));
        }
        let given: Vec<_> = experiment
            .objectives
            .iter()
            .filter_map(|other| match other.prior {
                PriorChoice::Given(prior) if other.objective == choice.objective => {
                    Some([prior.kappa(), prior.absorption()])
                }
                _ => None,
            })
            .collect();
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        Ok(self.once(Step::Calibration(fit), &after, json!(given)))
    }

    /// The scores that branches rest on, and the models they are made with.
    fn scores(&mut self, experiment: &Experiment, scoring: Scoring, roots: &Roots) -> String {
        let mut after = vec![roots.warm_up.clone()];
        if scoring.probabilities == Probabilities::CrossFitted {
            for fold in Fold::all(scoring.folds) {
                after.push(self.once(Step::Fold(fold), &[&roots.data], roots.ancestor.clone()));
            }
        }
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        let recipe = &experiment.branch;
        let inputs = json!([scoring.temperature, recipe.max_tokens, recipe.batch.tokens]);
        self.once(Step::Scores(scoring), &after, inputs)
    }
}
