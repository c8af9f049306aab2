//! Computes a cell: opens or resumes its log, searches what is left, settles it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catamount_search::{Environment, Policy, UnknownStrategy};

use crate::cell::{Cell, CellError};
use crate::driver::{Finished, Plan, Spent, search_all};
use crate::log::{Manifest, Outcome, Record};
use crate::pool::Theorems;

/// What cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The files.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// The strategy.
    #[error(transparent)]
    Strategy(#[from] UnknownStrategy),
}

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

/// Runs a cell to its end, or until `stop`. `watch` sees every finished theorem, and first how many were done before.
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
) -> Result<CellRun, RunError> {
    let mut cell = Cell::open(log, manifest, theorems.jobs.iter().any(|job| job.tree))?;
    let order = theorems.names();
    let completed = cell.completed();
    let mut left: Vec<_> = theorems.jobs.iter().filter(|job| !completed.contains(job.theorem.name.as_str())).cloned().collect();
    // File by file: a prover that has to load a theorem's file then loads each once.
    left.sort_by(|a, b| a.theorem.file.cmp(&b.theorem.file));
    let proved = cell.records().values().filter(|record| record.outcome == Outcome::Proved).count();
    watch(Watched::Before { done: order.len() - left.len(), proved });
    let mut failure = None;
    let mut done = |finished: Finished| {
        watch(Watched::Finished(&finished));
        if let Err(error) = cell.append(finished) {
            failure.get_or_insert(error);
            stop.store(true, Ordering::Relaxed);
        }
    };
    let spent = search_all(environment, policy, left, plan, stop, &mut done)?;
    if let Some(error) = failure {
        return Err(error.into());
    }
    let records = order.iter().filter_map(|name| cell.records().get(name)).cloned().collect();
    let complete = !stop.load(Ordering::Relaxed);
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
