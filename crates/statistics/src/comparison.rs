//! Two cells on the same theorems.

use serde::{Deserialize, Serialize};

use crate::binomial::mcnemar;
use crate::signflip::sign_flip;
use crate::{Z90, Z95};

/// The paired comparison of a second cell with a first.
///
/// For one seed this is the paper's: gain (b - c)/n, interval from the variance (b + c)/n^2, exact
/// two-sided McNemar p. For several seeds see [`Comparison::of_theorems`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Theorems both cells completed.
    pub n: u64,
    /// Solved by the second cell and not by the first, counted over all seeds.
    pub b: u64,
    /// Solved by the first cell and not by the second, counted over all seeds.
    pub c: u64,
    /// Gain of the second cell, in percentage points.
    pub gain_pp: f64,
    /// Lower end of the gain's 95 % interval, in percentage points.
    pub ci_low: f64,
    /// Upper end.
    pub ci_high: f64,
    /// Exact two-sided p-value of no difference.
    pub p: f64,
    /// Seeds per theorem; the most, where theorems differ.
    pub seeds: u64,
}

/// One theorem with all its seeds: how many seeds solved it in each cell, and by only one of them
/// at the same seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theorem {
    /// Seeds solved by the second cell and not by the first.
    pub b: u64,
    /// Seeds solved by the first cell and not by the second.
    pub c: u64,
    /// Seeds tried, in both cells.
    pub seeds: u64,
}

/// Counts that no experiment can produce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible(pub String);

impl std::fmt::Display for Impossible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Impossible {}

impl Comparison {
    /// The paper's comparison from its counts: `n` theorems, `b` solved only by the second cell,
    /// `c` only by the first.
    pub fn of_counts(n: u64, b: u64, c: u64) -> Result<Self, Impossible> {
        if b.checked_add(c).is_none_or(|both| both > n) {
            return Err(Impossible(format!(
                "b = {b} and c = {c} are counts of different theorems, yet there are only n = {n}"
            )));
        }
        let (gain, ci_low, ci_high) = interval(b as f64 - c as f64, (b + c) as f64, n);
        Ok(Self { n, b, c, gain_pp: gain, ci_low, ci_high, p: mcnemar(b, c), seeds: 1 })
    }

    /// One seed, from what each cell did on every theorem: `(solved by the first, solved by the
    /// second)`.
    pub fn of_pairs(pairs: impl IntoIterator<Item = (bool, bool)>) -> Self {
        let (mut n, mut b, mut c) = (0, 0, 0);
        for (first, second) in pairs {
            n += 1;
            b += u64::from(second && !first);
            c += u64::from(first && !second);
        }
        let (gain_pp, ci_low, ci_high) = interval(b as f64 - c as f64, (b + c) as f64, n);
        Self { n, b, c, gain_pp, ci_low, ci_high, p: mcnemar(b, c), seeds: 1 }
    }

    /// Several seeds, pooled with the theorem as the unit.
    ///
    /// Seeds of one theorem are not independent evidence: an objective that solves a theorem with
    /// one seed tends to solve it with the next. Counting seed-theorem pairs as if they were
    /// theorems would make every interval too narrow. Instead each theorem contributes d = its sum
    /// over seeds of (second - first); the gain is sum(d) over the number of searches, its variance
    /// sum(d^2) over the square of that (which is (b + c)/n^2 for one seed), and p comes from the
    /// exact sign-flip test over theorems ([`sign_flip`]). Theorems may have different numbers of
    /// seeds, as they do when every seed has a split of its own.
    ///
    /// All this speaks of these seeds' models on theorems like these. How much the models of other
    /// seeds would differ is what [`Spread`](crate::Spread) shows.
    pub fn of_theorems(theorems: &[Theorem]) -> Result<Self, Impossible> {
        if let Some(odd) =
            theorems.iter().find(|t| t.seeds == 0 || t.b.saturating_add(t.c) > t.seeds)
        {
            return Err(Impossible(format!(
                "a theorem with {} seeds cannot differ in b = {} and c = {} of them",
                odd.seeds, odd.b, odd.c
            )));
        }
        let differences: Vec<i64> = theorems.iter().map(|t| t.b as i64 - t.c as i64).collect();
        let squares = differences.iter().map(|d| (*d as f64).powi(2)).sum();
        let searches = theorems.iter().map(|t| t.seeds).sum();
        let (gain_pp, ci_low, ci_high) =
            interval(differences.iter().sum::<i64>() as f64, squares, searches);
        let (b, c) = theorems.iter().fold((0, 0), |(b, c), t| (b + t.b, c + t.c));
        let (n, p) = (theorems.len() as u64, sign_flip(&differences));
        let seeds = theorems.iter().map(|t| t.seeds).max().unwrap_or(1);
        Ok(Self { n, b, c, gain_pp, ci_low, ci_high, p, seeds })
    }

    /// The smallest true gain, in percentage points, that a comparison like this one would call
    /// significant (two-sided, 5 %) nine times in ten: the gain's standard error, which comes from
    /// how often the cells differ, times 1.96 + 1.28. Where hardly any theorem differs, three are
    /// taken to: as many as may have been missed.
    pub fn visible_pp(&self) -> f64 {
        let half = (self.ci_high - self.gain_pp).max(self.gain_pp - self.ci_low);
        let least = Z95 * 3f64.sqrt() * 100.0 / self.n.max(1) as f64;
        // Several seeds of a theorem are one piece of evidence at least.
        let least = if self.b + self.c > 0 { 0.0 } else { least };
        half.max(least) / Z95 * (Z95 + Z90)
    }
}

/// Gain and interval in percentage points from the sum and the sum of squares of per-theorem
/// differences over so many searches. The interval ends where gains do.
fn interval(sum: f64, squares: f64, searches: u64) -> (f64, f64, f64) {
    if searches == 0 {
        return (0.0, -100.0, 100.0);
    }
    let scale = 100.0 / searches as f64;
    let half = Z95 * squares.sqrt() * scale;
    let gain = sum * scale;
    (gain, (gain - half).max(-100.0), (gain + half).min(100.0))
}
