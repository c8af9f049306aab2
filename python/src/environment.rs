//! Provers: opened by name, and steppable one tactic at a time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use catamount_lean::{Host, Lean, Options};
use catamount_metamath::{Database, Metamath};
use catamount_search::{Checked, Fault, StateId, Verdict};
use catamount_traces::Theorem;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::traces::{shape_error, to_json};

/// A prover that failed, as opposed to a tactic that did.
pub fn fault(fault: Fault) -> PyErr {
    PyRuntimeError::new_err(fault.0)
}

/// A prover with its library.
#[pyclass(frozen, module = "catamount._catamount")]
pub struct Environment(pub Arc<dyn catamount_search::Environment>);

#[pymethods]
impl Environment {
    /// Metamath, in this process.
    #[staticmethod]
    fn metamath(py: Python<'_>, database: PathBuf) -> PyResult<Self> {
        let database = py
            .detach(|| Database::open(&database))
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Environment(Arc::new(Metamath::new(database))))
    }

    /// Lean 4, behind a pool of server processes: a Lake project's own toolchain, or core Lean as
    /// WebAssembly.
    #[staticmethod]
    #[pyo3(signature = (
        project=None, root=None, imports=None, workers=2, heartbeats=200_000, request_limit=60.0,
        memory_mb=2600
    ))]
    #[expect(clippy::too_many_arguments, reason = "the Python side names them")]
    fn lean(
        py: Python<'_>,
        project: Option<PathBuf>,
        root: Option<PathBuf>,
        imports: Option<Vec<String>>,
        workers: usize,
        heartbeats: u64,
        request_limit: f64,
        memory_mb: u64,
    ) -> PyResult<Self> {
        let mut options = Options { root, workers, heartbeats, memory_mb, ..Options::default() };
        options.request_limit = Duration::try_from_secs_f64(request_limit).map_err(|_| {
            PyValueError::new_err(format!(
                "request_limit is a number of seconds, not {request_limit}"
            ))
        })?;
        if let Some(project) = project {
            options.host = Host::Native { project };
        }
        if let Some(imports) = imports {
            options.imports = imports;
        }
        let lean = py
            .detach(|| Lean::new(options))
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Environment(Arc::new(lean)))
    }

    /// What the prover is and which version, for manifests.
    fn describe(&self) -> String {
        self.0.describe()
    }

    /// What the prover is by content, as JSON.
    fn identity(&self, py: Python<'_>) -> PyResult<String> {
        to_json(&py.detach(|| self.0.identity()))
    }

    /// Opens a theorem (as JSON) at its root state.
    fn open(&self, py: Python<'_>, theorem: &str) -> PyResult<Session> {
        let theorem: Theorem = serde_json::from_str(theorem).map_err(shape_error)?;
        let session = py.detach(|| self.0.open(&theorem)).map_err(fault)?;
        Ok(Session(Mutex::new(session)))
    }

    /// Re-checks a finished proof: the axioms it rests on, or why it is refused.
    fn check(
        &self,
        py: Python<'_>,
        theorem: &str,
        tactics: Vec<String>,
    ) -> PyResult<(bool, Vec<String>, String)> {
        let theorem: Theorem = serde_json::from_str(theorem).map_err(shape_error)?;
        match py.detach(|| self.0.check(&theorem, &tactics)).map_err(fault)? {
            Checked::Proved { axioms, .. } => Ok((true, axioms, String::new())),
            Checked::Refused { reason } => Ok((false, Vec::new(), reason)),
        }
    }
}

/// One theorem being proved.
#[pyclass(frozen, module = "catamount._catamount")]
pub struct Session(Mutex<Box<dyn catamount_search::Session>>);

#[pymethods]
impl Session {
    /// The text of the root state, which is number 0.
    #[getter]
    fn root(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).root().to_string()
    }

    /// Applies a tactic to a state: the verdict, the new state's number and a text (the new state,
    /// or the reason for a rejection).
    fn apply(
        &self,
        py: Python<'_>,
        state: u32,
        tactic: &str,
    ) -> PyResult<(&'static str, Option<u32>, String)> {
        let apply =
            || self.0.lock().unwrap_or_else(PoisonError::into_inner).apply(StateId(state), tactic);
        match py.detach(apply).map_err(fault)? {
            Verdict::Proved => Ok(("proved", None, String::new())),
            Verdict::Open { state, text } => Ok(("open", Some(state.0), text)),
            Verdict::Rejected { reason } => Ok(("rejected", None, reason)),
        }
    }

    /// Says that a state will not be used again.
    fn release(&self, state: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).release(StateId(state));
    }
}
