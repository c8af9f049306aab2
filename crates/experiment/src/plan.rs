//! The steps of an experiment in an order in which they can be done, and the key of each: a hash of
//! everything its outcome depends on.

use catamount_base::Content;
use catamount_train::Probabilities;
use serde_json::json;

use crate::error::Result;
use crate::experiment::{Experiment, ObjectiveChoice, PriorChoice};
use crate::file::Cells;
use crate::stamp::Stamps;
use crate::step::{Branch, Cell, Fold, Measurement, Scoring, Step, Trained};

/// Theorems on which off-trace behaviour is measured, and whose trees are kept for it.
pub(crate) const MEASURED: usize = 200;

/// A step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// What it is.
    pub step: Step,
    /// Its name for people.
    pub name: String,
    /// Hash of everything that its outcome depends on.
    pub key: String,
}

/// All steps, in an order in which they can be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Planned>,
}

impl Plan {
    /// The plan of an experiment. `source` identifies the data itself: the hash of a database or of
    /// files of traces.
    pub fn new(experiment: &Experiment, source: &str) -> Result<Self> {
        let mut plan = Plan { steps: Vec::new() };
        let (file, seed) = (&experiment.file, experiment.seed);
        let from = json!([
            file.data.environment,
            file.data.database,
            file.data.first,
            file.data.project,
            [&file.data.traces, &file.data.train, &file.data.valid, &file.data.test],
            file.data.source,
            file.data.split.to_string(),
            experiment.lengths().to_string(),
        ]);
        let data = plan.push(Step::Data, &[], json!([from, seed, source]));
        let trained_on = json!([experiment.data.steps.to_string(), experiment.data.limit]);
        let ancestor = json!([file.model, file.warm_up, seed, trained_on]);
        let warm_up = plan.push(Step::WarmUp, &[&data], ancestor.clone());

        let budgets = &experiment.evaluation.budgets;
        let mut cells = Vec::new();
        for (choice, written) in experiment.objectives.iter().zip(&file.objectives) {
            let trained_for = choice.budgets(budgets);
            let several = trained_for.len() > 1;
            for budget in trained_for {
                let mut after = vec![warm_up.clone()];
                if let PriorChoice::Measured(strategy) = choice.prior {
                    let deployment = experiment.evaluation.deployment(strategy, budget)?;
                    after.push(plan.measurement(experiment, deployment, &warm_up));
                }
                let scoring = choice.made_beforehand().map(|probabilities| Scoring {
                    probabilities,
                    temperature: choice.temperature,
                    folds: experiment.folds,
                });
                if let Some(scoring) = scoring {
                    after.push(plan.scores(experiment, scoring, [&data, &warm_up], &ancestor));
                }
                let trained = Trained::branch(&choice.name, several.then_some(budget));
                let objective = choice.clone();
                let made = trained.clone();
                let branch = Step::Branch(Branch { objective, budget, trained: made, scoring });
                let after: Vec<&str> = after.iter().map(String::as_str).collect();
                let key = plan.push(
                    branch,
                    &after,
                    json!([choice.recipe(&file.branch), written, budget]),
                );
                cells.extend(
                    deployed(experiment, choice, several.then_some(budget))?.into_iter().map(
                        |deployment| {
                            let objective = choice.name.clone();
                            (Cell { trained: trained.clone(), objective, deployment }, key.clone())
                        },
                    ),
                );
            }
        }
        let searched = searched(experiment);
        let mut all = Vec::new();
        for (cell, branch) in cells {
            let inputs = json!([searched, cell.deployment]);
            all.push(plan.push(Step::Cell(cell), &[&branch], inputs));
        }
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        plan.push(Step::Report, &all, json!(experiment.name));
        Ok(plan)
    }

    /// The measurement under a deployment, planned once whoever wants it.
    fn measurement(
        &mut self,
        experiment: &Experiment,
        deployment: catamount_search::Deployment,
        warm_up: &str,
    ) -> String {
        let evaluation = &experiment.file.evaluation;
        let inputs = json!([
            deployment,
            evaluation.steps.to_string(),
            [evaluation.time_limit, evaluation.theorem_time_limit],
            experiment.seed,
            MEASURED,
        ]);
        let step = Step::OffTrace(Measurement { deployment });
        match self.steps.iter().find(|planned| planned.step == step) {
            Some(planned) => planned.key.clone(),
            None => self.push(step, &[warm_up], inputs),
        }
    }

