//! A plan for people: what is done, and what the rest costs.

use std::path::Path;

use catamount_search::Deployment;
use catamount_train::Recipe;

use crate::error::Result;
use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::stamp::Stamps;
use crate::step::Step;
use crate::workload::Workload;

impl Plan {
    /// The plan as text: every step, whether it is up to date, and what it costs: how long it took
    /// last time, or how much work it is; and what that assumes.
    pub fn describe(
        &self,
        experiment: &Experiment,
        workload: &Workload<'_>,
        folder: &Path,
    ) -> Result<String> {
        let stamps = Stamps::new(folder);
        let mut text = String::new();
        let (mut known, mut unknown) = (0.0, 0);
        let width = self.steps.iter().map(|planned| planned.name.chars().count()).max();
        let width = width.unwrap_or(0);
        let mut assumptions: Vec<String> = Vec::new();
        for planned in &self.steps {
            let done = stamps.is_done(planned);
            let last = stamps.last_seconds(planned);
            if !done {
                known += last.unwrap_or(0.0);
                unknown += usize::from(last.is_none());
            }
            let updates = workload.updates(&planned.step)?;
            let cost = match (last, &updates) {
                (Some(seconds), _) => format!("{seconds:.0} s last time"),
                (None, Some(updates)) => {
                    assumptions.extend(updates.assuming.clone());
                    format!("{updates}, {}", work(experiment, &planned.step))
                }
                (None, None) => work(experiment, &planned.step),
            };
            let state = if done { "up to date" } else { "to do" };
            text.push_str(&format!("{state:<11} {:<width$} {cost}\n", planned.name));
        }
        text.push_str(&match unknown {
            0 => format!("{known:.0} s for the steps that were timed before\n"),
            _ if known == 0.0 => "no timings yet\n".to_string(),
            1 => {
                format!("{known:.0} s for the steps that were timed before; 1 has no timing yet\n")
            }
            _ => format!(
                "{known:.0} s for the steps that were timed before; {unknown} have no timings yet\n"
            ),
        });
        assumptions.dedup();
        for assumption in assumptions {
            text.push_str(&format!("optimizer steps: {assumption}\n"));
        }
        Ok(text)
    }
}

/// How long a recipe trains: it ends with its epochs, or its steps, whichever comes first.
fn training(recipe: &Recipe, traces: &str) -> String {
    let steps = recipe.max_steps.map(|steps| format!(", capped at {steps} steps"));
    let epochs = if recipe.epochs == 1 { "epoch" } else { "epochs" };
    format!("{} {epochs} over {traces}{}", recipe.epochs, steps.unwrap_or_default())
}

/// How much work a step is, where it was never timed.
fn work(experiment: &Experiment, step: &Step) -> String {
    let theorems = experiment.evaluation.limit.map_or("all".to_string(), |limit| limit.to_string());
    let traces =
        experiment.data.limit.map_or("all".to_string(), |limit| format!("at most {limit}"));
    let expansions = |deployment: &Deployment, theorems: String| {
        format!("up to {} expansions for each of {theorems} theorems", deployment.budget())
    };
    match step {
        Step::Data => "extract, replay and split".to_string(),
        Step::WarmUp => training(&experiment.warm_up, &format!("{traces} traces")),
        Step::Fold(fold) => {
            let parts = format!("{} of {} parts of {traces} traces", fold.of - 1, fold.of);
            training(&experiment.warm_up, &parts)
        }
        Step::Scores(_) => "a pass over training and validation traces".to_string(),
        Step::Branch(_) => training(&experiment.branch, &format!("{traces} traces")),
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
