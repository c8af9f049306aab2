//! The model on traces it is not trained on.

use catamount_model::Backend;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::score::score_examples;
use crate::step::Stepper;
use crate::{Dataset, Result};

/// Held-out probabilities at the recipe's temperature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// The mean over tactics of -log p.
    pub ce: f64,
    /// The mean over target tokens of -log p.
    pub ce_token: f64,
    /// The mean over tactics of p.
    pub p_mean: f64,
    /// The median over tactics of p.
    pub p_median: f64,
    /// Tactics measured on; those that are not finite are left out.
    pub tactics: usize,
}

impl<B: Backend> Stepper<'_, B> {
    /// Measures the model, without dropout, as it stands.
    pub fn validate(&mut self, held_out: &Dataset) -> Result<Validation> {
        let Stepper { model, recipe, acts, batch, .. } = self;
        let (mut log_p, mut targets) = (Vec::with_capacity(held_out.examples()), 0);
        let items = (0..held_out.examples()).map(|e| (e, held_out.example(e)));
        let each = |example: usize, value: f64| {
            if value.is_finite() {
                log_p.push(value);
                targets += held_out.example(example).1.len();
            }
        };
        score_examples(model, recipe.temperature, acts, batch, items, each, &mut |_| true)?;
        let found = Distribution::of(&log_p);
        let total: f64 = log_p.iter().sum();
        Ok(Validation {
            ce: -found.log_p_mean,
            ce_token: if targets == 0 { 0.0 } else { -total / targets as f64 },
            p_mean: found.p_mean,
            p_median: found.p_median,
            tactics: found.tactics,
        })
    }
}
