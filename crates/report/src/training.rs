//! What training wrote: one JSON line per measurement, read leniently, since only its shape is
//! fixed.

use std::path::Path;

use serde_json::Value;

use crate::run::ReportError;

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
        let bytes = std::fs::read(path)
            .map_err(|source| ReportError::Read { path: path.into(), source })?;
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let name = name.strip_suffix(".metrics.jsonl").unwrap_or(&name).to_owned();
        let mut objective = name.clone();
        let lines: Vec<(usize, &[u8])> = bytes
            .split(|b| *b == b'\n')
            .enumerate()
            .filter(|(_, l)| !l.trim_ascii().is_empty())
            .collect();
        let mut measurements = Vec::new();
        for (i, (number, line)) in lines.iter().enumerate() {
            let value: Value = match serde_json::from_slice(line) {
                Ok(value) => value,
                Err(_) if i + 1 == lines.len() => {
                    notes.push(format!(
                        "{}: line {}, the last, is unfinished and was set aside",
                        path.display(),
                        number + 1
                    ));
                    break;
                }
                Err(e) => {
                    let reason = format!("line {} is not JSON ({e}); remove it", number + 1);
                    return Err(ReportError::Content { path: path.into(), reason });
                }
            };
            if let Some(name) = value.get("objective").and_then(Value::as_str) {
                objective = name.to_owned();
            }
            let numbers = |key: &str| -> Vec<f64> {
                value
                    .get(key)
                    .and_then(Value::as_array)
                    .map(|a| a.iter().filter_map(Value::as_f64).collect())
                    .unwrap_or_default()
            };
            let Some(step) = value.get("step").and_then(Value::as_f64) else { continue };
            measurements.push(Measurement {
                step,
                loss: value.get("loss").and_then(Value::as_f64),
                ce: value.get("ce").and_then(Value::as_f64),
                valid_ce: value.pointer("/valid/ce").and_then(Value::as_f64),
                p: numbers("p_quantiles"),
                w: numbers("w_quantiles"),
            });
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
