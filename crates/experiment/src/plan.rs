//! The steps of an experiment in an order in which they can be done, and the key of each: a hash of
//! everything its outcome depends on.

mod cells;
mod training;

use catamount_base::Content;
use catamount_objective::Objective;
use catamount_report::TUNED;
use serde_json::json;

use self::cells::{deployed, held_out};
use crate::error::{Error, Result};
use crate::experiment::{Experiment, ObjectiveChoice, PriorChoice};
use crate::file::AUTO;
use crate::inputs::Inputs;
use crate::planned::Planned;
use crate::step::{Cell, Chosen, Step, Trained};

/// All steps, in an order in which they can be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Planned>,
}

impl Plan {
    /// The plan of an experiment that begins from these data and this model.
    pub fn new(experiment: &Experiment, inputs: &Inputs) -> Result<Self> {
        let (mut plan, roots) = Plan::begun(experiment, inputs);
        let budgets = &experiment.evaluation.budgets;
        let (mut cells, mut controls) = (Vec::new(), Vec::new());
        for choice in &experiment.objectives {
            // Objectives that differ in their deployments only share a branch.
            let trains = |other: &&ObjectiveChoice| choice.trains_as(other);
            let trains = experiment.objectives.iter().find(trains).unwrap_or(choice);
            let trained_for = choice.budgets(budgets);
            let several = trained_for.len() > 1;
            for budget in trained_for {
                let trained = Trained::branch(&trains.name, several.then_some(budget));
                let key = plan.branch(experiment, trains, budget, &trained, &roots)?;
                let control = (trained.clone(), key.clone());
                if choice.objective == Objective::Ce && !controls.contains(&control) {
                    controls.push(control);
                }
                cells.extend(
                    deployed(experiment, choice, several.then_some(budget))?.into_iter().map(
                        |deployment| {
                            let objective = choice.row.clone();
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
        let held_out = held_out(experiment, &roots.searched);
        let mut all = Vec::new();
        for (cell, branch) in cells {
            let inputs = json!([held_out, cell.deployment]);
            all.push(plan.push(Step::Cell(cell), &[&branch], inputs));
        }
        for (tournament, key) in tournaments {
            for (objective, control) in [(TUNED, true), (AUTO, false)] {
                let (objective, tournament) = (objective.to_string(), tournament.clone());
                let chosen = Step::Chosen(Chosen { objective, tournament, control });
                all.push(plan.push(chosen, &[&key], held_out.clone()));
            }
        }
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        plan.push(Step::Report, &all, json!(experiment.name));
        Ok(plan)
    }

    /// Only what is needed to hold surrogates against searches: every strategy's own, and `ua`.
    pub fn calibration(experiment: &Experiment, inputs: &Inputs) -> Result<Self> {
        let (mut plan, roots) = Plan::begun(experiment, inputs);
        let evaluation = &experiment.evaluation;
        for &budget in &evaluation.budgets {
            let own = evaluation.strategies.iter().map(|strategy| strategy.objective());
            for objective in own.chain([Objective::Ua]) {
                let name = objective.to_string();
                let (prior, temperature) =
                    (PriorChoice::Fitted, experiment.file.evaluation.temperature);
                let choice = experiment.choice(name, objective, budget, prior, temperature)?;
                plan.fit(experiment, &choice, budget, &roots)?;
            }
        }
        Ok(plan)
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
        let after = after.iter().map(ToString::to_string).collect();
        self.steps.push(Planned { step, name, key: key.clone(), after });
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

    /// A step by its id.
    pub fn step(&self, id: &str) -> Result<&Planned> {
        let found = self.steps.iter().find(|planned| planned.step.id() == id);
        found.ok_or_else(|| {
            let ids: Vec<String> = self.steps.iter().map(|planned| planned.step.id()).collect();
            let near = catamount_base::nearest(id, ids.iter().map(String::as_str));
            let hint = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            Error::NoStep { id: id.to_string(), hint }
        })
    }

    /// The steps whose outputs a step reads: those before it, and the data, which all of them read.
    pub(crate) fn needs(&self, planned: &Planned) -> impl Iterator<Item = &Planned> {
        let read = |other: &&Planned| {
            let data = other.step == Step::Data && planned.step != Step::Data;
            data || planned.after.contains(&other.key)
        };
        self.steps.iter().filter(read)
    }

    /// The cells, in order.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.steps.iter().filter_map(|planned| match &planned.step {
            Step::Cell(cell) => Some(cell),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
