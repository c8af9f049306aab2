//! Weights of ragged batches, over the memory of NumPy arrays, with the interpreter's lock
//! released.

use std::time::Instant;

use catamount_objective::{Objective, ObjectiveError, Prior, Surrogate};
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::threads;

/// Weights, log J and feasibility of a batch, as arrays.
type Weighed<'py> =
    (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>);

/// An error that concerns one trace of a batch.
pub fn trace_error(trace: usize, error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("trace {trace} (counted from 0): {error}"))
}

fn value_error(error: ObjectiveError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The surrogate of named parameters.
fn surrogate(objective: &str, budget: u64, kappa: f64, absorption: f64) -> PyResult<Surrogate> {
    let objective: Objective = objective.parse().map_err(value_error)?;
    let prior = Prior::new(kappa, absorption).map_err(value_error)?;
    Surrogate::new(objective, budget).with_prior(prior).map_err(value_error)
}

/// Where each trace ends, after checking that the lengths add up.
pub fn lengths_of(lengths: &[i64], total: usize) -> PyResult<Vec<usize>> {
    let mut sum = 0usize;
    let mut checked = Vec::with_capacity(lengths.len());
    for (trace, &length) in lengths.iter().enumerate() {
        let length = usize::try_from(length)
            .map_err(|_| trace_error(trace, format!("its length is {length}")))?;
        sum = sum.saturating_add(length);
        checked.push(length);
    }
    if sum != total {
        return Err(PyValueError::new_err(format!(
            "lengths add up to {sum}, but logp has {total} values"
        )));
    }
    Ok(checked)
}

/// The same as plain vectors; or the trace that has no weights, and why.
type Answer = Result<(Vec<f64>, Vec<f64>, Vec<bool>), (usize, ObjectiveError)>;

/// Traces that one task weighs: enough that those of one length fill the lanes of a recurrence.
const TASK: usize = 256;

/// Weighs every trace of a batch. Single-precision input is widened.
fn weigh<T: Copy + Sync + Into<f64>>(
    surrogate: &Surrogate,
    log_p: &[T],
    lengths: &[usize],
) -> Answer {
    let (mut weights, mut log_success, mut feasible) =
        (vec![0.0; log_p.len()], vec![0.0; lengths.len()], vec![false; lengths.len()]);
    let mut tasks = Vec::with_capacity(lengths.len().div_ceil(TASK));
    let (mut from, mut into) = (log_p, weights.as_mut_slice());
    for ((lengths, log_success), feasible) in
        lengths.chunks(TASK).zip(log_success.chunks_mut(TASK)).zip(feasible.chunks_mut(TASK))
    {
        let total = lengths.iter().sum();
        let (steps, rest) = from.split_at(total);
        let (out, others) = into.split_at_mut(total);
        tasks.push((lengths, steps, out, log_success, feasible));
        (from, into) = (rest, others);
    }
    // The first error wins, whichever task is done first.
    let errors: Vec<_> = tasks
        .into_par_iter()
        .enumerate()
        .map(|(task, (lengths, steps, mut out, log_success, feasible))| {
            let log_p: Vec<f64> = steps.iter().map(|&value| value.into()).collect();
            for (i, weighed) in
                surrogate.weigh_all(&traces(&log_p, lengths)).into_iter().enumerate()
            {
                let weighed = weighed.map_err(|error| (task * TASK + i, error))?;
                let (own, others) = out.split_at_mut(lengths[i]);
                own.copy_from_slice(&weighed.weights);
                (log_success[i], feasible[i]) = (weighed.log_success, weighed.feasible);
                out = others;
            }
            Ok(())
        })
        .collect();
    errors.into_iter().collect::<Result<(), _>>()?;
    Ok((weights, log_success, feasible))
}

/// Cuts a batch into its traces.
fn traces<'a>(mut log_p: &'a [f64], lengths: &[usize]) -> Vec<&'a [f64]> {
    let cut = |&length: &usize| {
        let (trace, rest) = log_p.split_at(length);
        log_p = rest;
        trace
    };
    lengths.iter().map(cut).collect()
}

fn weigh_array<'py, T: Element + Copy + Sync + Into<f64>>(
    py: Python<'py>,
    log_p: &PyReadonlyArray1<'py, T>,
    lengths: &PyReadonlyArray1<'py, i64>,
    surrogate: &Surrogate,
) -> PyResult<Weighed<'py>> {
    let log_p = log_p.as_slice().map_err(|_| PyValueError::new_err("logp must be contiguous"))?;
    let lengths =
        lengths.as_slice().map_err(|_| PyValueError::new_err("lengths must be contiguous"))?;
    let lengths = lengths_of(lengths, log_p.len())?;
    let pool = threads::pool()?;
    let answer = py.detach(|| pool.install(|| weigh(surrogate, log_p, &lengths)));
    let (weights, log_success, feasible) =
        answer.map_err(|(trace, error)| trace_error(trace, error))?;
    Ok((weights.into_pyarray(py), log_success.into_pyarray(py), feasible.into_pyarray(py)))
}

/// `weigh` over an array of double precision.
#[pyfunction]
pub fn weigh_f64<'py>(
    py: Python<'py>,
    log_p: PyReadonlyArray1<'py, f64>,
    lengths: PyReadonlyArray1<'py, i64>,
    objective: &str,
    budget: u64,
    kappa: f64,
    absorption: f64,
) -> PyResult<Weighed<'py>> {
    weigh_array(py, &log_p, &lengths, &surrogate(objective, budget, kappa, absorption)?)
}

/// `weigh` over an array of single precision; computed, and answered, in double precision.
#[pyfunction]
pub fn weigh_f32<'py>(
    py: Python<'py>,
    log_p: PyReadonlyArray1<'py, f32>,
    lengths: PyReadonlyArray1<'py, i64>,
    objective: &str,
    budget: u64,
    kappa: f64,
    absorption: f64,
) -> PyResult<Weighed<'py>> {
    weigh_array(py, &log_p, &lengths, &surrogate(objective, budget, kappa, absorption)?)
}

/// Seconds that the Rust call itself takes for a batch, each of `repeats` times: what the benchmark
/// compares the Python call with.
#[pyfunction]
pub fn time_weigh(
    py: Python<'_>,
    log_p: PyReadonlyArray1<'_, f64>,
    lengths: PyReadonlyArray1<'_, i64>,
    objective: &str,
    budget: u64,
    repeats: usize,
) -> PyResult<Vec<f64>> {
    let surrogate = surrogate(objective, budget, 1.0, 0.0)?;
    let log_p = log_p.as_slice()?;
    let lengths = lengths_of(lengths.as_slice()?, log_p.len())?;
    let traces = traces(log_p, &lengths);
    let pool = threads::pool()?;
    py.detach(|| {
        (0..repeats)
            .map(|_| {
                let started = Instant::now();
                let answers: Vec<Vec<_>> = pool.install(|| {
                    traces.par_chunks(TASK).map(|traces| surrogate.weigh_all(traces)).collect()
                });
                // Giving the memory back is part of the call, as it is in Python's.
                answers.into_iter().flatten().try_for_each(|answer| answer.map(drop))?;
                Ok(started.elapsed().as_secs_f64())
            })
            .collect::<Result<Vec<f64>, _>>()
    })
    .map_err(value_error)
}

/// The smallest budget with which a trace of this length can succeed.
#[pyfunction]
pub fn minimum_budget(objective: &str, length: usize) -> PyResult<u64> {
    let objective: Objective = objective.parse().map_err(value_error)?;
    Ok(objective.minimum_budget(length))
}
