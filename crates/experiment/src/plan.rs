//! The steps of an experiment in an order in which they can be done, and the key of each: a hash of
//! everything its outcome depends on.

use catamount_base::Content;
use catamount_objective::Objective;
use catamount_report::TUNED;
use catamount_train::Probabilities;
use serde_json::json;

use crate::candidates;
use crate::error::Result;
use crate::experiment::{Experiment, ObjectiveChoice, PriorChoice};
use crate::file::{AUTO, Cells};
use crate::stamp::Stamps;
use crate::step::{Branch, Cell, Chosen, Fold, Scoring, Step, Tournament, Trained};

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

/// What every model of a study goes back to: the keys of the data and of the warm-up, and the
/// settings that the latter is trained with.
struct Roots {
    data: String,
    warm_up: String,
    ancestor: serde_json::Value,
}

impl Plan {
    /// The plan of an experiment. `source` identifies the data itself: the hash of a database or of
    /// files of traces.
    pub fn new(experiment: &Experiment, source: &str) -> Result<Self> {
        let (mut plan, roots) = Plan::begun(experiment, source);
        let budgets = &experiment.evaluation.budgets;
        let (mut cells, mut controls) = (Vec::new(), Vec::new());
        for choice in &experiment.objectives {
            let trained_for = choice.budgets(budgets);
            let several = trained_for.len() > 1;
            for budget in trained_for {
                let trained = Trained::branch(&choice.name, several.then_some(budget));
                let key = plan.branch(experiment, choice, budget, &trained, &roots)?;
                if choice.objective == Objective::Ce {
                    controls.push((trained.clone(), key.clone()));
                }
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
        let tournaments = if experiment.auto {
            plan.tournaments(experiment, &controls, &roots)?
        } else {
            Vec::new()
        };
        let searched = searched(experiment);
        let mut all = Vec::new();
        for (cell, branch) in cells {
            let inputs = json!([searched, cell.deployment]);
            all.push(plan.push(Step::Cell(cell), &[&branch], inputs));
        }
        for (tournament, key) in tournaments {
            for (objective, control) in [(TUNED, true), (AUTO, false)] {
                let (objective, tournament) = (objective.to_string(), tournament.clone());
                let chosen = Step::Chosen(Chosen { objective, tournament, control });
                all.push(plan.push(chosen, &[&key], searched.clone()));
            }
        }
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        plan.push(Step::Report, &all, json!(experiment.name));
        Ok(plan)
    }

    /// Only what is needed to hold surrogates against searches: every strategy's own, and `ua`.
    pub fn calibration(experiment: &Experiment, source: &str) -> Result<Self> {
        let (mut plan, roots) = Plan::begun(experiment, source);
        let evaluation = &experiment.evaluation;
        for &budget in &evaluation.budgets {
            let own = evaluation.strategies.iter().map(|strategy| strategy.name().parse());
            for objective in own.chain([Ok(Objective::Ua)]).flatten() {
                let name = objective.to_string();
                let choice = experiment.choice(name, objective, budget, PriorChoice::Fitted);
                plan.fit(experiment, &choice, budget, &roots.warm_up)?;
            }
        }
        Ok(plan)
    }

    /// Data and warm-up.
    fn begun(experiment: &Experiment, source: &str) -> (Self, Roots) {
        let mut plan = Plan { steps: Vec::new() };
        let (file, seed) = (&experiment.file, experiment.seed);
        let split = experiment.split_seed.unwrap_or(seed);
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
        let data = plan.push(Step::Data, &[], json!([from, split, source]));
        let trained_on = json!([experiment.data.steps.to_string(), experiment.data.limit]);
        let ancestor = json!([file.model, file.warm_up, seed, trained_on]);
        let warm_up = plan.push(Step::WarmUp, &[&data], ancestor.clone());
        (plan, Roots { data, warm_up, ancestor })
    }

    /// A branch, and before it the fit and the scores that it needs; planned once whoever wants it.
    fn branch(
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
    fn fit(
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
            let inputs = json!([
                trial.deployment,
                evaluation.steps.to_string(),
                [evaluation.time_limit, evaluation.theorem_time_limit],
                experiment.seed,
                evaluation.trials,
            ]);
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

    /// A tournament for every strategy and budget, with the branches that compete in it.
    fn tournaments(
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
                let mut models: Vec<(Trained, bool)> = Vec::new();
                let mut after: Vec<String> = Vec::new();
                for (trained, key) in controls {
                    models.push((trained.clone(), true));
                    after.push(key.clone());
                }
                for (choice, trained_for) in candidates::choices(experiment, strategy, budget) {
                    let trained = Trained::branch(&choice.name, None);
                    let key = self.branch(experiment, &choice, trained_for, &trained, roots)?;
                    models.push((trained, false));
                    after.push(key);
                }
                let contenders = candidates::contenders(experiment, &deployment, &models)?;
                let file = &experiment.file;
                let settings = json!([
                    deployment,
                    file.tune,
                    file.evaluation.steps.to_string(),
                    file.evaluation.time_limit,
                    experiment.seed,
                ]);
                let tournament = Tournament { deployment, contenders };
                let after: Vec<&str> = after.iter().map(String::as_str).collect();
                let step = Step::Tournament(tournament.clone());
                tournaments.push((tournament, self.push(step, &after, settings)));
            }
        }
        Ok(tournaments)
    }

    /// Adds a step, unless it is there already.
    fn once(&mut self, step: Step, after: &[&str], settings: serde_json::Value) -> String {
        match self.steps.iter().find(|planned| planned.step == step) {
            Some(planned) => planned.key.clone(),
            None => self.push(step, after, settings),
        }
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
        let after = |step: &Step| {
            matches!(step, Step::Tournament(_) | Step::Cell(_) | Step::Chosen(_) | Step::Report)
        };
        self.steps.retain(|planned| !after(&planned.step));
        self
    }

    /// Leaves out what touches held-out theorems.
    pub fn tuning_only(mut self) -> Self {
        let after = |step: &Step| matches!(step, Step::Cell(_) | Step::Chosen(_) | Step::Report);
        self.steps.retain(|planned| !after(&planned.step));
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
    let searched = json!([
        [json!(evaluation.limit), json!(evaluation.steps.to_string()), json!(evaluation.trees)],
        [evaluation.time_limit, evaluation.theorem_time_limit],
        experiment.seed,
    ]);
    // Another sampler gives other samples.
    match &experiment.file.policy {
        Some(policy) => json!([searched, policy]),
        None => searched,
    }
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
        Step::Trial(trial) => {
            let trials = experiment.evaluation.trials;
            expansions(&trial.deployment, format!("at most {trials} validation"))
        }
        Step::Calibration(_) => "seconds".to_string(),
        Step::Tournament(tournament) => format!(
            "{} candidates on at most {} validation theorems, by halves",
            tournament.contenders.len(),
            experiment.tune.theorems
        ),
        Step::Chosen(chosen) => expansions(&chosen.tournament.deployment, theorems),
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

    /// Candidates rest on the study's probabilities, and their floors are in their recipes.
    #[test]
    fn candidates_share_scores_and_have_their_floors() {
        let text = r#"
name = "n"
probabilities = "mapped"
data = { environment = "metamath", database = "x.mm" }
model = { base = "b" }
branch = { temperature = 0.9, weights = { min = 0.05 } }
objectives = [{ objective = "ce" }, { objective = "auto" }]
evaluation = { strategies = ["bfs"], budgets = [64] }
tune = { objectives = ["ua"], floors = [0, 0.2] }
"#;
        let experiment = Experiment::parse(text, "x.toml").unwrap();
        let plan = Plan::new(&experiment, "source").unwrap();
        let scores = plan.steps.iter().filter(|planned| matches!(planned.step, Step::Scores(_)));
        assert_eq!(scores.map(|planned| &planned.name).collect::<Vec<_>>(), ["scores mapped t0.9"]);
        let branches = plan.steps.iter().filter_map(|planned| match &planned.step {
            Step::Branch(branch) => Some(branch),
            _ => None,
        });
        let made: Vec<_> = branches
            .map(|branch| {
                let recipe = branch.objective.recipe(&experiment.branch);
                (branch.scoring.is_some(), recipe.temperature, recipe.weights.min)
            })
            .collect();
        let (plain, raised) = ((true, 0.9, 0.05), (true, 0.9, 0.2));
        assert_eq!(made, [(false, 0.9, 0.05), plain, raised, plain, raised]);
        // What is held against searches only rests on no scores.
        let calibration = Plan::calibration(&experiment, "source").unwrap();
        assert!(calibration.steps.iter().all(|p| !matches!(p.step, Step::Scores(_))));
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
