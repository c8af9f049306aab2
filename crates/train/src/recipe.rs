//! How to train: everything that a run's outcome depends on besides its model, data and objective.
//! The defaults are the paper's.

use std::fmt;
use std::str::FromStr;

use catamount_model::LoraConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The largest temperature that is not taken for a slip of the pen: at 10 nothing of what was
/// learned is left.
pub const HOTTEST: f64 = 10.0;

/// The most examples or tokens that a step may have.
const LARGEST: usize = 1 << 24;

/// The most passes over the data.
const EPOCHS: usize = 1_000_000;

/// The largest rank of an adapter.
const RANK: usize = 1 << 14;

/// A training recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// Seeds the order of the data, adapters and dropout; the same for every branch.
    pub seed: u64,
    /// Passes over the data.
    #[schemars(range(min = 1, max = EPOCHS))]
    pub epochs: usize,
    /// Ends the run, and its schedule, after this many optimizer steps at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_steps: Option<usize>,
    /// Examples (state and tactic) of more tokens than this are dropped and counted.
    #[schemars(range(min = 2, max = LARGEST))]
    pub max_tokens: usize,
    /// A line of metrics is written every so many optimizer steps.
    #[schemars(range(min = 1))]
    pub log_every: usize,
    /// The model is measured on held-out traces, where a run has any, every so many optimizer
    /// steps and at the end; 0 is after each epoch.
    pub validate_every: usize,
    /// The temperature that the model will be sampled at: log p in the weights, in the loss and in
    /// its gradient is that of the logits divided by it. At 1 it is the model's own, the paper's
    /// reading.
    #[schemars(range(max = HOTTEST), extend("exclusiveMinimum" = 0))]
    pub temperature: f64,
    /// What a step consists of.
    pub batch: Batching,
    /// AdamW.
    pub optimizer: Optimizer,
    /// The learning rate's course.
    pub schedule: Schedule,
    /// How an objective's weights enter the loss.
    pub weights: Weighting,
    /// When the state is saved.
    pub checkpoints: Checkpoints,
    /// Trains an adapter on a frozen base; without it, every parameter is trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora: Option<LoraRecipe>,
}

impl Default for Recipe {
    fn default() -> Self {
        Recipe {
            seed: 42,
            epochs: 1,
            max_steps: None,
            max_tokens: 512,
            log_every: 1,
            validate_every: 0,
            temperature: 1.0,
            batch: Batching::default(),
            optimizer: Optimizer::default(),
            schedule: Schedule::default(),
            weights: Weighting::default(),
            checkpoints: Checkpoints::default(),
            lora: None,
        }
    }
}

/// What an optimizer step consists of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Batching {
    /// Whole traces are added to a step until it has at least this many examples (the effective
    /// batch size).
    #[schemars(range(min = 1, max = LARGEST))]
    pub examples: usize,
    /// Token rows of a micro-batch: memory grows with it, results do not depend on it beyond
    /// rounding.
    #[schemars(range(min = 2, max = LARGEST))]
    pub tokens: usize,
    /// Keeps only every block's input and computes the rest again in the backward pass: a third
    /// more time for much less memory.
    pub recompute: bool,
}

impl Default for Batching {
    fn default() -> Self {
        Batching { examples: 64, tokens: 2048, recompute: false }
    }
}

/// AdamW's hyperparameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Optimizer {
    /// The largest learning rate.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub lr: f64,
    /// Decay of the first moment.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub beta1: f64,
    /// Decay of the second moment.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub beta2: f64,
    /// Added to the root of the second moment.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub eps: f64,
    /// Decoupled weight decay of matrices; norms and biases have none.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub weight_decay: f64,
    /// The gradient's global norm is scaled down to this; 0 switches clipping off.
    #[schemars(range(min = 0))]
    pub clip: f64,
}

impl Default for Optimizer {
    fn default() -> Self {
        Optimizer { lr: 1e-4, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01, clip: 1.0 }
    }
}

/// The learning rate's course.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Schedule {
    /// The fraction of all steps over which the learning rate rises.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub warmup: f64,
    /// Whether it then falls linearly towards zero, or stays.
    pub decay: bool,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule { warmup: 0.05, decay: true }
    }
}

/// How an objective's weights enter the loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Weighting {
    /// Which parameters the weights are computed from: `online`, `frozen` or `every K`.
    #[schemars(with = "String", regex(pattern = r"^(online|frozen|every [1-9][0-9]*)$"))]
    pub refresh: Refresh,
    /// What the weighted sum of a step is divided by: `sum`, `tactics`, `tokens` or `weights`.
    pub normalise: Normalise,
    /// The floor: weights below this are raised to it, so that no tactic is forgotten altogether.
    #[schemars(range(min = 0))]
    pub min: f64,
    /// Weights above this are lowered to it (`vdfs` weights may exceed 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max: Option<f64>,
}

