//! The experiment's file.

use std::path::{Path, PathBuf};

use catamount_objective::{Objective, Prior, Surrogate};
use catamount_search::{Deployment, Overrides, SettingError, StrategyKind};
use catamount_traces::{Share, Split, Steps};
use catamount_train::Recipe;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// One study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// For titles.
    pub name: String,
    /// Seed of the split, of initialisation and of every search; recipes have their own.
    #[serde(default = "seed")]
    pub seed: u64,
    /// Where traces come from.
    pub data: Data,
    /// What is trained.
    pub model: ModelChoice,
    /// The common ancestor: cross-entropy.
    #[serde(default)]
    pub warm_up: Recipe,
    /// Every branch: the same recipe, another weight.
    #[serde(default)]
    pub branch: Recipe,
    /// What the branches are trained with.
    pub objectives: Vec<ObjectiveChoice>,
    /// What they are searched with.
    #[serde(default)]
    pub evaluation: Evaluation,
}

/// Where traces come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// The prover: `metamath` or `lean`.
    pub environment: String,
    /// Metamath: a database, by path or by name. Its own proofs are the traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Metamath: only the first so many theorems of the database. set.mm begins with logic, where
    /// few labels say most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// A file of traces in any known format, split by the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<PathBuf>,
    /// Lean: the Lake project, or folder of files, that the traces' theorems live in. The bundled
    /// library if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// Lengths of the traces to train on.
    #[serde(with = "text", default = "every_length")]
    pub steps: Steps,
    /// Shares of train, valid and test.
    #[serde(with = "text", default = "nine_tenths")]
    pub split: Split,
    /// Train on at most so many traces, always the same ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

fn seed() -> u64 {
    42
}

fn every_length() -> Steps {
    Steps::ALL
}

fn nine_tenths() -> Split {
    Split { train: Share::Fraction(0.9), valid: Share::Fraction(0.05), test: Share::Fraction(0.05) }
}

/// What is trained: a new model, or one that is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, untagged)]
pub enum ModelChoice {
    /// A Hugging Face folder, a GGUF file, or a name on the Hugging Face hub.
    Pretrained {
        /// Which.
        base: String,
    },
    /// From scratch, with a tokenizer trained on the traces.
    Scratch {
        /// Width.
        hidden: usize,
        /// Blocks.
        layers: usize,
        /// Tokens in the vocabulary.
        vocab: usize,
        /// Longest sequence.
        positions: usize,
        /// `symbols` (Metamath) or `bpe`.
        tokenizer: String,
    },
}

/// One branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveChoice {
    /// ce, ua, pass, bfs, dfs, rdfs, vdfs or mcts.
    pub objective: String,
    /// Name in tables; made from the rest if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Expansions to train for; every evaluation budget in turn if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// The off-trace prior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<PriorChoice>,
}

/// An off-trace prior: set by hand, or measured on the warm-up model's own searches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum PriorChoice {
    /// By hand.
    Given {
        /// Expansions a miss consumes.
        kappa: f64,
        /// Probability that a miss is never recovered from.
        #[serde(default)]
        absorption: f64,
    },
    /// `"measured"`.
    Named(String),
}

/// Which cells are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cells {
    /// `ce` and `ua` under every strategy; the others under the strategy they are made for.
    Matched,
    /// Every objective under every strategy.
    All,
}

/// How the branches are searched. The defaults are the paper's, on every held-out theorem and
/// without its limits on time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evaluation {
    /// Strategies to deploy.
    pub strategies: Vec<StrategyKind>,
    /// Expansions per theorem.
    pub budgets: Vec<u64>,
    /// Which (objective, strategy) pairs.
    pub cells: Cells,
    /// Demonstrated lengths of the held-out theorems.
    #[serde(with = "text")]
    pub steps: Steps,
    /// At most so many theorems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Sampling temperature.
    pub temperature: f32,
    /// Longest tactic, in tokens.
    pub max_tokens: usize,
    /// Searches in flight.
    pub concurrency: usize,
    /// Samples decoded together.
    pub batch: usize,
    /// Theorems (the first of the pool) whose whole search trees are kept for the viewer.
    pub trees: usize,
    /// Wall-clock cap per search, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<f64>,
    /// Wall-clock cap per theorem over all strategies of one objective, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theorem_time_limit: Option<f64>,
    /// The strategies' parameters.
    #[serde(default)]
    pub search: Overrides,
}

impl Default for Evaluation {
    fn default() -> Self {
        Evaluation {
            strategies: StrategyKind::ALL.to_vec(),
            budgets: vec![256],
            cells: Cells::Matched,
            steps: Steps { min: 2, max: Some(5) },
            limit: None,
            temperature: 0.8,
            max_tokens: 128,
            concurrency: 128,
            batch: 128,
            trees: 24,
            time_limit: None,
            theorem_time_limit: None,
            search: Overrides::default(),
        }
    }
}

impl Evaluation {
    /// How a strategy is deployed at a budget.
    pub fn deployment(
        &self,
        strategy: StrategyKind,
        budget: u64,
    ) -> std::result::Result<Deployment, SettingError> {
        // Through text: the nearest f64 of 0.8f32 is not 0.8.
        let temperature = self.temperature.to_string().parse::<f64>().unwrap_or(f64::NAN);
        Deployment::overridden(strategy, budget, &self.search)?
            .with("temperature", temperature)?
            .with("max_tokens", self.max_tokens as u64)
    }
}

