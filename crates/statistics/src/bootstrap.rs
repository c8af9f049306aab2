//! The bootstrap over theorems: a cross-check on the closed-form interval that assumes no variance
//! formula.

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// A percentile interval from resampled theorems.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// 2.5th percentile of the resampled means.
    pub low: f64,
    /// 97.5th percentile.
    pub high: f64,
    /// How many resamples.
    pub resamples: u32,
    /// The seed of the resampling.
    pub seed: u64,
}

/// The 95 % percentile interval of the mean of per-theorem values, theorems drawn with replacement.
///
/// Give one value per theorem: a theorem is the unit that is drawn. `None` without theorems or
/// resamples, or with a value that is not finite.
pub fn bootstrap(values: &[f64], resamples: u32, seed: u64) -> Option<Bootstrap> {
    let values: Vec<(f64, u64)> = values.iter().map(|&value| (value, 1)).collect();
    bootstrap_searches(&values, resamples, seed)
}

/// The same for theorems with several searches each: give the sum over a theorem's searches and how
/// many there are. The mean is over searches, as the gain is; what is drawn is still the theorem.
pub fn bootstrap_searches(sums: &[(f64, u64)], resamples: u32, seed: u64) -> Option<Bootstrap> {
    let odd = |(sum, searches): &(f64, u64)| !sum.is_finite() || *searches == 0;
    if sums.is_empty() || resamples == 0 || sums.iter().any(odd) {
        return None;
    }
    let mut random = Random::new(seed);
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| {
            let (mut total, mut count) = (0.0, 0);
            for _ in 0..sums.len() {
                let (sum, searches) = sums[random.below(sums.len())];
                total += sum;
                count += searches;
            }
            total / count as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[((share * f64::from(resamples)) as usize).min(means.len() - 1)];
    Some(Bootstrap { low: at(0.025), high: at(0.975), resamples, seed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_normal_interval_on_plain_data() {
        // 37 up, 9 down of 407: the paper's largest gain.
        let values: Vec<f64> = (0..407)
            .map(|i| {
                if i < 37 {
                    1.0
                } else if i < 46 {
                    -1.0
                } else {
                    0.0
                }
            })
            .collect();
        let found = bootstrap(&values, 4000, 1).unwrap();
        assert!(
            (found.low - 0.036).abs() < 0.006 && (found.high - 0.101).abs() < 0.006,
            "{found:?}"
        );
        assert_eq!(bootstrap(&values, 4000, 1), Some(found), "seeded");
        assert_ne!(bootstrap(&values, 4000, 2), Some(found));
        assert_eq!(bootstrap(&[], 10, 1), None);
        assert_eq!(bootstrap(&[f64::NAN], 10, 1), None);
    }

    #[test]
    fn a_theorem_with_more_searches_weighs_more() {
        // Half of the theorems gain at all of three searches, half lose at their only one.
        let sums: Vec<(f64, u64)> =
            (0..400).map(|i| if i % 2 == 0 { (3.0, 3) } else { (-1.0, 1) }).collect();
        let found = bootstrap_searches(&sums, 2000, 1).unwrap();
        assert!(found.low < 0.5 && 0.5 < found.high && found.low > 0.4, "{found:?}");
        assert_eq!(bootstrap_searches(&[(1.0, 0)], 10, 1), None);
    }
}
