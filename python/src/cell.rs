//! A cell's files, written by the same code as the command line's.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catamount_evaluate::driver::Finished;
use catamount_evaluate::log::{Manifest, Record, TimeRecord, TreeRecord};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::log::cell_error;
use crate::traces::{shape_error, to_json};

/// A finished theorem as it crosses the border.
#[derive(Serialize, Deserialize)]
pub struct Result {
    record: Record,
    time: TimeRecord,
    tree: Option<TreeRecord>,
}

impl From<Finished> for Result {
    fn from(Finished { record, time, tree }: Finished) -> Self {
        Result { record, time, tree }
    }
}

/// A cell, open for appending. `None` once it is settled or closed.
#[pyclass(frozen, module = "catamount._catamount")]
pub struct Cell(Arc<Mutex<Option<catamount_evaluate::Cell>>>);

impl Cell {
    /// Another handle on the same files.
    pub fn handle(&self) -> Arc<Mutex<Option<catamount_evaluate::Cell>>> {
        Arc::clone(&self.0)
    }

    fn lock(&self) -> MutexGuard<'_, Option<catamount_evaluate::Cell>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn settled() -> PyErr {
    PyValueError::new_err("the cell is closed")
}

#[pymethods]
impl Cell {
    /// Starts a cell, or resumes it if its log exists and its manifest says the same.
    #[new]
    fn new(path: PathBuf, manifest: &str, trees: bool) -> PyResult<Self> {
        let manifest: Manifest = serde_json::from_str(manifest).map_err(shape_error)?;
        let cell = catamount_evaluate::Cell::open(&path, &manifest, trees).map_err(cell_error)?;
        Ok(Cell(Arc::new(Mutex::new(Some(cell)))))
    }

    /// Names of the theorems that need no further search.
    fn completed(&self) -> PyResult<Vec<String>> {
        let cell = self.lock();
        let cell = cell.as_ref().ok_or_else(settled)?;
        Ok(cell.completed().into_iter().map(String::from).collect())
    }

    /// Appends a finished theorem, given as JSON. False, and nothing is written, if the log has its
    /// result already.
    fn append(&self, finished: &str) -> PyResult<bool> {
        let Result { record, time, tree } = serde_json::from_str(finished).map_err(shape_error)?;
        let mut cell = self.lock();
        let cell = cell.as_mut().ok_or_else(settled)?;
        if cell.completed().contains(record.theorem.as_str()) {
            return Ok(false);
        }
        cell.append(Finished { record, time, tree }).map_err(cell_error)?;
        Ok(true)
    }

    /// The last record of every theorem, as a JSON object. Which cell they belong to is left out:
    /// whether a log was resumed is not to be seen in them.
    fn records(&self) -> PyResult<String> {
        let cell = self.lock();
        let mut records = cell.as_ref().ok_or_else(settled)?.records().clone();
        records.values_mut().for_each(|record| record.cell.clear());
        to_json(&records)
    }

    /// Lets go of the files, so that they can be opened again.
    fn close(&self) {
        self.lock().take();
    }

    /// Puts the complete log into the pool's order and closes it.
    fn settle(&self, order: Vec<String>) -> PyResult<()> {
        let cell = self.lock().take().ok_or_else(settled)?;
        cell.settle(&order).map_err(cell_error)
    }
}
