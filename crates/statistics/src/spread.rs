//! How much a number differs from seed to seed.

use serde::{Deserialize, Serialize};

/// One number at several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many seeds.
    pub seeds: usize,
    /// The mean over seeds.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The standard deviation over seeds (n - 1 in the denominator); 0 for a single one.
    pub sd: f64,
}

impl Spread {
    /// Of the values at each seed; `None` if there are none, or one is not finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick);
        Some(Spread {
            seeds: values.len(),
            mean,
            min: fold(f64::min)?,
            max: fold(f64::max)?,
            sd: if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_three_seeds_and_of_one() {
        let three = Spread::of(&[1.0, 2.0, 6.0]).unwrap();
        assert_eq!((three.mean, three.min, three.max, three.seeds), (3.0, 1.0, 6.0, 3));
        assert!((three.sd - 7f64.sqrt()).abs() < 1e-15);
        assert_eq!(Spread::of(&[-4.0]).unwrap().sd, 0.0);
        assert_eq!((Spread::of(&[]), Spread::of(&[f64::NAN])), (None, None));
    }
}
