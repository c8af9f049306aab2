//! An experiment, parsed: nothing in it is a name that still has to be understood, and nothing is
//! out of range.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use catamount_data::{LeanLimits, Making, Source};
use catamount_objective::{Objective, Prior, Surrogate};
use catamount_report::{ObjectiveLabel, PriorLabel, SamplingLabel};
use catamount_search::{Deployment, Overrides, SettingError, StrategyKind, Value};
use catamount_traces::{Origin, Split, Steps};
use catamount_train::{Probabilities, Recipe};

use crate::file::{Arithmetic, Cells, ExperimentFile, TokenizerKind};
use crate::prover::bundled;

/// One study.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// For titles.
    pub name: String,
    /// Seed of the split, of initialisation and of every search; recipes have their own.
    pub seed: u64,
    /// Several seeds as one study; none for the one above.
    pub seeds: Vec<u64>,
    /// Seed of the split, if it is not the study's.
    pub split_seed: Option<u64>,
    /// Where traces come from.
    pub data: Data,
    /// What is trained.
    pub model: ModelChoice,
    /// The common ancestor: cross-entropy.
    pub warm_up: Recipe,
    /// Every branch: the same recipe, another weight.
    pub branch: Recipe,
    /// Parts of the training traces that cross-fitted probabilities are made with.
    pub folds: usize,
    /// What the branches are trained with.
    pub objectives: Vec<ObjectiveChoice>,
    /// What they are searched with.
    pub evaluation: Evaluation,
    /// Whether a choice on validation theorems is searched, too.
    pub auto: bool,
    /// What it is made among.
    pub tune: Tune,
    /// The server that samples, if this machine does not.
    pub policy: Option<Server>,
    /// All of it as it was written, for keys and for the report.
    pub file: ExperimentFile,
}

/// A server that samples adapters of the study's base.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its address.
    pub url: String,
    /// The name of the only branch there, which it has loaded.
    pub model: Option<String>,
    /// The names of branches there, which it has loaded.
    pub adapters: BTreeMap<String, String>,
    /// Whether chats are asked for.
    pub chat: bool,
    /// The prompt as text, in place of tokens as in training.
    pub prompt: Option<String>,
    /// Texts that end a tactic, beside the model's own end.
    pub stop: Vec<String>,
    /// Requests under way at once.
    pub concurrency: usize,
    /// Longest wait for one answer.
    pub timeout: Duration,
    /// How often a request is sent again.
    pub retries: u32,
    /// Whether a state's samples are asked for in one request.
    pub grouped: bool,
}

/// The prover, and the library its theorems live in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Metamath.
    Metamath {
        /// A database, by path or by name.
        database: PathBuf,
        /// Only its first so many theorems.
        first: Option<usize>,
    },
    /// Lean.
    Lean {
        /// A Lake project; none is the bundled library.
        project: Option<PathBuf>,
    },
    /// Lean without a toolchain, in libraries that are compiled once.
    LeanCorpora {
        /// Their recipes, by name or by path.
        recipes: Vec<String>,
        /// Where the checkouts are.
        checkouts: PathBuf,
    },
}

/// Which traces are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceChoice {
    /// The library's own proofs.
    Own,
    /// One file, split by the experiment.
    File(PathBuf),
    /// The official parts of a benchmark.
    Parts {
        /// To train on.
        train: PathBuf,
        /// To choose settings on.
        valid: PathBuf,
        /// To report results on.
        test: PathBuf,
    },
}

/// Where traces come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// The prover.
    pub environment: Environment,
    /// What Lean may spend.
    pub limits: LeanLimits,
    /// Lean's workers, where the file says.
    pub workers: Option<usize>,
    /// Which traces.
    pub traces: TraceChoice,
    /// The repository behind them, where the file says so.
    pub origin: Option<Origin>,
    /// Lengths of the traces to train on.
    pub steps: Steps,
    /// Shares of train, valid and test.
    pub split: Split,
    /// Train on at most so many traces, always the same ones.
    pub limit: Option<usize>,
}

/// What is trained: a new model, or one that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        /// How the tokenizer is made.
        tokenizer: TokenizerKind,
    },
}

