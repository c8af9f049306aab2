//! Computes cells: opens or resumes their logs, searches what is left, settles them. The command
//! line and whole studies build their cells here, so that both give the same files.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamount_base::Progress;
use catamount_search::{Deployment, Environment, Policy};

use crate::cell::{Cell, CellError};
use crate::driver::{CellEvent, Finished, Plan, Searches, Workload, search};
use crate::identity::{CellIdentity, FORMAT, Limits};
use crate::log::{Manifest, Outcome, Provenance, Record};
use crate::pool::Theorems;
use crate::redraw;
use crate::timing::Timing;

/// A cell to search.
#[derive(Clone, Debug)]
pub struct CellTask {
    /// Its log.
    pub log: PathBuf,
    /// What the policy was trained with, as tables call it.
    pub objective: String,
    /// The search.
    pub deployment: Deployment,
    /// The theorems.
    pub theorems: Theorems,
}

/// A cell after a run.
#[derive(Clone, Debug)]
pub struct CellRun {
    /// Every record of the pool so far, in the pool's order.
    pub records: Vec<Record>,
    /// False if the run was stopped before the end.
    pub complete: bool,
    /// Where this run's time went.
    pub timing: Timing,
}

impl CellRun {
    /// Theorems that ended so.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.records.iter().filter(|record| record.outcome == outcome).count()
    }
}

/// Whoever wants to know how an evaluation goes; a cell is named by its place among the tasks.
pub trait Observer {
    /// A cell's log is open; so many of its theorems were done before.
    fn opened(&mut self, cell: usize, done: usize) {
        let _ = (cell, done);
    }
    /// A theorem is done.
    fn finished(&mut self, cell: usize, finished: &Finished) {
        let _ = (cell, finished);
    }
    /// A cell has ended, or stands as it was stopped.
    fn ended(&mut self, cell: usize, run: &CellRun) {
        let _ = (cell, run);
    }
}

/// Nobody does.
impl Observer for () {}

/// What cells that are searched together share.
pub struct Evaluation<'a> {
    /// The prover.
    pub environment: &'a Arc<dyn Environment>,
    /// Where tactics come from, set up to be sampled as the deployments say.
    pub policy: &'a mut dyn Policy,
    /// Seed of every random stream.
    pub seed: u64,
    /// Wall-clock cap per search.
    pub time_limit: Option<Duration>,
    /// Wall-clock cap per theorem over several strategies; jobs say what is left of it.
    pub theorem_time_limit: Option<Duration>,
    /// How much is done at once.
    pub workload: Workload,
    /// For manifests.
    pub provenance: Provenance,
    /// Set to stop.
    pub stop: &'a AtomicBool,
}