    /// The scores that branches rest on, and the models they are made with, planned once whoever
    /// wants them.
    fn scores(
        &mut self,
        experiment: &Experiment,
        scoring: Scoring,
        [data, warm_up]: [&str; 2],
        ancestor: &serde_json::Value,
    ) -> String {
        let step = Step::Scores(scoring);
        if let Some(planned) = self.steps.iter().find(|planned| planned.step == step) {
            return planned.key.clone();
        }
        let mut after = vec![warm_up.to_string()];
        if scoring.probabilities == Probabilities::CrossFitted {
            for fold in Fold::all(scoring.folds) {
                let step = Step::Fold(fold);
                let planned = self.steps.iter().find(|planned| planned.step == step);
                after.push(match planned.map(|planned| planned.key.clone()) {
                    Some(key) => key,
                    None => self.push(step, &[data], ancestor.clone()),
                });
            }
        }
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        let recipe = &experiment.branch;
        let inputs = json!([scoring.temperature, recipe.max_tokens, recipe.batch.tokens]);
        self.push(step, &after, inputs)
    }

    /// Adds a step that depends on others, by their keys, and on settings.
    fn push(&mut self, step: Step, after: &[&str], settings: serde_json::Value) -> String {
        let name = step.name();
        let settings = settings.to_string();
        // A new version of a step's output format is a new outcome.
        let parts = [env!("CARGO_PKG_VERSION"), &step.id(), &settings];
        let content = Content::of_texts(parts.into_iter().chain(after.iter().copied()));
        let key = content.short().to_string();
        self.steps.push(Planned { step, name, key: key.clone() });
        key
    }

    /// Leaves out what comes after training.
    pub fn training_only(mut self) -> Self {
        self.steps.retain(|planned| !matches!(planned.step, Step::Cell(_) | Step::Report));
        self
    }

    /// The cells, in order.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.steps.iter().filter_map(|planned| match &planned.step {
            Step::Cell(cell) => Some(cell),
            _ => None,
        })
    }

    /// The plan as text: every step, whether it is up to date, and what it costs: how long it took
    /// last time, or how much work it is.
    pub fn describe(&self, experiment: &Experiment, folder: &std::path::Path) -> String {
        let stamps = Stamps::new(folder);
        let mut text = String::new();
        let (mut known, mut unknown) = (0.0, 0);
        for planned in &self.steps {
            let done = stamps.is_done(planned);
            let last = stamps.last_seconds(planned);
            if !done {
                known += last.unwrap_or(0.0);
                unknown += usize::from(last.is_none());
            }
            let cost = match last {
                Some(seconds) => format!("{seconds:.0} s last time"),
                None => work(experiment, &planned.step),
            };
            let state = if done { "up to date" } else { "to do" };
            text.push_str(&format!("{state:<11} {:<28} {cost}\n", planned.name));
        }
        text.push_str(&format!("{known:.0} s for the steps that were timed before"));
        if unknown > 0 {
            text.push_str(&format!("; {unknown} steps have never run here"));
        }
        text.push('\n');
        text
    }
}

/// How a branch is deployed: under every strategy it belongs to, at every budget; one of several
/// branches of an objective only at the budget it was trained for.
fn deployed(
    experiment: &Experiment,
    choice: &ObjectiveChoice,
    own: Option<u64>,
) -> Result<Vec<catamount_search::Deployment>> {
    let evaluation = &experiment.evaluation;
    let mut deployments = Vec::new();
    for &budget in evaluation.budgets.iter().filter(|&&budget| own.is_none_or(|own| own == budget))
    {
        for &strategy in &evaluation.strategies {
            if evaluation.cells == Cells::All || choice.belongs_under(strategy) {
                deployments.push(evaluation.deployment(strategy, budget)?);
            }
        }
    }
    Ok(deployments)
}

/// Everything that a cell's outcome depends on besides its model and deployment.
fn searched(experiment: &Experiment) -> serde_json::Value {
    let evaluation = &experiment.file.evaluation;
    json!([
        [json!(evaluation.limit), json!(evaluation.steps.to_string()), json!(evaluation.trees)],
        [evaluation.time_limit, evaluation.theorem_time_limit],
        experiment.seed,
    ])
}

