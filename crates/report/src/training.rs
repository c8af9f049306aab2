//! What training wrote, here or elsewhere: one JSON line per measurement, of which a report needs a
//! part.

use std::path::Path;

use catamount_base::{Lines, LinesError};
use serde::Deserialize;

use crate::run::ReportError;

/// What a report reads of a line of metrics. Other trainers write fewer numbers.
#[derive(Deserialize)]
struct Line {
    objective: Option<String>,
    step: Option<f64>,
    loss: Option<f64>,
    ce: Option<f64>,
    valid: Option<HeldOut>,
    #[serde(default)]
    p_quantiles: Vec<Option<f64>>,
    #[serde(default)]
    w_quantiles: Vec<Option<f64>>,
}

/// What it says of held-out traces.
#[derive(Deserialize)]
struct HeldOut {
    ce: Option<f64>,
}

/// One measurement during training.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measurement {
    pub(crate) step: f64,
    pub(crate) loss: Option<f64>,
    /// Mean over tactics of -log p, whatever the objective.
    pub(crate) ce: Option<f64>,
    /// The same of held-out tactics, where they were measured.
    pub(crate) valid_ce: Option<f64>,
    /// Quantiles of p at the levels of [`levels`], the smallest first.
    pub(crate) p: Vec<f64>,
    /// Quantiles of the weights.
    pub(crate) w: Vec<f64>,
}

/// The share of values at or below each of `count` quantiles: five are those that training writes
/// (5, 25, 50, 75 and 95 %), any other number is evenly spaced from the smallest value to the
/// largest.
pub(crate) fn levels(count: usize) -> Vec<f64> {
    match count {
        5 => vec![0.05, 0.25, 0.5, 0.75, 0.95],
        _ => (0..count).map(|i| i as f64 / (count.max(2) - 1) as f64).collect(),
    }
}

/// The measurements of one branch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Training {
    pub(crate) objective: String,
    /// The file's name without its endings.
    pub(crate) name: String,
    pub(crate) measurements: Vec<Measurement>,
}

impl Training {
    /// Reads `NAME.metrics.jsonl`; the objective is what its lines say, else the file's name.
    pub(crate) fn read(path: &Path, notes: &mut Vec<String>) -> Result<Self, ReportError> {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let name = name.strip_suffix(".metrics.jsonl").unwrap_or(&name).to_owned();
        let mut objective = name.clone();
        let wrong = |error| match error {
            LinesError::Io { path, source } => ReportError::Read { path, source },
            LinesError::Damaged { path, line, reason } => {
                let reason = format!("line {line} is not a measurement ({reason}); remove it");
                ReportError::Content { path, reason }
            }
        };
        let mut lines = Lines::<Line>::open(path).map_err(wrong)?;
        let mut measurements = Vec::new();
        for line in lines.by_ref() {
            let (_, line) = line.map_err(wrong)?;
            objective = line.objective.unwrap_or(objective);
            let Some(step) = line.step else { continue };
            measurements.push(Measurement {
                step,
                loss: line.loss,
                ce: line.ce,
                valid_ce: line.valid.and_then(|valid| valid.ce),
                p: line.p_quantiles.into_iter().flatten().collect(),
                w: line.w_quantiles.into_iter().flatten().collect(),
            });
        }
        if let Some(number) = lines.unfinished() {
            notes.push(format!(
                "{}: line {number}, the last, is unfinished and was set aside",
                path.display()
            ));
        }
        measurements.sort_by(|a, b| a.step.total_cmp(&b.step));
        Ok(Self { objective, name, measurements })
    }

    /// First and last measurement that has a distribution.
    pub(crate) fn ends(
        &self,
        of: impl Fn(&Measurement) -> &Vec<f64>,
    ) -> Option<(&Measurement, &Measurement)> {
        let mut with = self.measurements.iter().filter(|m| of(m).len() > 1);
        let first = with.next()?;
        Some((first, with.next_back().unwrap_or(first)))
    }
}
