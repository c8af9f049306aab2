//! What a study tells its report: files that the one writes and the other reads, by the same types.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the plan in a study's folder.
pub const PLAN: &str = "plan.json";

/// Where the probabilities that weights rest on are, with what each way of making them came to.
pub const SCORES: &str = "scores";

/// The common ancestor of a study's branches, by the name of its files.
pub const WARM_UP: &str = "warm-up";

/// What was planned, and how the study was made. All of it is optional: a folder of cells that
/// nobody planned can be reported on too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StudyPlan {
    /// The report's title.
    #[serde(alias = "name", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The command that made the study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The commit it was made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Seeds>,
    /// What the data were made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_hash: Option<String>,
    /// Of what, which version.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    /// The cells that were planned.
    pub cells: Vec<PlannedCell>,
    /// The experiment's file.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub experiment: Value,
}

/// The seeds of a study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seeds {
    /// Of the split, of initialisation and of every search.
    pub experiment: u64,
    /// Of the warm-up's recipe.
    pub warm_up: u64,
    /// Of the branches' recipe.
    pub branch: u64,
}

/// A cell that was planned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// The objective's name.
    pub objective: String,
    /// The strategy's.
    pub strategy: String,
    /// Expansions per theorem.
    pub budget: u64,
    /// The seed, if it matters which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Its log, relative to the study's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
}

/// An objective's name, as an experiment makes it and a report takes it apart: `bfs`,
/// `bfs+kappa5+q0.02`, `bfs+fitted`, `ce+t1.2`, `matched+fitted+distinct`, `bfs@256`.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveLabel {
    /// The objective itself.
    pub base: String,
    /// Its off-trace prior.
    pub prior: PriorLabel,
    /// How it is sampled, where that is not the evaluation's way.
    pub sampling: SamplingLabel,
    /// The budget it was trained for, where the name says so.
    pub trained: Option<u64>,
}

/// How an objective is sampled, in its name.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SamplingLabel {
    /// At which temperature.
    pub temperature: Option<f64>,
    /// Whether no tactic is sampled twice at a node.
    pub distinct: bool,
}

/// An off-trace prior in an objective's name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PriorLabel {
    /// None.
    None,
    /// Fitted to searches of validation theorems.
    Fitted,
    /// Set by hand.
    Given {
        /// Expansions that a miss consumes.
        kappa: Option<f64>,
        /// Probability that a miss is never recovered from.
        absorption: Option<f64>,
    },
}

impl fmt::Display for ObjectiveLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        match self.prior {
            PriorLabel::None => {}
            PriorLabel::Fitted => f.write_str("+fitted")?,
            PriorLabel::Given { kappa, absorption } => {
                kappa.map_or(Ok(()), |kappa| write!(f, "+kappa{kappa}"))?;
                absorption.map_or(Ok(()), |absorption| write!(f, "+q{absorption}"))?;
            }
        }
        self.sampling.temperature.map_or(Ok(()), |t| write!(f, "+t{t}"))?;
        f.write_str(if self.sampling.distinct { "+distinct" } else { "" })?;
        self.trained.map_or(Ok(()), |budget| write!(f, "@{budget}"))
    }
}

impl FromStr for ObjectiveLabel {
    type Err = std::convert::Infallible;

    /// A name that is no such label is an objective of its own.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (untrained, trained) =
            match text.rsplit_once('@').and_then(|(name, n)| Some((name, n.parse().ok()?))) {
                Some((name, n)) => (name, Some(n)),
                None => (text, None),
            };
        let (prior, sampling) = (PriorLabel::None, SamplingLabel::default());
        let other = ObjectiveLabel { base: untrained.into(), prior, sampling, trained };
        let mut parts = untrained.split('+');
        let base = parts.next().unwrap_or_default().to_string();
        let mut label = ObjectiveLabel { base, ..other.clone() };
        let (mut kappa, mut absorption) = (None, None);
        for part in parts {
            let number = |prefix: &str| part.strip_prefix(prefix).and_then(|v| v.parse().ok());
            match part {
                "fitted" => label.prior = PriorLabel::Fitted,
                "distinct" => label.sampling.distinct = true,
                _ => match (number("kappa"), number("q"), number("t")) {
                    (Some(value), ..) => kappa = Some(value),
                    (None, Some(value), _) => absorption = Some(value),
                    (None, None, Some(value)) => label.sampling.temperature = Some(value),
                    // Some other variant: never mistaken for the plain objective.
                    (None, None, None) => return Ok(other),
                },
            }
        }
        if kappa.is_some() || absorption.is_some() {
            label.prior = PriorLabel::Given { kappa, absorption };
        }
        Ok(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_they_are_written() {
        let given = PriorLabel::Given { kappa: Some(5.0), absorption: Some(0.02) };
        let usual = SamplingLabel::default();
        let hot = SamplingLabel { temperature: Some(1.2), distinct: false };
        let both = SamplingLabel { temperature: Some(1.5), distinct: true };
        let kappa = PriorLabel::Given { kappa: Some(3.0), absorption: None };
        for (prior, sampling, trained, text) in [
            (PriorLabel::None, usual, None, "bfs"),
            (PriorLabel::None, usual, Some(256), "bfs@256"),
            (PriorLabel::None, hot, None, "bfs+t1.2"),
            (PriorLabel::Fitted, usual, None, "bfs+fitted"),
            (PriorLabel::Fitted, both, None, "bfs+fitted+t1.5+distinct"),
            (given, usual, None, "bfs+kappa5+q0.02"),
            (kappa, usual, None, "bfs+kappa3"),
            (given, usual, Some(16), "bfs+kappa5+q0.02@16"),
        ] {
            let label = ObjectiveLabel { base: "bfs".into(), prior, sampling, trained };
            assert_eq!(label.to_string(), text);
            assert_eq!(text.parse(), Ok(label));
        }
        let odd: ObjectiveLabel = "bfs+mine".parse().unwrap_or_else(|never| match never {});
        assert_eq!((odd.base.as_str(), odd.prior), ("bfs+mine", PriorLabel::None));
    }
}