impl Default for Weighting {
    fn default() -> Self {
        Weighting { refresh: Refresh::Online, normalise: Normalise::Tactics, min: 0.0, max: None }
    }
}

impl Weighting {
    /// A weight within the recipe's bounds.
    pub fn bound(&self, weight: f64) -> f64 {
        weight.max(self.min).min(self.max.unwrap_or(f64::INFINITY))
    }
}

/// Which parameters the weights are computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Refresh {
    /// The current ones: a trace's tactics are scored in the very pass that trains them.
    Online,
    /// Those the run started from: the warm-up checkpoint's.
    Frozen,
    /// Those of the last step whose number is a multiple of this.
    Every(usize),
}

impl fmt::Display for Refresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refresh::Online => f.write_str("online"),
            Refresh::Frozen => f.write_str("frozen"),
            Refresh::Every(k) => write!(f, "every {k}"),
        }
    }
}

impl FromStr for Refresh {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let every = || text.strip_prefix("every ")?.trim().parse().ok().filter(|k| *k > 0);
        match text {
            "online" => Ok(Refresh::Online),
            "frozen" => Ok(Refresh::Frozen),
            _ => every().map(Refresh::Every).ok_or_else(|| {
                format!(
                    "`{text}` is not a time to refresh weights; use `online`, `frozen` or `every \
                 K`, such as `every 100`"
                )
            }),
        }
    }
}

impl TryFrom<String> for Refresh {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl From<Refresh> for String {
    fn from(refresh: Refresh) -> String {
        refresh.to_string()
    }
}

/// What the weighted sum of a step's cross-entropies is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Normalise {
    /// Nothing.
    Sum,
    /// The step's tactics: the mean over examples.
    Tactics,
    /// The step's target tokens.
    Tokens,
    /// The sum of the step's weights: a weighted mean, so that small weights do not mean small
    /// steps.
    Weights,
}

/// When the state is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Checkpoints {
    /// Every so many optimizer steps; 0 saves only at the end and when interrupted.
    pub every: usize,
    /// How many are kept.
    #[schemars(range(min = 1))]
    pub keep: usize,
}

impl Default for Checkpoints {
    fn default() -> Self {
        Checkpoints { every: 200, keep: 2 }
    }
}

/// The shape of an adapter to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoraRecipe {
    /// r.
    #[schemars(range(min = 1, max = RANK))]
    pub rank: usize,
    /// The correction is multiplied by alpha / r.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub alpha: f32,
    /// Dropout on the adapter's input.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub dropout: f32,
    /// The linear maps that are adapted.
    pub targets: Vec<String>,
}

impl Default for LoraRecipe {
    fn default() -> Self {
        let LoraConfig { rank, alpha, dropout, targets } = LoraConfig::default();
        LoraRecipe { rank, alpha, dropout, targets }
    }
}

impl From<LoraRecipe> for LoraConfig {
    fn from(LoraRecipe { rank, alpha, dropout, targets }: LoraRecipe) -> Self {
        LoraConfig { rank, alpha, dropout, targets }
    }
}

impl Recipe {
    /// Reads a recipe from TOML and checks it.
    pub fn from_toml(text: &str) -> Result<Self> {
        let recipe: Recipe = toml::from_str(text)
            .map_err(|e| Error::Recipe(e.to_string().trim_end().to_string()))?;
        recipe.check()?;
        Ok(recipe)
    }