impl Experiment {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        Experiment::parse(&text, &path.display().to_string())
    }

    /// Parses the text of a file; `source` names it in errors.
    pub fn parse(text: &str, source: &str) -> Result<Self> {
        let experiment: Experiment = toml::from_str(text).map_err(|error| {
            let hint = nearest_key(&error.to_string())
                .map(|key| format!("did you mean `{key}`?"))
                .unwrap_or_default();
            Error::Config(format!("{source}: {error}{hint}"))
        })?;
        experiment.check().map_err(|reason| Error::Config(format!("{source}: {reason}")))?;
        Ok(experiment)
    }

    fn check(&self) -> std::result::Result<(), String> {
        let evaluation = &self.evaluation;
        if evaluation.budgets.is_empty() || evaluation.budgets.contains(&0) {
            return Err("evaluation.budgets needs at least one budget, each of at least 1".into());
        }
        for &strategy in &evaluation.strategies {
            for &budget in &evaluation.budgets {
                evaluation.deployment(strategy, budget).map_err(|error| error.to_string())?;
            }
        }
        if evaluation.strategies.is_empty() || self.objectives.is_empty() {
            return Err("at least one strategy and one objective are needed".into());
        }
        for recipe in [&self.warm_up, &self.branch] {
            recipe.check().map_err(|error| error.to_string())?;
        }
        let mut names = std::collections::HashSet::new();
        for choice in &self.objectives {
            let prior = match &choice.prior {
                Some(PriorChoice::Named(name)) if name != "measured" => {
                    return Err(format!(
                        "unknown prior `{name}`; give {{ kappa = 5, absorption = 0.02 }} or \
                         \"measured\""
                    ));
                }
                Some(PriorChoice::Given { kappa, absorption }) => {
                    Prior::new(*kappa, *absorption).map_err(|error| error.to_string())?
                }
                _ => Prior::NONE,
            };
            let objective = choice.objective()?;
            if objective == Objective::Pass && matches!(choice.prior, Some(PriorChoice::Named(_))) {
                return Err("`pass` cannot take a measured prior: its budget counts rollouts, so \
                 it has no kappa"
                    .into());
            }
            Surrogate::new(objective, 1).with_prior(prior).map_err(|error| error.to_string())?;
            if !names.insert(choice.label()) {
                return Err(format!(
                    "two objectives are called `{}`; give one of them another name",
                    choice.label()
                ));
            }
        }
        match (self.data.environment.as_str(), &self.data.database, &self.data.traces) {
            ("metamath", None, _) => {
                Err("data.database is missing: the Metamath database, such as \"set.mm\"".into())
            }
            ("metamath" | "lean", ..) => Ok(()),
            (other, ..) => {
                Err(format!("unknown environment `{other}`; the known ones are metamath, lean"))
            }
        }
    }
}

impl ObjectiveChoice {
    /// The objective.
    pub fn objective(&self) -> std::result::Result<Objective, String> {
        self.objective
            .parse()
            .map_err(|error: catamount_objective::ObjectiveError| error.to_string())
    }

    /// The name in tables.
    pub fn label(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        match &self.prior {
            None => self.objective.clone(),
            Some(PriorChoice::Named(name)) => format!("{}+{name}", self.objective),
            Some(PriorChoice::Given { kappa, absorption }) => {
                format!("{}+kappa{kappa}+q{absorption}", self.objective)
            }
        }
    }
}

/// The nearest known key to the unknown one that a message complains of.
fn nearest_key(message: &str) -> Option<String> {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (unknown, known) = quoted.split_first()?;
    if !message.contains("unknown field") {
        return None;
    }
    catamount_base::nearest(unknown, known.iter().copied()).map(str::to_string)
}

/// Values that are written as text: `2-5`, `0.9,0.05,0.05`.
mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least that a file must say; the rest is the paper's.
    const SHORT: &str = r#"
name = "mine"
data = { environment = "lean", traces = "traces.jsonl", project = "lake" }
model = { base = "model" }
objectives = [{ objective = "ce" }, { objective = "bfs" }]
"#;

    #[test]
    fn a_short_file_is_filled_in_and_survives_toml() {
        let short = Experiment::parse(SHORT, "short.toml").unwrap();
        assert_eq!(
            (short.seed, short.evaluation.clone(), short.branch.clone()),
            (42, Evaluation::default(), Recipe::default())
        );
        assert_eq!(short.evaluation.limit, None);
        let whole = toml::to_string(&short).unwrap();
        assert_eq!(Experiment::parse(&whole, "whole.toml").unwrap(), short);
    }

    #[test]
    fn what_is_missing_or_misspelt_is_named() {
        let missing = Experiment::parse(&SHORT.replace("model = ", "# "), "short.toml")
            .unwrap_err()
            .to_string();
        assert!(missing.contains("short.toml") && missing.contains("model"), "{missing}");
        let misspelt =
            Experiment::parse(&format!("{SHORT}[evaluation]\nbudget = [4]\n"), "short.toml")
                .unwrap_err()
                .to_string();
        assert!(misspelt.contains("budgets"), "{misspelt}");
    }
}
