//! The exact sign-flip test: McNemar's test when a theorem was tried with several seeds.
//!
//! Under the null hypothesis the two cells are exchangeable *theorem by theorem*: swapping their
//! names on one theorem, with all its seeds at once, changes nothing. So every theorem's difference
//! keeps its size and takes either sign with probability one half, independently of other theorems,
//! however strongly its seeds agree with each other. Differences are whole numbers (seeds solved by
//! the second cell minus seeds solved by the first), so the null distribution of their sum is
//! computed exactly: theorems of equal |d| form a scaled binomial, and the few distinct sizes are
//! convolved.

use std::collections::BTreeMap;

use crate::binomial::binomial_log_pmf;

/// Probability, over independent fair signs, of a sum at least as far from zero as the observed
/// one.
pub fn sign_flip(differences: &[i64]) -> f64 {
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    for d in differences.iter().filter(|d| **d != 0) {
        *sizes.entry(d.unsigned_abs()).or_default() += 1;
    }
    let observed: i64 = differences.iter().sum();
    if observed == 0 {
        return 1.0;
    }
    let mut null = Spread::point();
    for (size, count) in sizes {
        null = null.plus(size, count);
    }
    null.beyond(observed.unsigned_abs()).min(1.0)
}

/// A distribution on whole numbers: `mass[i]` at `low + i * stride`.
struct Spread {
    low: i64,
    stride: u64,
    mass: Vec<f64>,
}

impl Spread {
    fn point() -> Self {
        Self { low: 0, stride: 1, mass: vec![1.0] }
    }

    /// Adds `count` independent fair signs of one size: size * (2 heads - count).
    fn plus(self, size: u64, count: u64) -> Self {
        let heads: Vec<f64> = (0..=count).map(|k| binomial_log_pmf(k, count).exp()).collect();
        if self.mass.len() == 1 {
            return Self { low: self.low - (size * count) as i64, stride: 2 * size, mass: heads };
        }
        let stride = gcd(self.stride, 2 * size);
        let (a, b) = ((self.stride / stride) as usize, (2 * size / stride) as usize);
        let mut mass = vec![0.0; (self.mass.len() - 1) * a + (heads.len() - 1) * b + 1];
        for (i, x) in self.mass.iter().enumerate().filter(|(_, x)| **x > 0.0) {
            for (j, y) in heads.iter().enumerate() {
                mass[i * a + j * b] += x * y;
            }
        }
        Self { low: self.low - (size * count) as i64, stride, mass }
    }

    /// Mass at distance `far` from zero or more; symmetric, so twice the lower tail, which is
    /// summed small terms first.
    fn beyond(&self, far: u64) -> f64 {
        let tail = |i: usize| self.low + (i as u64 * self.stride) as i64 <= -(far as i64);
        2.0 * (0..self.mass.len()).take_while(|&i| tail(i)).map(|i| self.mass[i]).sum::<f64>()
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binomial::mcnemar;

    fn by_enumeration(differences: &[i64]) -> f64 {
        let observed: i64 = differences.iter().sum::<i64>().abs();
        let hits = (0u32..1 << differences.len())
            .filter(|signs| {
                let sum: i64 = differences
                    .iter()
                    .enumerate()
                    .map(|(i, d)| if signs >> i & 1 == 1 { *d } else { -d })
                    .sum();
                sum.abs() >= observed
            })
            .count();
        hits as f64 / f64::from(1u32 << differences.len())
    }

    #[test]
    fn agrees_with_enumeration() {
        for d in [
            &[3, -1, 2, 2, 0, -3, 1, 1, 1][..],
            &[5, 5, 5],
            &[-2],
            &[1, -1],
            &[4, 3, 2, 1, -4, 0, 0, 6, 6, -5, 2, 2],
        ] {
            assert!((sign_flip(d) - by_enumeration(d)).abs() < 1e-12, "{d:?}");
        }
        assert_eq!(sign_flip(&[]), 1.0);
        assert_eq!(sign_flip(&[0, 0]), 1.0);
    }

    #[test]
    fn one_seed_is_mcnemar() {
        for (b, c) in [(10, 1), (28, 8), (29, 12), (37, 9), (6, 1), (5, 2), (0, 3), (400, 300)] {
            let d: Vec<i64> = std::iter::repeat_n(1, b).chain(std::iter::repeat_n(-1, c)).collect();
            assert!((sign_flip(&d) / mcnemar(b as u64, c as u64) - 1.0).abs() < 1e-10, "{b}/{c}");
        }
    }
}
