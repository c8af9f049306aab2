//! Many searches at once, by the crates' driver.

use std::sync::PoisonError;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use catamount_evaluate::driver::{CellEvent, Finished, Job, Plan, Searches, Workload};
use catamount_search::{Deployment, Overrides, Policy, StrategyKind, Stream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::cell::{Cell, Result};
use crate::environment::Environment;
use crate::log::cell_error;
use crate::policy::{Callable, Interruption, NativePolicy};
use crate::threads;
use crate::traces::{Entry, shape_error, to_json};

/// How every theorem is searched, as it crosses the border.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Terms {
    deployment: Deployment,
    seed: u64,
    time_limit: Option<f64>,
    concurrency: usize,
    threads: Option<usize>,
    trees: bool,
    batch: usize,
    policy: String,
}

/// A strategy at a budget with some settings changed, checked and with every default filled in, as
/// JSON.
#[pyfunction]
pub fn deployment(strategy: &str, budget: u64, changes: &str) -> PyResult<String> {
    let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let strategy: StrategyKind = strategy.parse().map_err(|error| wrong(&error))?;
    let changes: Overrides = serde_json::from_str(changes).map_err(shape_error)?;
    let deployment = Deployment::overridden(strategy, budget, &changes);
    to_json(&deployment.map_err(|error| wrong(&error))?)
}

/// The n-th uniform number, in [0, 1), of the random stream that a question's seed names.
#[pyfunction]
pub fn uniform(seed: u64, n: u64) -> f64 {
    Stream(seed).uniform(n)
}

/// Does the work on a thread of its own and looks for signals meanwhile: Python handles them on its
/// first thread only, and the policy and the searches have theirs.
fn watched<T: Send>(interruption: &Interruption, work: impl FnOnce() -> T + Send) -> T {
    let (done, result) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || done.send(work()));
        loop {
            match result.recv_timeout(Duration::from_millis(50)) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) => interruption.check_signals(),
                Err(RecvTimeoutError::Disconnected) => panic!("the searches' thread panicked"),
            }
        }
    })
}

/// Searches theorems (as JSON). Results go to the cell, if one is given, and as JSON to `finished`,
/// if that is given. Answers the seconds spent sampling, waiting for the prover, and in all.
#[pyfunction]
#[pyo3(signature = (environment, policy, theorems, terms, cell=None, finished=None))]
pub fn run(
    py: Python<'_>,
    environment: &Environment,
    policy: &Bound<'_, PyAny>,
    theorems: &str,
    terms: &str,
    cell: Option<&Cell>,
    finished: Option<Py<PyAny>>,
) -> PyResult<(f64, f64, f64)> {
    let terms: Terms = serde_json::from_str(terms).map_err(shape_error)?;
    let entries: Vec<Entry> = serde_json::from_str(theorems).map_err(shape_error)?;
    let jobs: Vec<Job> = entries
        .into_iter()
        .map(|Entry { theorem, demonstrated }| Job {
            theorem,
            demonstrated,
            time_left: None,
            tree: terms.trees,
        })
        .collect();
    let time_limit = terms.time_limit.map(Duration::try_from_secs_f64).transpose();
    let plan = Plan {
        deployment: terms.deployment,
        seed: terms.seed,
        time_limit: time_limit
            .map_err(|error| PyValueError::new_err(format!("time_limit: {error}")))?,
    };
    let threads = terms.threads.unwrap_or(threads::pool()?.current_num_threads());
    let workload = Workload { concurrency: terms.concurrency, threads };
    let interruption = Interruption::default();
    // A server of the policy's may be a thread of this interpreter: it has to have its turn while
    // the policy is opened, asked and closed.
    let policy: Box<dyn Policy> = match policy.cast::<NativePolicy>() {
        Ok(native) => {
            let native = native.get();
            py.detach(|| native.open())?
        }
        Err(_) => Box::new(Callable {
            function: policy.clone().unbind(),
            name: terms.policy,
            batch: terms.batch,
            interruption: interruption.clone(),
            pending: Vec::new(),
        }),
    };
    let (environment, cell) = (environment.0.clone(), cell.map(Cell::handle));
    let done = |result: Finished| {
        if let Some(finished) = &finished {
            let told = to_json(&Result::from(result.clone()))
                .and_then(|text| Python::attach(|py| finished.call1(py, (text,)).map(|_| ())));
            if let Err(error) = told {
                interruption.raise(error);
            }
        }
        if let Some(cell) = &cell
            && let Some(cell) = cell.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
            && let Err(error) = cell.append(result)
        {
            interruption.raise(cell_error(error));
        }
    };
    let mut watch = |event| {
        if let CellEvent::Finished(_, result) = event {
            done(*result);
        }
    };
    let cells = vec![Searches { plan, jobs }];
    let timings = py.detach(|| {
        let mut policy = policy;
        watched(&interruption, || {
            catamount_evaluate::driver::search(
                &environment,
                policy.as_mut(),
                cells,
                workload,
                &interruption.stop,
                &mut watch,
            )
        })
    });
    if let Some(error) = interruption.take() {
        return Err(error);
    }
    let timing = timings.into_iter().next().unwrap_or_default();
    if let Some(cell) = &cell
        && let Some(cell) = cell.lock().unwrap_or_else(PoisonError::into_inner).as_ref()
    {
        cell.add_timing(timing).map_err(cell_error)?;
    }
    Ok((timing.policy, timing.waiting, timing.total))
}
