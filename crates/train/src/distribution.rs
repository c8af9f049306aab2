//! How the probabilities of tactics are distributed, and how far apart two such distributions are.

use serde::{Deserialize, Serialize};

/// The quantiles that are kept of a distribution.
pub const LEVELS: [f64; 15] =
    [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99];
/// Levels at which two distributions are compared.
const COMPARED: usize = 1000;

/// log p over many tactics, in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many.
    pub tactics: usize,
    /// The mean of log p.
    pub log_p_mean: f64,
    /// The mean of p.
    pub p_mean: f64,
    /// The median of p.
    pub p_median: f64,
    /// [`LEVELS`] of log p.
    pub log_p_quantiles: Vec<f64>,
}

impl Distribution {
    /// Of these log-probabilities.
    pub fn of(log_p: &[f64]) -> Self {
        let sorted = sorted(log_p);
        let mean = |sum: f64| if sorted.is_empty() { 0.0 } else { sum / sorted.len() as f64 };
        Distribution {
            tactics: sorted.len(),
            log_p_mean: mean(sorted.iter().sum()),
            p_mean: mean(sorted.iter().map(|l| l.exp()).sum()),
            p_median: quantile(&sorted, 0.5).map_or(0.0, f64::exp),
            log_p_quantiles: LEVELS.iter().filter_map(|q| quantile(&sorted, *q)).collect(),
        }
    }
}

/// The mean difference between the probabilities that two sets of tactics have at the same rank:
/// the area between their distributions of p (Wasserstein's distance), between 0 and 1.
pub fn distance(one: &[f64], other: &[f64]) -> f64 {
    let (one, other) = (sorted(one), sorted(other));
    let levels = (0..COMPARED).map(|i| (i as f64 + 0.5) / COMPARED as f64);
    let apart = levels.filter_map(|level| {
        Some((quantile(&one, level)?.exp() - quantile(&other, level)?.exp()).abs())
    });
    apart.sum::<f64>() / COMPARED as f64
}

/// In ascending order.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// A quantile of ascending values by linear interpolation; none of nothing.
pub(crate) fn quantile(ascending: &[f64], level: f64) -> Option<f64> {
    let place = level * ascending.len().checked_sub(1)? as f64;
    let (low, high) = (ascending[place.floor() as usize], ascending[place.ceil() as usize]);
    Some(low + (high - low) * place.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let hundred: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!([0.05, 0.5, 0.95].map(|q| quantile(&hundred, q).unwrap()), [5.0, 50.0, 95.0]);
        assert_eq!(quantile(&[1.0, 2.0], 0.5), Some(1.5));
        assert_eq!(quantile(&[3.0], 0.99), Some(3.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn distances_are_areas() {
        let certain = [0.0; 7];
        let even = [0.5f64.ln(); 3];
        assert_eq!(distance(&certain, &certain), 0.0);
        assert!((distance(&certain, &even) - 0.5).abs() < 1e-12);
        // p uniform against p = 1: half the square.
        let uniform: Vec<f64> = (1..=2000).map(|i| (f64::from(i) / 2000.0).ln()).collect();
        assert!((distance(&uniform, &certain) - 0.5).abs() < 1e-3);
    }

    #[test]
    fn nothing_has_a_distribution_too() {
        assert_eq!(Distribution::of(&[]), Distribution::default());
        let one = Distribution::of(&[-2.0]);
        assert_eq!((one.tactics, one.log_p_mean, one.p_median), (1, -2.0, (-2.0f64).exp()));
        assert_eq!(one.log_p_quantiles, [-2.0; LEVELS.len()]);
    }
}