/// One objective to train with.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveChoice {
    /// Its name, unique in the experiment.
    pub name: String,
    /// Its row in tables, which it may share with others under other strategies.
    pub row: String,
    /// The one strategy that it is deployed under; wherever it belongs if none.
    pub under: Option<StrategyKind>,
    /// The objective.
    pub objective: Objective,
    /// Expansions to train for; every evaluation budget in turn if none.
    pub budget: Option<u64>,
    /// The off-trace prior.
    pub prior: PriorChoice,
    /// Which probabilities its weights are computed from.
    pub probabilities: Probabilities,
    /// The temperature that log p is taken at in weights and loss.
    pub temperature: f64,
    /// Weights below this are raised to it.
    pub floor: f64,
    /// What its deployments have besides strategy and budget.
    pub deployed: Overrides,
}

/// The candidates of `auto`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tune {
    /// Temperatures to sample every candidate at.
    pub temperatures: Vec<f64>,
    /// Objectives to train with; `ua` and the strategy's own if empty.
    pub objectives: Vec<Objective>,
    /// Whether the fitted surrogate is a candidate.
    pub fitted: bool,
    /// Shares of the deployed budget to train for.
    pub shares: Vec<f64>,
    /// Floors on the weights.
    pub floors: Vec<f64>,
    /// At most so many validation theorems.
    pub theorems: usize,
    /// Which probabilities their weights are computed from.
    pub probabilities: Probabilities,
}

/// An off-trace prior.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PriorChoice {
    /// The trace-supported surrogate itself.
    None,
    /// Set by hand.
    Given(Prior),
    /// Fitted to the warm-up model's own searches of validation theorems.
    Fitted,
}

/// How the branches are searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Strategies to deploy.
    pub strategies: Vec<StrategyKind>,
    /// Expansions per theorem.
    pub budgets: Vec<u64>,
    /// What every deployment has besides: parameters, temperature, longest tactic.
    pub overrides: Overrides,
    /// Which (objective, strategy) pairs.
    pub cells: Cells,
    /// Demonstrated lengths of the held-out theorems.
    pub steps: Steps,
    /// At most so many theorems.
    pub limit: Option<usize>,
    /// Searches in flight.
    pub concurrency: usize,
    /// Samples decoded together.
    pub batch: usize,
    /// Theorems whose whole search trees are kept.
    pub trees: usize,
    /// Validation theorems that surrogates are fitted to.
    pub trials: usize,
    /// Wall-clock cap per search.
    pub time_limit: Option<Duration>,
    /// Wall-clock cap per theorem over all strategies of one objective.
    pub theorem_time_limit: Option<Duration>,
}

impl Experiment {
    /// Whether the products of the frozen base are in fp8.
    pub fn is_fp8(&self) -> bool {
        self.file.model.arithmetic == Some(Arithmetic::Fp8)
    }

    /// How the study's data are made.
    pub fn making(&self, folder: &Path) -> Making {
        let source = match (&self.data.traces, &self.data.environment) {
            (TraceChoice::File(file), _) => Source::Traces(file.clone()),
            (TraceChoice::Parts { train, valid, test }, _) => {
                Source::Parts { train: train.clone(), valid: valid.clone(), test: test.clone() }
            }
            (TraceChoice::Own, Environment::Metamath { database, first }) => {
                Source::Metamath { database: database.clone(), first: *first }
            }
            (TraceChoice::Own, Environment::Lean { .. } | Environment::LeanCorpora { .. }) => {
                Source::LeanBundled { folder: bundled(folder) }
            }
        };
        Making {
            source,
            origin: self.data.origin.clone(),
            steps: self.lengths(),
            split: self.data.split,
            seed: self.split_seed.unwrap_or(self.seed),
        }
    }

    /// The folders of its studies, in a folder: one for each of several seeds, or that itself.
    pub fn folders(&self, folder: &Path) -> Vec<PathBuf> {
        match self.seeds[..] {
            [] => vec![folder.to_path_buf()],
            _ => self.seeds.iter().map(|seed| folder.join(format!("seed-{seed}"))).collect(),
        }
    }

    /// The same experiment at one seed: of the split (unless it has its own), of initialisation, of
    /// both recipes and of every search.
    pub fn at_seed(&self, seed: u64) -> Experiment {
        let mut one = self.clone();
        one.seeds.clear();
        one.file.seeds.clear();
        let recipes = [&mut one.warm_up, &mut one.branch];
        recipes.into_iter().for_each(|recipe| recipe.seed = seed);
        let recipes = [&mut one.file.warm_up, &mut one.file.branch];
        recipes.into_iter().for_each(|recipe| recipe.seed = seed);
        (one.seed, one.file.seed) = (seed, seed);
        one
    }