/// How much work a step is, where it was never timed.
fn work(experiment: &Experiment, step: &Step) -> String {
    let theorems = experiment.evaluation.limit.map_or("all".to_string(), |limit| limit.to_string());
    let traces =
        experiment.data.limit.map_or("all".to_string(), |limit| format!("at most {limit}"));
    let expansions = |deployment: &catamount_search::Deployment, theorems: String| {
        format!("up to {} expansions for each of {theorems} theorems", deployment.budget())
    };
    match step {
        Step::Data => "extract, replay and split".to_string(),
        Step::WarmUp => format!("{} epochs over {traces} traces", experiment.warm_up.epochs),
        Step::Fold(fold) => format!(
            "{} epochs over {} of {} parts of {traces} traces",
            experiment.warm_up.epochs,
            fold.of - 1,
            fold.of
        ),
        Step::Scores(_) => "a pass over training and validation traces".to_string(),
        Step::Branch(_) => format!("{} epochs over {traces} traces", experiment.branch.epochs),
        Step::OffTrace(measurement) => {
            expansions(&measurement.deployment, format!("{MEASURED} validation"))
        }
        Step::Cell(cell) => expansions(&cell.deployment, theorems),
        Step::Report => "seconds".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::presets::{PRESETS, preset};

    #[test]
    fn no_two_steps_of_a_preset_share_a_name_a_key_or_a_file() {
        for (name, ..) in PRESETS {
            let plan = Plan::new(&preset(name).unwrap(), "source").unwrap();
            let mut seen = HashSet::new();
            for planned in &plan.steps {
                assert!(seen.insert(planned.name.clone()) && seen.insert(planned.key.clone()));
                assert!(seen.insert(format!("id {}", planned.step.id())), "{}", planned.name);
                for file in planned.step.outputs().made {
                    assert!(seen.insert(format!("file {}", file.display())), "{file:?}");
                }
            }
        }
    }

    /// What people call an objective is never where its files are.
    #[test]
    fn names_cannot_escape_or_evict() {
        let names = ["/etc/x", "../../x", "warm-up", "a b", "a-b", "a@16", "x.trees"];
        let objectives: String = names
            .iter()
            .map(|name| format!("[[objectives]]\nobjective = \"bfs\"\nname = \"{name}\"\n"))
            .collect();
        let text = format!(
            "name = \"n\"\ndata = {{ environment = \"metamath\", database = \"x.mm\" }}\nmodel = \
             {{ base = \"b\" }}\nevaluation = {{ budgets = [16, 64] }}\n{objectives}"
        );
        let experiment = Experiment::parse(&text, "x.toml").unwrap();
        let plan = Plan::new(&experiment, "source").unwrap();
        let mut files = HashSet::new();
        for file in plan.steps.iter().flat_map(|planned| planned.step.outputs().made) {
            let parts: Vec<_> = file.components().collect();
            let normal = parts.iter().all(|part| matches!(part, std::path::Component::Normal(_)));
            assert!(normal && parts.len() <= 2, "{}", file.display());
            let shown = file.display().to_string();
            assert!(files.insert(shown.clone()), "{shown} is made by two steps");
        }
    }

    #[test]
    fn objectives_share_folds_and_scores() {
        let text = r#"
name = "n"
probabilities = "cross-fitted"
folds = 2
data = { environment = "metamath", database = "x.mm" }
model = { base = "b" }
objectives = [
    { objective = "ce" },
    { objective = "ua" },
    { objective = "bfs", temperature = "deployed" },
    { objective = "bfs", name = "cool", temperature = "deployed", floor = 0.1 },
    { objective = "bfs", name = "plain", probabilities = "training" },
]
"#;
        let plan = Plan::new(&Experiment::parse(text, "x.toml").unwrap(), "source").unwrap();
        let names: Vec<&str> = plan.steps.iter().map(|planned| planned.name.as_str()).collect();
        let wanted = [
            "data",
            "warm-up",
            "branch ce",
            "fold 1 of 2",
            "fold 2 of 2",
            "scores cross-fitted-2 t1",
            "branch ua",
            "scores cross-fitted-2 t0.8",
            "branch bfs",
            "branch cool",
            "branch plain",
        ];
        assert_eq!(names[..wanted.len()], wanted);
    }

    #[test]
    fn a_change_reaches_what_depends_on_it_and_nothing_else() {
        let before = preset("demo").unwrap();
        let keys = |experiment: &Experiment| {
            let plan = Plan::new(experiment, "source").unwrap();
            plan.steps.into_iter().map(|planned| (planned.name, planned.key)).collect::<Vec<_>>()
        };
        let text = PRESETS[0].2;
        let changed = |old: &str, new: &str| {
            let after = Experiment::parse(&text.replace(old, new), "demo.toml").unwrap();
            let pairs = keys(&before).into_iter().zip(keys(&after));
            let changed = pairs.filter(|((_, old), (_, new))| old != new);
            changed.map(|((name, _), _)| name).collect::<Vec<String>>()
        };
        let limit = changed("limit = 220", "limit = 221");
        assert!(limit.iter().all(|name| name.starts_with("cell") || name == "report"), "{limit:?}");
        // Longer held-out theorems are not in data that were extracted without them.
        let steps = changed("steps = \"2-5\"", "steps = \"2-15\"");
        assert!(steps.contains(&"data".to_string()), "{steps:?}");
        assert_eq!(changed("concurrency = 220", "concurrency = 64"), Vec::<String>::new());
    }
}
