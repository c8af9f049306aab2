//! The native half of the Python package `catamount`: arrays, files and callables in, the crates'
//! own types behind them.
//!
//! Deliberately holds no logic of its own: what is computed here is computed by the same code as on
//! the command line. Structured values (records, manifests, traces) cross the border as JSON,
//! arrays as NumPy arrays without a copy.

use catamount_evaluate::Workload;
use catamount_search::StrategyKind;
use catamount_traces::SEPARATOR;
use pyo3::prelude::*;

mod card;
mod cell;
mod command;
mod dual;
mod environment;
mod log;
mod policy;
mod search;
mod strategy;
mod threads;
mod traces;
mod weights;

/// The extension module `catamount._catamount`.
#[pymodule]
fn _catamount(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add(
        "OBJECTIVES",
        catamount_objective::Objective::ALL.map(|objective| objective.name()).to_vec(),
    )?;
    module.add("STRATEGIES", StrategyKind::ALL.map(StrategyKind::name).to_vec())?;
    module.add("FORMAT", catamount_evaluate::FORMAT)?;
    // The separator and the end of our own tokenizers, and the separator as text.
    let separators = (catamount_model::SEPARATOR, catamount_model::END, SEPARATOR);
    module.add("LAYOUT", separators)?;
    module.add("CONCURRENCY", Workload::CONCURRENCY)?;
    module.add("BATCH", Workload::BATCH)?;
    module.add_class::<dual::Dual>()?;
    module.add_class::<environment::Environment>()?;
    module.add_class::<environment::Session>()?;
    module.add_class::<policy::NativePolicy>()?;
    module.add_class::<cell::Cell>()?;
    module.add_function(wrap_pyfunction!(card::model_card, module)?)?;
    module.add_function(wrap_pyfunction!(command::command_line, module)?)?;
    module.add_function(wrap_pyfunction!(weights::weigh_f32, module)?)?;
    module.add_function(wrap_pyfunction!(weights::weigh_f64, module)?)?;
    module.add_function(wrap_pyfunction!(weights::time_weigh, module)?)?;
    module.add_function(wrap_pyfunction!(weights::minimum_budget, module)?)?;
    module.add_function(wrap_pyfunction!(strategy::weigh_strategy, module)?)?;
    module.add_function(wrap_pyfunction!(traces::read_traces, module)?)?;
    module.add_function(wrap_pyfunction!(traces::write_traces, module)?)?;
    module.add_function(wrap_pyfunction!(traces::pool, module)?)?;
    module.add_function(wrap_pyfunction!(traces::metamath_traces, module)?)?;
    module.add_function(wrap_pyfunction!(log::read_log, module)?)?;
    module.add_function(wrap_pyfunction!(log::compare, module)?)?;
    module.add_function(wrap_pyfunction!(search::deployment, module)?)?;
    module.add_function(wrap_pyfunction!(search::run, module)?)?;
    module.add_function(wrap_pyfunction!(search::uniform, module)?)?;
    Ok(())
}
