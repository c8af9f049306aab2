//! How long steps take: as they were timed, or as they are said to take.

use std::collections::BTreeMap;

use crate::forecast::Unplanned;
use crate::kind::Kind;
use crate::outline::{Outline, OutlinedStep};

/// How long steps take, where nobody has timed them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Seconds by kind. Those of searches are for the largest budget of the study; smaller ones
    /// take less in proportion.
    pub seconds: BTreeMap<Kind, f64>,
    /// Seconds that a process takes before its first step begins: the prover's library, the model.
    pub startup: f64,
    /// What provers can check, where that is to bound cells.
    pub checks: Option<Checks>,
}

/// What provers can check at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checks {
    /// Tactics a second that a prover worker checks.
    pub rate: f64,
    /// Prover workers that all searches share; none if each has its own.
    pub shared: Option<u64>,
    /// Theorems of a cell.
    pub theorems: u64,
}

impl Times {
    /// Seconds of a step: as it was timed, as others of its kind were, or as it is said.
    pub(crate) fn of(&self, outline: &Outline, step: &OutlinedStep) -> Result<f64, Unplanned> {
        if let Some(said) = self.seconds.get(&step.kind) {
            let largest = outline.steps.iter().filter(|s| s.kind == step.kind);
            let largest = largest.filter_map(|s| s.budget).max();
            return Ok(match (step.budget, largest) {
                (Some(budget), Some(largest)) => said * budget as f64 / largest as f64,
                _ => *said,
            });
        }
        if let Some(seconds) = step.seconds {
            return Ok(seconds);
        }
        let alike: Vec<f64> = outline
            .steps
            .iter()
            .filter(|other| other.kind == step.kind && other.budget == step.budget)
            .filter_map(|other| other.seconds)
            .collect();
        match (alike.len(), step.kind) {
            (0, Kind::Report) => Ok(1.0),
            (0, kind) => Err(Unplanned::Untimed { step: step.name.clone(), kind }),
            (count, _) => Ok(alike.iter().sum::<f64>() / count as f64),
        }
    }

    /// Seconds that the tactics of a cell take its provers at least, should every expansion ask
    /// them for one. Those that all share are shared by as many cells as run at once.
    pub(crate) fn checked(&self, outlines: &[Outline], step: &OutlinedStep, slots: usize) -> f64 {
        let (Some(checks), Some(budget)) = (self.checks, step.budget) else { return 0.0 };
        if step.kind != Kind::Cell {
            return 0.0;
        }
        let steps = outlines.iter().flat_map(|outline| &outline.steps);
        let cells = steps.filter(|step| step.kind == Kind::Cell).count();
        let provers = match checks.shared {
            Some(shared) => shared as f64 / cells.min(slots).max(1) as f64,
            None => step.needs.provers.max(1) as f64,
        };
        checks.theorems as f64 * budget as f64 / (checks.rate * provers)
    }
}
