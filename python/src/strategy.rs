//! A strategy of the user's own, written in Python: the triple is called back, the recurrence is
//! solved here.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use catamount_objective::{self as objective, Prior, Status, Strategy, solve};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::dual::{Dual, operand};
use crate::weights::{lengths_of, trace_error};

/// How far the probabilities of a selection may be from adding up to one.
const SLACK: f64 = 1e-6;

/// A Python object with `start`, `status`, `selection`, `advance` and `miss`. Configurations are
/// whatever the object returns, as long as it is hashable; here they are known by number.
struct Triple<'py> {
    py: Python<'py>,
    object: &'py Bound<'py, PyAny>,
    length: usize,
    /// Configuration to number.
    numbers: Bound<'py, PyDict>,
    configurations: RefCell<Vec<Py<PyAny>>>,
    /// Answers kept between the solver's two visits to a configuration.
    selections: RefCell<HashMap<usize, Vec<(usize, objective::Dual)>>>,
    moves: RefCell<HashMap<(usize, usize, bool), usize>>,
    /// Visits so far.
    visits: RefCell<HashMap<usize, u8>>,
    p: OnceCell<Bound<'py, PyTuple>>,
    limit: usize,
    error: RefCell<Option<PyErr>>,
}

impl<'py> Triple<'py> {
    fn fail(&self, error: PyErr) {
        self.error.borrow_mut().get_or_insert(error);
    }

    fn failed(&self) -> bool {
        self.error.borrow().is_some()
    }

    /// The number of a configuration. Number 0 stands for whatever an error left undefined.
    fn number(&self, configuration: PyResult<Bound<'py, PyAny>>) -> usize {
        let number = configuration.and_then(|configuration| {
            let known = self.numbers.get_item(&configuration).map_err(|error| {
                let kind = configuration.get_type();
                let hint = PyTypeError::new_err(format!(
                    "a configuration must be hashable, such \
                 as a tuple of numbers, not {kind}"
                ));
                hint.set_cause(self.py, Some(error));
                hint
            })?;
            if let Some(number) = known {
                return number.extract();
            }
            let mut configurations = self.configurations.borrow_mut();
            let number = configurations.len();
            if number > self.limit {
                return Err(PyValueError::new_err(format!(
                    "the strategy reaches more than {} configurations; does every update spend \
                     budget, and does status() say \"dead\" once it is spent? \
                     (raise max_configurations if so)",
                    self.limit
                )));
            }
            if number.is_multiple_of(4096) {
                self.py.check_signals()?;
            }
            self.numbers.set_item(&configuration, number)?;
            configurations.push(configuration.unbind());
            Ok(number)
        });
        number.unwrap_or_else(|error| {
            self.fail(error);
            0
        })
    }

    fn configuration(&self, number: usize) -> Bound<'py, PyAny> {
        self.configurations.borrow()[number].bind(self.py).clone()
    }

    fn read_status(&self, number: usize) -> PyResult<Status> {
        let answer =
            self.object.call_method1("status", (self.configuration(number), self.length))?;
        match answer.extract::<String>().as_deref() {
            Ok("solved") => Ok(Status::Solved),
            Ok("dead") => Ok(Status::Dead),
            Ok("live") => Ok(Status::Live),
            _ => Err(PyValueError::new_err(format!(
                "status() must return \"solved\", \"dead\" or \"live\", not {answer:?}"
            ))),
        }
    }

    fn read_selection(
        &self,
        number: usize,
        p: &[objective::Dual],
    ) -> PyResult<Vec<(usize, objective::Dual)>> {
        if self.p.get().is_none() {
            let p = PyTuple::new(self.py, p.iter().map(|p| Dual(p.clone())))?;
            let _ = self.p.set(p);
        }
        let configuration = self.configuration(number);
        let answer = self
            .object
            .call_method1("selection", (&configuration, self.p.get().expect("just set")))?;
        let nodes: Vec<(usize, objective::Dual)> = if let Ok(node) = answer.extract::<usize>() {
            vec![(node, objective::Dual::constant(1.0))]
        } else {
            let mut nodes = Vec::new();
            for pair in answer.try_iter()? {
                let (node, chance): (usize, Bound<'_, PyAny>) = pair?.extract()?;
                nodes.push((node, operand(&chance)?));
            }
            nodes
        };
        if let Some((node, _)) = nodes.iter().find(|(node, _)| *node >= self.length) {
            let last = self.length - 1;
            return Err(PyValueError::new_err(format!(
                "selection({configuration:?}) names node {node}; the nodes are 0 to {last}"
            )));
        }
        let total: f64 = nodes.iter().map(|(_, chance)| chance.value()).sum();
        if !((total - 1.0).abs() <= SLACK && nodes.iter().all(|(_, chance)| chance.value() >= 0.0))
        {
            let list: Vec<f64> = nodes.iter().map(|(_, chance)| chance.value()).collect();
            return Err(PyValueError::new_err(format!(
                "selection({configuration:?}) gives probabilities {list:?}; they must not be \
                 negative and must add up to 1"
            )));
        }
        Ok(nodes)
    }

    fn step(&self, name: &str, advance: bool, number: usize, node: usize) -> usize {
        if self.failed() {
            return 0;
        }
        // The solver asks twice, before and after the successors are solved.
        if let Some(next) = self.moves.borrow_mut().remove(&(number, node, advance)) {
            return next;
        }
        let next = self.number(self.object.call_method1(name, (self.configuration(number), node)));
        self.moves.borrow_mut().insert((number, node, advance), next);
        next
    }
}

