//! The steps of an experiment, what each depends on, and which are up to date.

use std::collections::HashMap;
use std::path::Path;

use catamount_objective::Objective;
use catamount_search::StrategyKind;

use crate::config::{Cells, Experiment, ObjectiveChoice, PriorChoice};
use crate::stamp;

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum StepKind {
    /// Traces, split.
    Data,
    /// The common ancestor.
    WarmUp,
    /// Searches with the warm-up model on validation theorems, to measure kappa, q and bypass under
    /// one strategy.
    OffTrace {
        /// The strategy.
        strategy: StrategyKind,
        /// Its budget.
        budget: u64,
    },
    /// One objective's branch.
    Branch {
        /// The objective.
        choice: ObjectiveChoice,
        /// Expansions it is trained for.
        budget: u64,
    },
    /// One (objective, strategy, budget).
    Cell {
        /// The branch's step.
        branch: String,
        /// The objective's name in tables.
        objective: String,
        /// The deployed strategy.
        strategy: StrategyKind,
        /// Expansions per theorem.
        budget: u64,
    },
    /// Tables, figures, page.
    Report,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Unique; also names its files.
    pub name: String,
    /// What it does.
    pub kind: StepKind,
    /// Steps that come first.
    pub after: Vec<String>,
    /// Hash of everything its outcome depends on.
    pub key: String,
}

/// All steps, in an order in which they can be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Plan {
    /// The plan of an experiment. `source` identifies the data itself: the hash of a database or of
    /// a file of traces.
    pub fn new(experiment: &Experiment, source: &str) -> Self {
        let mut plan = Plan { steps: Vec::new() };
        plan.push(
            "data",
            StepKind::Data,
            &[],
            &[&json(&experiment.data), &experiment.seed.to_string(), source],
        );
        let model = json(&experiment.model);
        plan.push(
            "warm-up",
            StepKind::WarmUp,
            &["data"],
            &[&model, &json(&experiment.warm_up), &experiment.seed.to_string()],
        );
        let evaluation = &experiment.evaluation;
        let (searches, measures) = (searching(experiment), measuring(experiment));
        let mut cells = Vec::new();
        for choice in &experiment.objectives {
            let objective = choice.objective().expect("checked when the file was read");
            let budgets = match (objective, choice.budget) {
                (Objective::Ce, _) => vec![0],
                (_, Some(budget)) => vec![budget],
                (_, None) => evaluation.budgets.clone(),
            };
            for &budget in &budgets {
                let several = budgets.len() > 1;
                let name =
                    if several { format!("{}-n{budget}", choice.label()) } else { choice.label() };
                let mut after = vec!["warm-up".to_string()];
                if matches!(&choice.prior, Some(PriorChoice::Named(_))) {
                    // A search-agnostic objective has no strategy to measure; the file's check
                    // refuses it.
                    if let Ok(strategy) = objective.name().parse() {
                        after.push(plan.off_trace(strategy, budget, &measures));
                    }
                }
                let after: Vec<&str> = after.iter().map(String::as_str).collect();
                let kind = StepKind::Branch { choice: choice.clone(), budget };
                plan.push(
                    &format!("branch {name}"),
                    kind,
                    &after,
                    &[&json(&experiment.branch), &json(choice), &budget.to_string()],
                );
                for &deployed in &evaluation.budgets {
                    // Budget-matched adapters are evaluated at their own budget only.
                    if several && deployed != budget {
                        continue;
                    }
                    for &strategy in &evaluation.strategies {
                        if evaluation.cells == Cells::All || made_for(objective, strategy) {
                            cells.push((
                                format!("branch {name}"),
                                choice.label(),
                                strategy,
                                deployed,
                            ));
                        }
                    }
                }
            }
        }
        let mut all = Vec::new();
        for (branch, objective, strategy, budget) in cells {
            let name = format!("cell {objective} {strategy} n{budget}");
            all.push(name.clone());
            let kind = StepKind::Cell { branch: branch.clone(), objective, strategy, budget };
            plan.push(&name, kind, &[&branch], &[&searches, strategy.name(), &budget.to_string()]);
        }
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        plan.push("report", StepKind::Report, &all, &[&experiment.name]);
        plan
    }

    fn off_trace(&mut self, strategy: StrategyKind, budget: u64, measures: &str) -> String {
        let name = format!("off-trace {strategy} n{budget}");
        if !self.steps.iter().any(|step| step.name == name) {
            let kind = StepKind::OffTrace { strategy, budget };
            self.push(&name, kind, &["warm-up"], &[measures]);
        }
        name
    }

    fn push(&mut self, name: &str, kind: StepKind, after: &[&str], inputs: &[&str]) {
        let keys: HashMap<&str, &str> =
            self.steps.iter().map(|step| (step.name.as_str(), step.key.as_str())).collect();
        let mut hasher = blake3::Hasher::new();
        // A new version of a step's output format is a new outcome.
        for part in [env!("CARGO_PKG_VERSION"), name].into_iter().chain(inputs.iter().copied()) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        for step in after {
            hasher.update(keys[step].as_bytes());
        }
        let key = hasher.finalize().to_hex()[..16].to_string();
        let after = after.iter().map(|step| (*step).to_string()).collect();
        self.steps.push(Step { name: name.to_string(), kind, after, key });
    }

    /// The steps that still have to be done in this folder, in order. The report takes seconds and
    /// is always made anew.
    pub fn outstanding(&self, folder: &Path) -> Vec<&Step> {
        self.steps
            .iter()
            .filter(|step| step.kind == StepKind::Report || !stamp::is_done(folder, step))
            .collect()
    }

    /// The plan as text: every step, whether it is up to date, and what it costs: how long it took
    /// last time, or how much work it is.
    pub fn describe(&self, experiment: &Experiment, folder: &Path) -> String {
        let mut text = String::new();
        let (mut known, mut unknown) = (0.0, 0);
        for step in &self.steps {
            let done = stamp::is_done(folder, step);
            let last = stamp::last_seconds(folder, step);
            if !done {
                known += last.unwrap_or(0.0);
                unknown += usize::from(last.is_none());
            }
            let cost = match last {
                Some(seconds) => format!("{seconds:.0} s last time"),
                None => work(experiment, step),
            };
            let state = if done { "up to date" } else { "to do" };
            text.push_str(&format!("{state:<11} {:<28} {cost}\n", step.name));
        }
        text.push_str(&format!("{known:.0} s for the steps that were timed before"));
        if unknown > 0 {
            text.push_str(&format!("; {unknown} steps have never run here"));
        }
        text.push('\n');
        text
    }

    /// A step by name.
    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }
}

