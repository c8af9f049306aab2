//! Cell logs as columns, and comparisons of them.

use std::collections::HashMap;
use std::path::PathBuf;

use catamount_evaluate::cell::{self, CellError};
use catamount_evaluate::log::{Outcome, Record};
use catamount_report::LogError;
use numpy::IntoPyArray;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A log's trouble as a Python error: the file system's, or what is wrong in the file.
pub fn cell_error(error: CellError) -> PyErr {
    match error {
        CellError::Io { .. } => PyOSError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

fn log_error(error: LogError) -> PyErr {
    match error {
        LogError::Read { .. } => PyOSError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

/// An outcome as logs write it.
pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Proved => "proved",
        Outcome::Exhausted => "exhausted",
        Outcome::Budget => "budget",
        Outcome::Time => "time",
        Outcome::Error => "error",
    }
}

/// Each theorem once, where it first stood: its last result, which an error never replaces.
fn settled(records: Vec<Record>) -> Vec<Record> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut kept: Vec<Record> = Vec::with_capacity(records.len());
    for record in records {
        match places.get(&record.theorem) {
            Some(&place)
                if record.outcome != Outcome::Error || kept[place].outcome == Outcome::Error =>
            {
                kept[place] = record
            }
            Some(_) => {}
            None => {
                places.insert(record.theorem.clone(), kept.len());
                kept.push(record);
            }
        }
    }
    kept
}

/// A log as a dictionary of columns of equal length.
#[pyfunction]
pub fn read_log(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let records = settled(py.detach(|| cell::read_log(&path)).map_err(cell_error)?);
    let columns = PyDict::new(py);
    let number = |of: fn(&Record) -> u64| {
        records.iter().map(|record| of(record) as i64).collect::<Vec<_>>().into_pyarray(py)
    };
    columns.set_item(
        "theorem",
        records.iter().map(|record| record.theorem.as_str()).collect::<Vec<_>>(),
    )?;
    columns.set_item(
        "outcome",
        records.iter().map(|record| outcome_name(record.outcome)).collect::<Vec<_>>(),
    )?;
    let proved: Vec<bool> =
        records.iter().map(|record| record.outcome == Outcome::Proved).collect();
    columns.set_item("proved", proved.into_pyarray(py))?;
    columns.set_item("expansions", number(|record| record.expansions))?;
    columns.set_item("valid", number(|record| record.valid))?;
    columns.set_item("rejected", number(|record| record.rejected))?;
    columns.set_item("duplicates", number(|record| record.duplicates))?;
    columns.set_item("tokens", number(|record| record.tokens))?;
    columns.set_item(
        "demonstrated",
        records.iter().map(|record| record.demonstrated).collect::<Vec<_>>(),
    )?;
    columns.set_item(
        "tactics",
        records.iter().map(|record| record.tactics.clone()).collect::<Vec<_>>(),
    )?;
    columns.set_item(
        "depths",
        records.iter().map(|record| record.depths.clone()).collect::<Vec<_>>(),
    )?;
    columns
        .set_item("reason", records.into_iter().map(|record| record.reason).collect::<Vec<_>>())?;
    Ok(columns)
}

/// A paired comparison of logs, one per seed on either side, as JSON and as text.
#[pyfunction]
pub fn compare(py: Python<'_>, a: Vec<PathBuf>, b: Vec<PathBuf>) -> PyResult<(String, String)> {
    let comparison = py.detach(|| catamount_report::compare_seeds(&a, &b)).map_err(log_error)?;
    Ok((comparison.to_json(), comparison.to_string()))
}