impl Strategy for Triple<'_> {
    type Configuration = usize;

    fn start(&self, length: usize, budget: u64) -> usize {
        self.number(self.object.call_method1("start", (length, budget)))
    }

    fn status(&self, &number: &usize, _length: usize) -> Status {
        if self.failed() {
            return Status::Dead;
        }
        self.read_status(number).unwrap_or_else(|error| {
            self.fail(error);
            Status::Dead
        })
    }

    fn selection(&self, &number: &usize, p: &[objective::Dual]) -> Vec<(usize, objective::Dual)> {
        if self.failed() {
            return Vec::new();
        }
        let mut visits = self.visits.borrow_mut();
        let visit = visits.entry(number).or_insert(0);
        *visit += 1;
        if *visit > 2 {
            let configuration = self.configuration(number);
            self.fail(PyValueError::new_err(format!(
                "the configuration {configuration:?} leads back to itself; every update must \
                 spend budget, or the recurrence never ends"
            )));
            return Vec::new();
        }
        if let Some(kept) = self.selections.borrow_mut().remove(&number) {
            return kept;
        }
        match self.read_selection(number, p) {
            Ok(nodes) => {
                self.selections.borrow_mut().insert(number, nodes.clone());
                nodes
            }
            Err(error) => {
                self.fail(error);
                Vec::new()
            }
        }
    }

    fn advance(&self, &number: &usize, node: usize) -> usize {
        self.step("advance", true, number, node)
    }

    fn miss(&self, &number: &usize, node: usize) -> usize {
        self.step("miss", false, number, node)
    }
}

/// Weights, log J and feasibility of a batch under a strategy written in Python.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the Python side names them")]
#[expect(clippy::type_complexity, reason = "three arrays")]
pub fn weigh_strategy<'py>(
    py: Python<'py>,
    log_p: PyReadonlyArray1<'py, f64>,
    lengths: PyReadonlyArray1<'py, i64>,
    strategy: &Bound<'py, PyAny>,
    budget: u64,
    kappa: f64,
    absorption: f64,
    max_configurations: usize,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>)> {
    let prior =
        Prior::new(kappa, absorption).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let log_p = log_p.as_slice()?;
    let (mut weights, mut log_success, mut feasible) =
        (Vec::with_capacity(log_p.len()), Vec::new(), Vec::new());
    let mut rest = log_p;
    for (trace, length) in lengths_of(lengths.as_slice()?, log_p.len())?.into_iter().enumerate() {
        let (log_p, others) = rest.split_at(length);
        rest = others;
        let triple = Triple {
            py,
            object: strategy,
            length,
            numbers: PyDict::new(py),
            configurations: RefCell::new(vec![py.None()]),
            selections: RefCell::default(),
            moves: RefCell::default(),
            visits: RefCell::default(),
            p: OnceCell::new(),
            limit: max_configurations,
            error: RefCell::new(None),
        };
        let budget = if budget < length as u64 {
            budget
        } else {
            prior.effective_budget(length, budget) as u64
        };
        let weighed =
            solve(&triple, log_p, budget, absorption).map_err(|error| trace_error(trace, error))?;
        if let Some(error) = triple.error.into_inner() {
            return Err(error);
        }
        weights.extend(weighed.weights);
        log_success.push(weighed.log_success);
        feasible.push(weighed.feasible);
    }
    Ok((weights.into_pyarray(py), log_success.into_pyarray(py), feasible.into_pyarray(py)))
}
