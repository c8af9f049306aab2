//! Cell logs as columns, and comparisons of them.

use std::path::PathBuf;

use catamount_evaluate::log::{Outcome, Record};
use catamount_evaluate::{CellError, Log, LogError};
use catamount_report::CompareError;
use numpy::IntoPyArray;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A cell's trouble as a Python error: the file system's, or what is wrong in the file.
pub fn cell_error(error: CellError) -> PyErr {
    match error {
        CellError::Io { .. } => PyOSError::new_err(error.to_string()),
        CellError::Log(error) => log_error(error),
        _ => PyValueError::new_err(error.to_string()),
    }
}

fn log_error(error: LogError) -> PyErr {
    match error {
        LogError::Read { .. } => PyOSError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

fn compare_error(error: CompareError) -> PyErr {
    match error {
        CompareError::Log(error) => log_error(error),
        CompareError::Different { .. } => PyValueError::new_err(error.to_string()),
    }
}

/// A log as a dictionary of columns of equal length.
#[pyfunction]
pub fn read_log(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let log = py.detach(|| Log::read(&path)).map_err(log_error)?;
    if let Some(problem) = log.problems.first() {
        return Err(PyValueError::new_err(problem.to_string()));
    }
    let records: Vec<Record> = log.in_order().cloned().collect();
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
        records.iter().map(|record| record.outcome.name()).collect::<Vec<_>>(),
    )?;
    let proved: Vec<bool> =
        records.iter().map(|record| record.outcome == Outcome::Proved).collect();
    columns.set_item("proved", proved.into_pyarray(py))?;
    columns.set_item("expansions", number(|record| record.expansions))?;
    columns.set_item("valid", number(|record| record.valid))?;
    columns.set_item("rejected", number(|record| record.rejected))?;
    columns.set_item("refused", number(|record| record.refused))?;
    columns.set_item("distinct", number(|record| record.distinct))?;
    columns.set_item("duplicates", number(|record| record.duplicates))?;
    columns.set_item("redrawn", number(|record| record.redrawn))?;
    columns.set_item("drawn_out", number(|record| record.drawn_out))?;
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
    let comparison =
        py.detach(|| catamount_report::compare_seeds(&a, &b)).map_err(compare_error)?;
    Ok((comparison.to_json(), comparison.to_string()))
}
