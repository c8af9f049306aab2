//! A plan as data: for whoever schedules its steps, and for whoever wants to look at it.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cells::batch;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::kind::Kind;
use crate::needs::Needs;
use crate::plan::Plan;
use crate::planned::Planned;
use crate::stamp::Stamps;
use crate::step::Step;
use crate::workload::{Updates, Workload};

/// A plan, and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outline {
    /// The experiment's name.
    pub experiment: String,
    /// The version that planned it.
    pub version: String,
    /// The seed, in a study of several.
    pub seed: u64,
    /// What is not there yet: all that must be found or fetched before a run. Without the data,
    /// keys are not the final ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The steps, in an order in which they can be done.
    pub steps: Vec<OutlinedStep>,
}

/// A step of an outline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutlinedStep {
    /// What `catamount step` calls it.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Hash of everything that its outcome depends on.
    pub key: String,
    /// The steps that must be done before, by their ids.
    pub after: Vec<String>,
    /// What it may read, by paths in the study's folder: all that the steps before it made.
    pub inputs: Vec<PathBuf>,
    /// What it makes, its stamp among it.
    pub outputs: Vec<PathBuf>,
    /// What it needs of a machine.
    pub needs: Needs,
    /// The model that it searches with, and how that is sampled: what has both in common is best
    /// done by one process, whose samples are drawn in one batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Expansions per theorem, where it searches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Optimizer steps, where it trains and somebody has counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<Updates>,
    /// Whether it is done, by the word of its stamp.
    pub done: bool,
    /// How long it took when it was last done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl Plan {
    /// The plan of a study in a folder, as data.
    pub fn outline(&self, experiment: &Experiment, folder: &Path) -> Outline {
        let stamps = Stamps::new(folder);
        let mut steps: Vec<OutlinedStep> = Vec::new();
        let ids: HashMap<&str, String> =
            self.steps.iter().map(|p| (p.key.as_str(), p.step.id())).collect();
        for planned in &self.steps {
            let mut after: BTreeSet<String> =
                planned.after.iter().filter_map(|key| ids.get(key.as_str()).cloned()).collect();
            after.extend(self.waited_for(experiment, planned));
            let before = |id: &String| steps.iter().find(|step| step.id == *id);
            let inputs: BTreeSet<PathBuf> = after
                .iter()
                .filter_map(before)
                .flat_map(|step| step.inputs.iter().chain(&step.outputs).cloned())
                .collect();
            steps.push(OutlinedStep {
                id: planned.step.id(),
                name: planned.name.clone(),
                kind: planned.step.kind(),
                key: planned.key.clone(),
                after: after.into_iter().collect(),
                inputs: inputs.into_iter().collect(),
                outputs: stamps.files(planned),
                needs: Needs::of(experiment, &planned.step),
                batch: batch(&planned.step),
                budget: planned.step.budget(),
                updates: None,
                done: stamps.is_done(planned),
                seconds: stamps.last_seconds(planned),
            });
        }
        let version = env!("CARGO_PKG_VERSION").to_string();
        let (name, seed) = (experiment.name.clone(), experiment.seed);
        Outline { experiment: name, version, seed, missing: Vec::new(), steps }
    }

    /// Whether nothing is left to do in a folder but the report, by the word of the stamps.
    pub fn is_done(&self, folder: &Path) -> bool {
        let stamps = Stamps::new(folder);
        self.steps.iter().all(|planned| planned.step == Step::Report || stamps.is_done(planned))
    }

    /// Steps that a cell waits for although its key has nothing of theirs: under a cap over several
    /// strategies, those before it have spent a part of it.
    fn waited_for(&self, experiment: &Experiment, planned: &Planned) -> Vec<String> {
        let Step::Cell(cell) = &planned.step else { return Vec::new() };
        if experiment.evaluation.theorem_time_limit.is_none() {
            return Vec::new();
        }
        let (budget, objective) = (cell.deployment.budget(), &cell.objective);
        let before = self.steps.iter().take_while(|other| *other != planned);
        let same = |other: &&Planned| match &other.step {
            Step::Cell(other) => {
                other.objective == *objective && other.deployment.budget() == budget
            }
            _ => false,
        };
        before.filter(same).map(|other| other.step.id()).collect()
    }
}

impl Outline {
    /// The same outline, with the optimizer steps of what trains.
    pub fn counted(mut self, plan: &Plan, workload: &Workload<'_>) -> Result<Self> {
        for (outlined, planned) in self.steps.iter_mut().zip(&plan.steps) {
            outlined.updates = workload.updates(&planned.step)?;
        }
        Ok(self)
    }

    /// The steps that stand between nothing and a step, itself left out.
    pub fn ancestors(&self, id: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let step = self.steps.iter().find(|step| step.id == id);
            for before in step.into_iter().flat_map(|step| &step.after) {
                if found.insert(before.as_str()) {
                    open.push(before);
                }
            }
        }
        found
    }
}
