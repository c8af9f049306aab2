//! The card of a model, as the trainer on the command line writes it.

use catamount_objective::Prior;
use catamount_train::Card;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The text of README.md in a model's folder.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the Python side names them")]
pub fn model_card(
    objective: String,
    budget: Option<u64>,
    kappa: f64,
    absorption: f64,
    base: Option<String>,
    adapter: bool,
    data: Option<String>,
    figures: Vec<(String, f64)>,
) -> PyResult<String> {
    let prior = match (kappa, absorption) {
        (1.0, 0.0) => None,
        _ => Some(
            Prior::new(kappa, absorption)
                .map_err(|error| PyValueError::new_err(error.to_string()))?,
        ),
    };
    Ok(Card { objective, budget, prior, base, adapter, data, figures }.to_string())
}
