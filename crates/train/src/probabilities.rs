//! Which probabilities an objective is shown. A model that has seen a theorem's proof finds its
//! tactics far more probable than one that has not, and a search meets theorems of the second kind.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Distribution, LEVELS, QuantileMap, Result, Scores, distance};

/// Where the p_t that weights are computed from come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Probabilities {
    /// The model's own, on the traces it is trained on: the paper's reading.
    #[default]
    Training,
    /// The warm-up's on the training traces, mapped rank by rank to those it has on validation
    /// traces ([`QuantileMap`]).
    Mapped,
    /// Those of models trained as the warm-up was on all folds of the traces but the one they
    /// judge.
    CrossFitted,
}

impl fmt::Display for Probabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Probabilities::Training => "training",
            Probabilities::Mapped => "mapped",
            Probabilities::CrossFitted => "cross-fitted",
        })
    }
}

/// What one way of making probabilities comes to, beside what it should come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The way.
    pub probabilities: Probabilities,
    /// The temperature of all of them.
    pub temperature: f64,
    /// The levels of the quantiles.
    pub levels: Vec<f64>,
    /// Those of the training tactics under the warm-up that was trained on them.
    pub training: Distribution,
    /// Those of validation tactics under the same model.
    pub held_out: Distribution,
    /// Those that weights are computed from.
    pub used: Distribution,
    /// [`distance`] of the training ones from the held-out ones.
    pub training_distance: f64,
    /// [`distance`] of those used from the held-out ones.
    pub used_distance: f64,
}

impl Reading {
    /// Compares the scores that weights are to be computed from with the warm-up's own.
    pub fn new(
        probabilities: Probabilities,
        temperature: f64,
        [training, held_out, used]: [&Scores; 3],
    ) -> Self {
        let [training, held_out, used] = [training, held_out, used].map(Scores::log_p);
        Reading {
            probabilities,
            temperature,
            levels: LEVELS.to_vec(),
            training_distance: distance(&training, &held_out),
            used_distance: distance(&used, &held_out),
            training: Distribution::of(&training),
            held_out: Distribution::of(&held_out),
            used: Distribution::of(&used),
        }
    }
}

/// The scores that held-out theorems would have, from one model's on both kinds of traces.
pub fn mapped(training: &Scores, held_out: &Scores) -> Result<Scores> {
    let map = QuantileMap::fit(&training.log_p(), &held_out.log_p())?;
    Ok(training.map(|log_p| map.apply(log_p)))
}
