//! What is planned up to the branches: data, warm-up, fits, scores.

use std::path::Path;

use catamount_data::{Making, Source};
use catamount_train::Probabilities;
use serde_json::{Value, json};

use super::Plan;
use super::cells::searched;
use crate::error::Result;
use crate::experiment::{Experiment, ObjectiveChoice, PriorChoice};
use crate::inputs::Inputs;
use crate::step::{Branch, Fit, Fold, Scoring, Step, Trained};

/// What every model of a study goes back to: the keys of the data and of the warm-up, and the
/// settings that the latter is trained with; and what all searches share.
pub(super) struct Roots {
    pub data: String,
    pub warm_up: String,
    pub ancestor: Value,
    pub searched: Value,
}

impl Plan {
    /// Data and warm-up.
    pub(super) fn begun(experiment: &Experiment, inputs: &Inputs) -> (Self, Roots) {
        let mut plan = Plan { steps: Vec::new() };
        let (file, seed) = (&experiment.file, experiment.seed);
        let data = plan.push(Step::Data, &[], json!([making(experiment), inputs.source]));
        let trained_on = json!([experiment.data.steps.to_string(), experiment.data.limit]);
        // What a base is called does not say what it is.
        let model = match &inputs.base {
            Some(content) => match file.model.arithmetic {
                Some(arithmetic) => json!({ "base": content, "arithmetic": arithmetic }),
                None => json!({ "base": content }),
            },
            None => json!(file.model),
        };
        let ancestor = json!([model, file.warm_up, seed, trained_on]);
        let warm_up = plan.push(Step::WarmUp, &[&data], ancestor.clone());
        let searched = searched(experiment, inputs);
        (plan, Roots { data, warm_up, ancestor, searched })
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
            after.push(self.fit(experiment, choice, budget, roots)?);
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
        roots: &Roots,
    ) -> Result<String> {
        let evaluation = &experiment.file.evaluation;
        let fit = Fit::of(choice, &experiment.evaluation, budget)?;
        let mut after = Vec::new();
        for trial in &fit.trials {
            let inputs = json!([
                trial.deployment,
                [evaluation.time_limit, evaluation.theorem_time_limit],
                evaluation.trials,
                roots.searched,
            ]);
            after.push(self.once(Step::Trial(trial.clone()), &[&roots.warm_up], inputs));
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

/// What the data are made of besides the content of their source: of which kind that is, and what
/// is done with one of its kind. Where it lies is no part of it.
fn making(experiment: &Experiment) -> Value {
    let Making { source, origin, steps, split, seed } = experiment.making(Path::new(""));
    let (steps, split) = (steps.to_string(), split.to_string());
    match source {
        Source::Metamath { first, .. } => json!(["metamath", origin, split, seed, steps, first]),
        Source::LeanBundled { .. } => json!(["bundled library", origin, split, seed]),
        Source::Traces(_) => json!(["traces", origin, split, seed]),
        Source::Parts { .. } => json!(["parts", origin]),
    }
}
