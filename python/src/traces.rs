//! Traces and theorems: files, and the pool of an evaluation.

use std::collections::HashSet;
use std::path::PathBuf;

use catamount_evaluate::Theorems;
use catamount_metamath::{Database, Extraction};
use catamount_traces::{Steps, Trace, read_any, write_any};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

/// A theorem to search, as it crosses the border.
#[derive(Serialize, Deserialize)]
pub struct Entry {
    /// What to prove.
    pub theorem: catamount_traces::Theorem,
    /// Steps of the demonstrated proof, where known.
    pub demonstrated: Option<usize>,
}

/// Reading and writing fail with the file system's error or with what is wrong in the file.
fn trace_error(error: catamount_traces::Error) -> PyErr {
    match error {
        catamount_traces::Error::Io { .. } => PyOSError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// JSON from Python that does not have the shape it should have.
pub fn shape_error(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A value as JSON.
pub fn to_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// All traces of a file, as JSON, and what was left out.
#[pyfunction]
pub fn read_traces(py: Python<'_>, path: PathBuf) -> PyResult<(String, Vec<(String, String)>)> {
    let loaded = py.detach(|| read_any(&path)).map_err(trace_error)?;
    let skipped =
        loaded.skipped.into_iter().map(|skipped| (skipped.name, skipped.reason)).collect();
    Ok((to_json(&loaded.traces)?, skipped))
}

/// Writes traces, given as JSON, in the format of the file's ending.
#[pyfunction]
pub fn write_traces(py: Python<'_>, path: PathBuf, traces: &str) -> PyResult<()> {
    let traces: Vec<Trace> = serde_json::from_str(traces).map_err(shape_error)?;
    py.detach(|| write_any(&path, &traces)).map_err(trace_error)?;
    Ok(())
}

/// The theorems of an evaluation in an order that depends on their names alone, and the manifest's
/// words for them, and the hash of their content: the same pool that the command line makes of the
/// same file.
#[pyfunction]
#[pyo3(signature = (traces, file, steps=None, limit=None))]
pub fn pool(
    traces: &str,
    file: &str,
    steps: Option<&str>,
    limit: Option<usize>,
) -> PyResult<(String, String, String)> {
    let steps = steps
        .map(str::parse::<Steps>)
        .transpose()
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let traces: Vec<Trace> = serde_json::from_str(traces).map_err(shape_error)?;
    let mut names = HashSet::new();
    if let Some(twice) = traces.iter().find(|trace| !names.insert(trace.theorem.name.as_str())) {
        return Err(PyValueError::new_err(format!(
            "the name {:?} occurs twice among the theorems",
            twice.theorem.name
        )));
    }
    let Some(Theorems { jobs, pool, content }) = Theorems::select(traces, file, steps, limit)
    else {
        let which = steps.map(|steps| format!(" of {steps} steps")).unwrap_or_default();
        return Err(PyValueError::new_err(format!("{file} has no theorem{which}")));
    };
    let entries: Vec<Entry> = jobs
        .into_iter()
        .map(|job| Entry { theorem: job.theorem, demonstrated: job.demonstrated })
        .collect();
    Ok((to_json(&entries)?, to_json(&pool)?, content.to_string()))
}

/// The traces of every proof of a Metamath database, as JSON.
#[pyfunction]
pub fn metamath_traces(py: Python<'_>, database: PathBuf) -> PyResult<String> {
    let traces = py.detach(|| {
        let database = Database::open(&database)?;
        let mut traces = Vec::new();
        let refused =
            database.extract(&Extraction::default(), |trace, _| traces.push(trace)).refused;
        let refused: HashSet<String> = refused.into_iter().map(|(name, _)| name).collect();
        traces.retain(|trace: &Trace| !refused.contains(&trace.theorem.name));
        Ok(traces)
    });
    to_json(
        &traces
            .map_err(|error: catamount_metamath::Error| PyValueError::new_err(error.to_string()))?,
    )
}
