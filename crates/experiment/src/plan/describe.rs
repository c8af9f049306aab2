//! A plan for people: what is done, and what the rest costs.

use std::path::Path;

use catamount_search::Deployment;

use super::Plan;
use crate::experiment::Experiment;
use crate::stamp::Stamps;
use crate::step::Step;

impl Plan {
    /// The plan as text: every step, whether it is up to date, and what it costs: how long it took
    /// last time, or how much work it is.
    pub fn describe(&self, experiment: &Experiment, folder: &Path) -> String {
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
