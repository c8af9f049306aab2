//! A search of a study once more. Searches are deterministic, so a tree that was not kept can be
//! had from the cell that would have it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use catamount_base::Lines;
use catamount_evaluate::Workload;
use catamount_evaluate::driver::{CellEvent, Finished, Plan as Searching, Searches, search};
use catamount_evaluate::log::{Record, TreeRecord};
use catamount_model::Backend;
use catamount_report::{PLAN, StudyPlan};
use catamount_search::{Environment, Policy};

use crate::cells::{Sampler, theorems};
use crate::error::{Error, Result, Work};
use crate::experiment::Experiment;
use crate::file::ExperimentFile;
use crate::inputs::Inputs;
use crate::plan::Plan;
use crate::step::Cell;
use crate::study::Study;

/// A study whose searches can be repeated. Nothing is written to its folder.
pub struct Again {
    experiment: Experiment,
    plan: Plan,
    folder: PathBuf,
    environment: Arc<dyn Environment>,
}

impl Again {
    /// Reads what a folder says of its study, and starts the prover.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(PLAN);
        let text = std::fs::read(&path).map_err(Error::io(&path))?;
        let unclear = |error: serde_json::Error| Error::File {
            path: path.clone(),
            reason: format!("{error}; run the study again with this version"),
        };
        let plan: StudyPlan = serde_json::from_slice(&text).map_err(unclear)?;
        let file: ExperimentFile = serde_json::from_value(plan.experiment).map_err(unclear)?;
        let experiment = Experiment::of(file, &path.display().to_string())?;
        // What is asked of it are the cells, and those do not depend on the data.
        let plan = Plan::new(&experiment, &Inputs::default())?;
        let environment = experiment.prover(folder, false)?;
        Ok(Again { experiment, plan, folder: folder.to_path_buf(), environment })
    }

    /// The tree of a theorem in the cell of a log. Refused if the search ends otherwise than the
    /// log says: it would be the tree of another search.
    pub fn tree<B: Backend>(
        &self,
        backend: Arc<B>,
        log: &Path,
        theorem: &str,
        stop: &AtomicBool,
    ) -> Result<TreeRecord> {
        let searched = self.search(backend, log, theorem, stop);
        searched.map_err(|failure| failure.in_step(&format!("searching {theorem} again")))
    }

    fn search<B: Backend>(
        &self,
        backend: Arc<B>,
        log: &Path,
        theorem: &str,
        stop: &AtomicBool,
    ) -> Work<TreeRecord> {
        let refuse = |reason: String| Error::File { path: log.to_path_buf(), reason };
        let cell = self.plan.cells().find(|cell| self.folder.join(cell.log()) == log);
        let Some(cell) = cell else {
            let reason = "is not the log of a cell that this study's file describes";
            return Err(refuse(reason.to_string()).into());
        };
        let lines = Lines::<Record>::read(log)?;
        let Some(record) = lines.into_iter().rfind(|record| record.theorem == theorem) else {
            return Err(refuse(format!("has no record of {theorem}")).into());
        };
        let environment = Arc::clone(&self.environment);
        let study = Study::to_read(&self.experiment, &self.folder, backend, environment, stop);
        let finished = match &self.experiment.policy {
            Some(server) => {
                let mut policy = server.open(&study, &cell.trained, &cell.deployment)?;
                self.once(&study, cell, theorem, &mut policy)?
            }
            None => {
                let mut sampler = Sampler::default();
                let policy = sampler.load(&study, &cell.trained, &cell.deployment)?;
                self.once(&study, cell, theorem, policy)?
            }
        };
        match finished {
            Some(Finished { record: now, tree: Some(tree), .. }) if ends_alike(&now, &record) => {
                Ok(tree)
            }
            Some(Finished { record: now, .. }) => {
                let ended = |record: &Record| {
                    let outcome = format!("{:?}", record.outcome).to_lowercase();
                    format!("{outcome} after {} expansions", record.expansions)
                };
                let reason = format!(
                    "says that the search of {theorem} ended as {}; searched again here it ends \
                     as {}. Search it on the device, and with the version, that made the log",
                    ended(&record),
                    ended(&now)
                );
                Err(refuse(reason).into())
            }
            None => Err(refuse(format!("has {theorem}, but the study's data has not")).into()),
        }
    }

    /// Searches one theorem of a cell.
    fn once<B: Backend>(
        &self,
        study: &Study<'_, B>,
        cell: &Cell,
        theorem: &str,
        policy: &mut dyn Policy,
    ) -> Work<Option<Finished>> {
        let mut jobs = theorems(study, "test", self.experiment.evaluation.limit)?.jobs;
        jobs.retain(|job| job.theorem.name == theorem);
        jobs.iter_mut().for_each(|job| job.tree = true);
        let (deployment, seed) = (cell.deployment.clone(), self.experiment.seed);
        let plan = Searching { deployment, seed, time_limit: None };
        let mut found = None;
        let workload = Workload { concurrency: 1, threads: 1 };
        let searches = vec![Searches { plan, jobs }];
        search(&study.environment, policy, searches, workload, study.stop, &mut |event| {
            if let CellEvent::Finished(_, finished) = event {
                found = Some(*finished);
            }
        });
        Ok(found)
    }
}

/// Whether two searches of a theorem came to the same end.
fn ends_alike(one: &Record, other: &Record) -> bool {
    (one.outcome, one.expansions, &one.tactics) == (other.outcome, other.expansions, &other.tactics)
}