    /// Refuses what is out of range, naming it.
    pub fn check(&self) -> Result<()> {
        let o = &self.optimizer;
        let refuse = |key: &str, value: &dyn fmt::Display, wanted: &str| {
            let (key, value, wanted) = (key.into(), value.to_string(), wanted.into());
            Err(Error::Setting { key, value, wanted })
        };
        let at_most = |key: &str, n: usize, most: usize| {
            if n > most { refuse(key, &n, &format!("at most {most}")) } else { Ok(()) }
        };
        let in_unit = |x: f64| (0.0..1.0).contains(&x);
        let count =
            |key: &str, n: usize| if n == 0 { refuse(key, &n, "at least 1") } else { Ok(()) };
        if !(o.lr > 0.0 && o.lr <= 1.0) {
            return refuse("optimizer.lr", &o.lr, "above 0 and at most 1 (the paper uses 1e-4)");
        }
        for (key, value) in [("optimizer.beta1", o.beta1), ("optimizer.beta2", o.beta2)] {
            if !in_unit(value) {
                return refuse(key, &value, "in [0, 1)");
            }
        }
        if !(o.eps > 0.0 && o.eps < 1.0) {
            return refuse("optimizer.eps", &o.eps, "above 0 and below 1");
        }
        if !in_unit(o.weight_decay) {
            return refuse("optimizer.weight_decay", &o.weight_decay, "in [0, 1)");
        }
        if !(o.clip >= 0.0 && o.clip.is_finite()) {
            return refuse(
                "optimizer.clip",
                &o.clip,
                "a finite number of at least 0 (0 switches clipping off)",
            );
        }
        if !in_unit(self.schedule.warmup) {
            return refuse(
                "schedule.warmup",
                &self.schedule.warmup,
                "a fraction of all steps in [0, 1)",
            );
        }
        let w = &self.weights;
        if !(w.min >= 0.0 && w.min.is_finite()) {
            return refuse("weights.min", &w.min, "a finite number of at least 0");
        }
        if let Some(max) = w.max.filter(|max| !(*max > 0.0 && *max >= w.min && max.is_finite())) {
            return refuse(
                "weights.max",
                &max,
                "a finite number above 0 and not below `weights.min`",
            );
        }
        if !(self.temperature > 0.0 && self.temperature <= HOTTEST) {
            let wanted = format!("above 0 and at most {HOTTEST} (1 is the model's own)");
            return refuse("temperature", &self.temperature, &wanted);
        }
        count("epochs", self.epochs)?;
        count("log_every", self.log_every)?;
        count("batch.examples", self.batch.examples)?;
        count("checkpoints.keep", self.checkpoints.keep)?;
        if let Some(steps) = self.max_steps {
            count("max_steps", steps)?;
        }
        // Beyond these a slip of the pen asks for more memory than there is.
        at_most("epochs", self.epochs, EPOCHS)?;
        at_most("batch.examples", self.batch.examples, LARGEST)?;
        at_most("batch.tokens", self.batch.tokens, LARGEST)?;
        at_most("max_tokens", self.max_tokens, LARGEST)?;
        at_most("lora.rank", self.lora.as_ref().map_or(0, |lora| lora.rank), RANK)?;
        if self.max_tokens < 2 {
            return refuse("max_tokens", &self.max_tokens, "at least 2: a state and a tactic");
        }
        if self.batch.tokens < self.max_tokens {
            let wanted = format!(
                "at least `max_tokens = {}`, so that the longest example fits",
                self.max_tokens
            );
            return refuse("batch.tokens", &self.batch.tokens, &wanted);
        }
        if let Some(lora) = &self.lora {
            count("lora.rank", lora.rank)?;
            if !in_unit(f64::from(lora.dropout)) {
                return refuse("lora.dropout", &lora.dropout, "in [0, 1)");
            }
            if !(lora.alpha > 0.0 && lora.alpha.is_finite()) {
                return refuse("lora.alpha", &lora.alpha, "a finite number above 0");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_papers_and_survive_toml() {
        let recipe = Recipe { lora: Some(LoraRecipe::default()), ..Recipe::default() };
        assert_eq!(
            (recipe.optimizer.lr, recipe.schedule.warmup, recipe.batch.examples),
            (1e-4, 0.05, 64)
        );
        assert_eq!((recipe.optimizer.clip, recipe.max_tokens, recipe.seed), (1.0, 512, 42));
        assert_eq!(Recipe::from_toml(&toml::to_string(&recipe).unwrap()).unwrap(), recipe);
        assert_eq!(Recipe::from_toml("").unwrap(), Recipe::default());
        let short = Recipe::from_toml(
            "[weights]\nrefresh = \"every 50\"\nnormalise = \"weights\"\n[lora]\nrank = 4",
        )
        .unwrap();
        assert_eq!(short.weights.refresh, Refresh::Every(50));
        assert_eq!(short.lora.unwrap(), LoraRecipe { rank: 4, ..LoraRecipe::default() });
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, words) in [
            ("[optimizer]\nlr = 3.0", "`optimizer.lr = 3`"),
            ("[optimizer]\nlr = 0.0", "`optimizer.lr = 0`"),
            ("[optimizer]\nlr = nan", "`optimizer.lr = NaN`"),
            ("[optimizer]\nlrr = 1e-4", "unknown field `lrr`"),
            ("[optimizer]\nbeta2 = 1.0", "`optimizer.beta2 = 1`"),
            ("[schedule]\nwarmup = 5", "`schedule.warmup = 5`"),
            ("temperature = 0.0", "`temperature = 0`"),
            ("temperature = 80", "`temperature = 80`"),
            ("epochs = 0", "`epochs = 0`"),
            ("epochs = -1", "line 1"),
            ("[batch]\ntokens = 100", "`batch.tokens = 100`"),
            ("[weights]\nrefresh = \"sometimes\"", "`every 100`"),
            ("[weights]\nmin = 0.5\nmax = 0.2", "`weights.max = 0.2`"),
            ("[lora]\ndropout = 1.5", "`lora.dropout = 1.5`"),
        ] {
            let error = Recipe::from_toml(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
