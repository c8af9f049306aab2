//! Which probabilities weights were computed from, as a study left it in
//! `scores/NAME.reading.json`.

use std::path::Path;

use serde::Deserialize;

use crate::run::ReportError;

/// How probable tactics are.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Distribution {
    pub(crate) tactics: usize,
    pub(crate) p_mean: f64,
    pub(crate) p_median: f64,
    pub(crate) log_p_quantiles: Vec<f64>,
}

/// One way of making probabilities: what it started from, what it should come to, what it came to.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Reading {
    pub(crate) probabilities: String,
    pub(crate) temperature: f64,
    /// The share of tactics at or below each quantile.
    pub(crate) levels: Vec<f64>,
    pub(crate) training: Distribution,
    pub(crate) held_out: Distribution,
    pub(crate) used: Distribution,
    pub(crate) training_distance: f64,
    pub(crate) used_distance: f64,
}

impl Reading {
    pub(crate) fn read(path: &Path) -> Result<Self, ReportError> {
        let text = std::fs::read(path)
            .map_err(|source| ReportError::Read { path: path.into(), source })?;
        serde_json::from_slice(&text).map_err(|error| ReportError::Content {
            path: path.into(),
            reason: format!("is not a comparison of probabilities ({error})"),
        })
    }

    pub(crate) fn label(&self) -> String {
        format!("{}, T = {}", self.probabilities, self.temperature)
    }
}
