//! Surrogates held against what searches did: from a cell's log to observations, and what a study
//! keeps of a calibration.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use catamount_calibration::{Calibration, End, Observation};
use catamount_evaluate::log::{Outcome, Record};
use catamount_figure::Chart;
use catamount_traces::Trace;
use serde::{Deserialize, Serialize};

use crate::figures::calibration;
use crate::run::ReportError;
use crate::table::Table;
use crate::tables;

/// The name of the calibrations in a study's folder: an array of [`Calibrated`].
pub const CALIBRATIONS: &str = "calibration.json";

/// A calibration, and the searches it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// The strategies that were searched with.
    pub strategies: Vec<String>,
    /// The temperature at which tactics were sampled, and log p was taken.
    pub temperature: f64,
    /// Whether no tactic was sampled twice at a node.
    #[serde(default)]
    pub distinct: bool,
    /// The study's seed.
    pub seed: u64,
    /// The fits.
    #[serde(flatten)]
    pub calibration: Calibration,
}

/// The name of what could not be fitted in a study's folder: an array of [`Unfitted`].
pub const UNFITTED: &str = "unfitted.json";

/// A surrogate that too few searches say anything about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unfitted {
    /// The objective whose surrogate it is.
    pub objective: String,
    /// The deployed budget, in expansions.
    pub budget: u64,
    /// The strategies that were searched with.
    pub strategies: Vec<String>,
    /// The study's seed.
    pub seed: u64,
    /// Why.
    pub reason: String,
}

impl Unfitted {
    /// For readers of the report.
    pub(crate) fn note(&self) -> String {
        format!(
            "seed {}: the surrogate of {} for {} expansions under {} was not fitted, and its \
             branch was trained with every weight 1: {}",
            self.seed,
            self.objective,
            self.budget,
            self.strategies.join(", "),
            self.reason
        )
    }
}

/// A study's calibrations, to be looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Log-loss in three columns: as it stands, with other proofs alone, fitted.
    pub summary: Table,
    /// Every model of every calibration.
    pub table: Table,
    /// The reliability diagrams.
    pub figure: PathBuf,
}

/// Reads the calibrations of a study's folder and draws them beside their file.
pub fn show_calibrations(folder: &Path) -> Result<Shown, ReportError> {
    let all = read(folder)?;
    let (Some(table), Some(summary), Some(grid)) = (
        tables::calibration::table(&all),
        tables::calibration::summary(&all),
        calibration::grid(&all),
    ) else {
        let path = folder.join(CALIBRATIONS);
        return Err(ReportError::Content { path, reason: "holds no calibration".into() });
    };
    Ok(Shown { summary, table, figure: grid.save(folder, "reliability")?.svg })
}

/// The calibrations of several folders in one table, seeds pooled: log-loss as it stands, with
/// other proofs alone, and fitted.
pub fn calibration_summary(folders: &[PathBuf]) -> Result<Option<Table>, ReportError> {
    let mut all = Vec::new();
    for folder in folders {
        all.extend(read(folder)?);
    }
    Ok(tables::calibration::summary(&all))
}

fn read(folder: &Path) -> Result<Vec<Calibrated>, ReportError> {
    let path = folder.join(CALIBRATIONS);
    let text =
        std::fs::read(&path).map_err(|source| ReportError::Read { path: path.clone(), source })?;
    serde_json::from_slice(&text)
        .map_err(|error| ReportError::Content { path, reason: format!("no calibrations: {error}") })
}

/// What the records of a cell say of theorems whose demonstrations and their log p are known. A
/// proof is along the trace if its tactics are the demonstrated ones. A search that had nothing
/// left to expand will never find a proof: as if it had gone on to the budget. Errors, and what a
/// clock cut off at once, say nothing.
pub fn observations<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    budget: u64,
    traces: &[Trace],
    log_p: &HashMap<String, Vec<f64>>,
) -> Vec<Observation> {
    let traces: HashMap<&str, &Trace> =
        traces.iter().map(|trace| (trace.theorem.name.as_str(), trace)).collect();
    let one = |record: &Record| {
        let trace = traces.get(record.theorem.as_str())?;
        let log_p = log_p.get(&record.theorem)?;
        let along = || trace.steps.iter().map(|step| &step.tactic).eq(&record.tactics);
        let end = match record.outcome {
            Outcome::Proved if along() => End::Along(record.expansions),
            Outcome::Proved => End::Bypass(record.expansions),
            Outcome::Exhausted | Outcome::Budget => End::Unproved(budget),
            Outcome::Time if record.expansions > 0 => End::Unproved(record.expansions.min(budget)),
            Outcome::Time | Outcome::Error => return None,
        };
        Some(Observation { theorem: record.theorem.clone(), log_p: log_p.clone(), end })
    };
    records.into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_along_the_trace_are_told_from_others() {
        let trace = |name: &str| -> Trace {
            let line = format!(
                r#"{{"name": "{name}", "statement": "s", "steps": [{}, {}]}}"#,
                r#"{"state": "x", "tactic": "a"}"#, r#"{"state": "y", "tactic": "b"}"#
            );
            serde_json::from_str(&line).unwrap()
        };
        let record = |name: &str, outcome: &str, expansions: u64, tactics: &[&str]| -> Record {
            let tactics = serde_json::to_string(tactics).unwrap();
            let line = format!(
                r#"{{"theorem": "{name}", "outcome": "{outcome}", "expansions": {expansions},
                    "tactics": {tactics}, "valid": 0, "rejected": 0, "duplicates": 0, "distinct": 0,
                    "depths": [], "tokens": 0}}"#
            );
            serde_json::from_str(&line).unwrap()
        };
        let names = ["along", "other", "out", "done", "cut", "error", "unscored"];
        let traces: Vec<Trace> = names.iter().map(|name| trace(name)).collect();
        let log_p: HashMap<String, Vec<f64>> =
            names[..6].iter().map(|name| (name.to_string(), vec![-1.0, -2.0])).collect();
        let records = [
            record("along", "proved", 7, &["a", "b"]),
            record("other", "proved", 9, &["c"]),
            record("out", "budget", 64, &[]),
            record("done", "exhausted", 12, &[]),
            record("cut", "time", 20, &[]),
            record("error", "error", 3, &[]),
            record("unscored", "proved", 3, &["a", "b"]),
            record("undemonstrated", "proved", 3, &["a", "b"]),
        ];
        let found = observations(&records, 64, &traces, &log_p);
        let ends: Vec<(&str, End)> = found.iter().map(|o| (o.theorem.as_str(), o.end)).collect();
        assert_eq!(
            ends,
            [
                ("along", End::Along(7)),
                ("other", End::Bypass(9)),
                ("out", End::Unproved(64)),
                ("done", End::Unproved(64)),
                ("cut", End::Unproved(20)),
            ]
        );
    }
}