    /// An objective that is not in the file, trained for the temperature it is sampled at.
    pub(crate) fn choice(
        &self,
        name: String,
        objective: Objective,
        budget: u64,
        prior: PriorChoice,
        temperature: f64,
    ) -> std::result::Result<ObjectiveChoice, SettingError> {
        let mut deployed = self.evaluation.overrides.clone();
        deployed.set("temperature", Value::Real(temperature))?;
        Ok(ObjectiveChoice {
            row: name.clone(),
            name,
            under: None,
            objective,
            budget: Some(budget),
            prior,
            probabilities: self.tune.probabilities,
            temperature,
            floor: self.branch.weights.min,
            deployed,
        })
    }

    /// Lengths that either training or evaluation asks for.
    pub(crate) fn lengths(&self) -> Steps {
        let (train, search) = (self.data.steps, self.evaluation.steps);
        let max = train.max.zip(search.max).map(|(a, b)| a.max(b));
        Steps { min: train.min.min(search.min), max }
    }
}

impl Evaluation {
    /// How a strategy is deployed at a budget.
    pub fn deployment(
        &self,
        strategy: StrategyKind,
        budget: u64,
    ) -> std::result::Result<Deployment, SettingError> {
        Deployment::overridden(strategy, budget, &self.overrides)
    }
}

impl ObjectiveChoice {
    /// How its branches are deployed under a strategy at a budget.
    pub(crate) fn deployment(
        &self,
        strategy: StrategyKind,
        budget: u64,
    ) -> std::result::Result<Deployment, SettingError> {
        Deployment::overridden(strategy, budget, &self.deployed)
    }

    /// Whether another objective's branch is this one's: only their deployments differ. What is
    /// fitted to searches depends on how they sampled.
    pub(crate) fn trains_as(&self, other: &ObjectiveChoice) -> bool {
        let training = |choice: &ObjectiveChoice| {
            (choice.objective, choice.budget, choice.prior, choice.made_beforehand())
        };
        self.prior != PriorChoice::Fitted
            && training(self) == training(other)
            && (self.temperature, self.floor) == (other.temperature, other.floor)
    }

    /// The budgets that branches of this objective are trained for, given those of the evaluation;
    /// cross-entropy knows none.
    pub(crate) fn budgets(&self, evaluation: &[u64]) -> Vec<u64> {
        match (self.objective, self.budget) {
            (Objective::Ce, _) => vec![0],
            (_, Some(budget)) => vec![budget],
            (_, None) => evaluation.to_vec(),
        }
    }

    /// The surrogate that a branch is trained with, once its prior is known. Pass@N counts
    /// rollouts; the paper trains with a quarter of the expansions.
    pub(crate) fn surrogate(&self, budget: u64) -> Surrogate {
        let pass = self.objective == Objective::Pass;
        Surrogate::new(self.objective, if pass { (budget / 4).max(1) } else { budget })
    }

    /// How the probabilities its weights are computed from are made beforehand, if they are.
    pub(crate) fn made_beforehand(&self) -> Option<Probabilities> {
        let made = self.objective != Objective::Ce && self.probabilities != Probabilities::Training;
        made.then_some(self.probabilities)
    }

    /// The recipe of its branches, given that of all.
    pub(crate) fn recipe(&self, branch: &Recipe) -> Recipe {
        let mut recipe = branch.clone();
        (recipe.temperature, recipe.weights.min) = (self.temperature, self.floor);
        recipe
    }

    /// Whether the objective belongs under a strategy: the search-agnostic ones everywhere, the
    /// others under the strategies they model.
    pub(crate) fn belongs_under(&self, strategy: StrategyKind) -> bool {
        match self.under {
            Some(under) => under == strategy,
            None => {
                matches!(self.objective, Objective::Ce | Objective::Ua)
                    || strategy.is_modelled_by(self.objective)
            }
        }
    }
}

/// The name of an objective to which the file gives none.
pub(crate) fn label(base: &str, prior: PriorChoice, sampling: SamplingLabel) -> String {
    let prior = match prior {
        PriorChoice::None => PriorLabel::None,
        PriorChoice::Fitted => PriorLabel::Fitted,
        PriorChoice::Given(prior) => {
            let (kappa, absorption) = (Some(prior.kappa()), Some(prior.absorption()));
            PriorLabel::Given { kappa, absorption }
        }
    };
    ObjectiveLabel { base: base.to_string(), prior, sampling, trained: None }.to_string()
}
