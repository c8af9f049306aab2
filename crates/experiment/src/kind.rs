//! What kinds of steps there are.

use serde::{Deserialize, Serialize};

use crate::step::Step;

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Traces, split.
    Data,
    /// The common ancestor.
    WarmUp,
    /// Searches of validation theorems with the warm-up model.
    Trial,
    /// An objective's surrogate, fitted to trials.
    Calibration,
    /// The warm-up's recipe on all folds of the training traces but one.
    Fold,
    /// The probabilities of all training tactics that weights are computed from.
    Scores,
    /// One objective's branch.
    Branch,
    /// Candidates against each other on validation theorems.
    Tournament,
    /// One objective under one deployment; or what a tournament chose.
    Cell,
    /// Tables, figures, page.
    Report,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 10] = [
        Kind::Data,
        Kind::WarmUp,
        Kind::Trial,
        Kind::Calibration,
        Kind::Fold,
        Kind::Scores,
        Kind::Branch,
        Kind::Tournament,
        Kind::Cell,
        Kind::Report,
    ];

    /// As outlines and the command line write it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Data => "data",
            Kind::WarmUp => "warm-up",
            Kind::Trial => "trial",
            Kind::Calibration => "calibration",
            Kind::Fold => "fold",
            Kind::Scores => "scores",
            Kind::Branch => "branch",
            Kind::Tournament => "tournament",
            Kind::Cell => "cell",
            Kind::Report => "report",
        }
    }
}

impl Step {
    /// What kind of step it is.
    pub fn kind(&self) -> Kind {
        match self {
            Step::Data => Kind::Data,
            Step::WarmUp => Kind::WarmUp,
            Step::Trial(_) => Kind::Trial,
            Step::Calibration(_) => Kind::Calibration,
            Step::Fold(_) => Kind::Fold,
            Step::Scores(_) => Kind::Scores,
            Step::Branch(_) => Kind::Branch,
            Step::Tournament(_) => Kind::Tournament,
            Step::Cell(_) | Step::Chosen(_) => Kind::Cell,
            Step::Report => Kind::Report,
        }
    }

    /// Expansions per theorem, where it searches.
    pub fn budget(&self) -> Option<u64> {
        match self {
            Step::Trial(trial) => Some(trial.deployment.budget()),
            Step::Tournament(tournament) => Some(tournament.deployment.budget()),
            Step::Cell(cell) => Some(cell.deployment.budget()),
            Step::Chosen(chosen) => Some(chosen.tournament.deployment.budget()),
            _ => None,
        }
    }
}