impl Evaluation<'_> {
    /// Searches cells to their end, or until it is stopped, in their order and without a pause
    /// between them. Results so far stand in the logs, whatever happens.
    pub fn run(
        &mut self,
        tasks: &[CellTask],
        observer: &mut dyn Observer,
    ) -> Result<Vec<CellRun>, CellError> {
        let mut open = Vec::new();
        let mut searches = Vec::new();
        let bar = Bar::new(tasks);
        for (index, task) in tasks.iter().enumerate() {
            let trees = task.theorems.jobs.iter().any(|job| job.tree);
            let cell = Cell::open(&task.log, &self.manifest(task), trees)?;
            let left = left(task, &cell);
            let done = task.theorems.jobs.len() - left.len();
            bar.resumed(done, cell.records().values());
            observer.opened(index, done);
            searches.push(Searches { plan: self.plan(task), jobs: left });
            open.push(Some(cell));
        }
        let mut runs: Vec<Option<CellRun>> = tasks.iter().map(|_| None).collect();
        let mut failure = None;
        let mut watch = |event| {
            let result = match event {
                CellEvent::Finished(index, finished) => {
                    bar.finished(&finished);
                    observer.finished(index, &finished);
                    open[index].as_mut().map_or(Ok(()), |cell| cell.append(*finished))
                }
                CellEvent::Ended(index, timing) => match open[index].take() {
                    Some(cell) => end(&tasks[index], cell, timing, true).map(|run| {
                        bar.progress.suspended(|| observer.ended(index, &run));
                        runs[index] = Some(run);
                    }),
                    None => Ok(()),
                },
            };
            if let Err(error) = result {
                failure.get_or_insert(error);
                self.stop.store(true, Ordering::Relaxed);
            }
        };
        let timings =
            search(self.environment, self.policy, searches, self.workload, self.stop, &mut watch);
        bar.progress.finish();
        if let Some(error) = failure {
            return Err(error);
        }
        for (index, (cell, timing)) in open.into_iter().zip(timings).enumerate() {
            if let Some(cell) = cell {
                let run = end(&tasks[index], cell, timing, false)?;
                observer.ended(index, &run);
                runs[index] = Some(run);
            }
        }
        Ok(runs.into_iter().flatten().collect())
    }

    /// What a cell of this evaluation is a function of, and how it is made.
    pub fn manifest(&self, task: &CellTask) -> Manifest {
        let seconds = |limit: Option<Duration>| limit.map(|limit| limit.as_secs_f64());
        Manifest {
            identity: CellIdentity {
                format: FORMAT,
                policy: self.policy.identity(),
                environment: self.environment.identity(),
                pool: task.theorems.content.clone(),
                deployment: task.deployment.clone(),
                seed: self.seed,
                limits: Limits {
                    search: seconds(self.time_limit),
                    theorem: seconds(self.theorem_time_limit),
                },
            },
            objective: task.objective.clone(),
            policy: redraw::describe(&*self.policy, &task.deployment),
            environment: self.environment.describe(),
            setup: self.environment.setup(),
            pool: task.theorems.pool.clone(),
            provenance: self.provenance.clone(),
        }
    }

    fn plan(&self, task: &CellTask) -> Plan {
        let deployment = task.deployment.clone();
        Plan { deployment, seed: self.seed, time_limit: self.time_limit }
    }
}

/// The theorems that are still to be searched, file by file: a prover that has to load a theorem's
/// file then loads each once.
fn left(task: &CellTask, cell: &Cell) -> Vec<crate::driver::Job> {
    let completed = cell.completed();
    let jobs = task.theorems.jobs.iter();
    let mut left: Vec<_> =
        jobs.filter(|job| !completed.contains(job.theorem.name.as_str())).cloned().collect();
    left.sort_by(|a, b| (&a.theorem.file, a.theorem.line).cmp(&(&b.theorem.file, b.theorem.line)));
    left
}

fn end(task: &CellTask, cell: Cell, timing: Timing, complete: bool) -> Result<CellRun, CellError> {
    let order = &task.theorems.pool.names;
    let records = order.iter().filter_map(|name| cell.records().get(name)).cloned().collect();
    cell.add_timing(timing)?;
    if complete {
        cell.settle(order)?;
    }
    Ok(CellRun { records, complete, timing })
}

/// The bar over all cells.
struct Bar {
    progress: Progress,
    counts: std::cell::Cell<(u64, usize)>,
}

impl Bar {
    fn new(tasks: &[CellTask]) -> Self {
        let theorems = tasks.iter().map(|task| task.theorems.jobs.len() as u64).sum();
        Bar { progress: Progress::new(theorems, "theorems"), counts: Default::default() }
    }

    fn resumed<'a>(&self, done: usize, records: impl Iterator<Item = &'a Record>) {
        let (before, proved) = self.counts.get();
        let more = records.filter(|record| record.outcome == Outcome::Proved).count();
        self.counts.set((before + done as u64, proved + more));
        self.progress.resumed_at(self.counts.get().0);
    }

    fn finished(&self, finished: &Finished) {
        let (done, proved) = self.counts.get();
        let proved = proved + usize::from(finished.record.outcome == Outcome::Proved);
        self.counts.set((done + 1, proved));
        self.progress.set_message(format!("{proved} proved"));
        self.progress.advance(1);
    }
}
