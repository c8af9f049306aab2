//! Computes cells: opens or resumes their logs, searches what is left, settles them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catamount_search::{Environment, Policy};

use crate::cell::{Cell, CellError};
use crate::driver::{Finished, Happened, Plan, Searches, Spent, search_cells};
use crate::log::{Manifest, Outcome, Record};
use crate::pool::Theorems;

/// A cell after a run.
#[derive(Clone, Debug)]
pub struct CellRun {
    /// Every record of the pool so far, in the pool's order.
    pub records: Vec<Record>,
    /// False if the run was stopped before the end.
    pub complete: bool,
    /// Where this run's time went.
    pub spent: Spent,
}

impl CellRun {
    /// Theorems that ended so.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.records.iter().filter(|record| record.outcome == outcome).count()
    }
}

/// A cell to run.
#[derive(Clone, Copy, Debug)]
pub struct CellTask<'a> {
    /// Its log.
    pub log: &'a Path,
    /// What it is a function of.
    pub manifest: &'a Manifest,
    /// Its pool.
    pub theorems: &'a Theorems,
    /// How each theorem is searched.
    pub plan: &'a Plan,
}

/// Runs a cell to its end, or until `stop`. `watch` sees every finished theorem, and first how many
/// were done before.
#[allow(clippy::too_many_arguments, reason = "a cell is a function of this many things")]
pub fn run_cell(
    log: &Path,
    manifest: &Manifest,
    environment: &Arc<dyn Environment>,
    policy: &mut dyn Policy,
    theorems: &Theorems,
    plan: &Plan,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Watched<'_>),
) -> Result<CellRun, CellError> {
    let task = CellTask { log, manifest, theorems, plan };
    let mut run = None;
    run_cells(
        &[task],
        environment,
        policy,
        stop,
        &mut |_, watched| watch(watched),
        &mut |_, ended| run = Some(ended),
    )?;
    Ok(run.expect("the cell has ended, complete or not"))
}

/// Runs several cells that share a policy, without a pause between them: see [`search_cells`].
/// `ended` gets every cell as it ends, or as it stands if it was stopped.
pub fn run_cells(
    tasks: &[CellTask<'_>],
    environment: &Arc<dyn Environment>,
    policy: &mut dyn Policy,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(usize, Watched<'_>),
    ended: &mut dyn FnMut(usize, CellRun),
) -> Result<(), CellError> {
    let mut cells = Vec::new();
    let mut searches = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let cell =
            Cell::open(task.log, task.manifest, task.theorems.jobs.iter().any(|job| job.tree))?;
        let completed = cell.completed();
        let jobs = task.theorems.jobs.iter();
        let mut left: Vec<_> =
            jobs.filter(|job| !completed.contains(job.theorem.name.as_str())).cloned().collect();
        // File by file: a prover that has to load a theorem's file then loads each once.
        left.sort_by(|a, b| a.theorem.file.cmp(&b.theorem.file));
        let proved =
            cell.records().values().filter(|record| record.outcome == Outcome::Proved).count();
        watch(index, Watched::Before { done: task.theorems.jobs.len() - left.len(), proved });
        searches.push(Searches { plan: task.plan.clone(), jobs: left });
        cells.push(Some(cell));
    }
    let mut failure = None;
    let mut happened = |what| {
        let result = match what {
            Happened::Finished(index, finished) => {
                watch(index, Watched::Finished(&finished));
                cells[index].as_mut().map_or(Ok(()), |cell| cell.append(*finished))
            }
            Happened::Ended(index, spent) => match cells[index].take() {
                Some(cell) => end(&tasks[index], cell, spent, true).map(|run| ended(index, run)),
                None => Ok(()),
            },
        };
        if let Err(error) = result {
            failure.get_or_insert(error);
            stop.store(true, Ordering::Relaxed);
        }
    };
    let spent = search_cells(environment, policy, searches, stop, &mut happened);
    if let Some(error) = failure {
        return Err(error);
    }
    for (index, (cell, spent)) in cells.into_iter().zip(spent).enumerate() {
        if let Some(cell) = cell {
            ended(index, end(&tasks[index], cell, spent, false)?);
        }
    }
    Ok(())
}

fn end(
    task: &CellTask<'_>,
    cell: Cell,
    spent: Spent,
    complete: bool,
) -> Result<CellRun, CellError> {
    let order = task.theorems.names();
    let records = order.iter().filter_map(|name| cell.records().get(name)).cloned().collect();
    cell.add_spent(spent)?;
    if complete {
        cell.settle(&order)?;
    }
    Ok(CellRun { records, complete, spent })
}

/// What a watcher of a cell sees.
pub enum Watched<'a> {
    /// The state the log was in.
    Before {
        /// Theorems that need no search.
        done: usize,
        /// Of these, proved.
        proved: usize,
    },
    /// One more theorem.
    Finished(&'a Finished),
}