/// Everything that an off-trace measurement depends on besides its model, strategy and budget: it
/// has a pool of its own.
fn measuring(experiment: &Experiment) -> String {
    let evaluation = &experiment.evaluation;
    let parts = (
        (
            &evaluation.search,
            evaluation.temperature,
            evaluation.max_tokens,
            evaluation.steps.to_string(),
        ),
        (evaluation.time_limit, evaluation.theorem_time_limit, experiment.seed),
    );
    json(&parts)
}

/// Everything a cell's outcome depends on besides its model, strategy and budget.
fn searching(experiment: &Experiment) -> String {
    let evaluation = &experiment.evaluation;
    let parts = (
        (
            &evaluation.search,
            evaluation.temperature,
            evaluation.max_tokens,
            evaluation.limit,
            evaluation.steps.to_string(),
        ),
        (evaluation.time_limit, evaluation.theorem_time_limit, experiment.seed, evaluation.trees),
    );
    json(&parts)
}

/// How much work a step is, where it was never timed.
fn work(experiment: &Experiment, step: &Step) -> String {
    let theorems = experiment.evaluation.limit.map_or("all".to_string(), |limit| limit.to_string());
    let traces =
        experiment.data.limit.map_or("all".to_string(), |limit| format!("at most {limit}"));
    match &step.kind {
        StepKind::Data => "extract, replay and split".to_string(),
        StepKind::WarmUp => format!("{} epochs over {traces} traces", experiment.warm_up.epochs),
        StepKind::Branch { .. } => {
            format!("{} epochs over {traces} traces", experiment.branch.epochs)
        }
        StepKind::OffTrace { budget, .. } => {
            format!("up to {budget} expansions for each of 200 validation theorems")
        }
        StepKind::Cell { budget, .. } => {
            format!("up to {budget} expansions for each of {theorems} theorems")
        }
        StepKind::Report => "seconds".to_string(),
    }
}

/// Whether an objective belongs under a strategy: the search-agnostic ones everywhere, the others
/// under the strategies they model.
fn made_for(objective: Objective, strategy: StrategyKind) -> bool {
    matches!(objective, Objective::Ce | Objective::Ua) || strategy.is_modelled_by(objective.name())
}

/// Settings as text, which is how they enter a key.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("settings are plain data")
}
