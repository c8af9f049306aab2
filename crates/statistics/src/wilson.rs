//! Wilson's interval for a single rate.

use serde::{Deserialize, Serialize};

use crate::Z95;

/// A rate with its 95 % interval, all as fractions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The observed rate; 0 when nothing was observed.
    pub rate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How many theorems it rests on.
    pub n: u64,
}

/// Wilson's 95 % score interval for `successes` among `n`.
///
/// `successes` may be a fraction: with several seeds, give the rate over all searches times the
/// number of *theorems*, and that number. It treats the seeds of a theorem as one observation,
/// which is never too narrow. With `n = 0` the interval is [0, 1].
pub fn wilson(successes: f64, n: u64) -> Rate {
    if n == 0 {
        return Rate { rate: 0.0, low: 0.0, high: 1.0, n };
    }
    let nf = n as f64;
    let rate = (successes / nf).clamp(0.0, 1.0);
    let z2 = Z95 * Z95 / nf;
    let middle = (rate + z2 / 2.0) / (1.0 + z2);
    let half = (z2 * (rate * (1.0 - rate) + z2 / 4.0)).sqrt() / (1.0 + z2);
    // The ends are exactly 0 and 1 there; rounding must not say otherwise.
    let low = if rate == 0.0 { 0.0 } else { (middle - half).clamp(0.0, rate) };
    let high = if rate == 1.0 { 1.0 } else { (middle + half).clamp(rate, 1.0) };
    Rate { rate, low, high, n }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // Solving (p - x)^2 = z^2 x (1 - x) / n by hand for 10 of 100 and 0 of 20.
        let ten = wilson(10.0, 100);
        assert!(
            (ten.low - 0.055_229_14).abs() < 1e-7 && (ten.high - 0.174_365_66).abs() < 1e-7,
            "{ten:?}"
        );
        let none = wilson(0.0, 20);
        assert!(none.low == 0.0 && (none.high - Z95 * Z95 / (20.0 + Z95 * Z95)).abs() < 1e-15);
        assert_eq!(wilson(20.0, 20).high, 1.0);
        assert_eq!((wilson(0.0, 0).low, wilson(0.0, 0).high), (0.0, 1.0));
    }

    #[test]
    fn ends_solve_the_score_equation() {
        for (s, n) in [(1.0, 7), (97.0, 458), (3.5, 12), (457.0, 458)] {
            let r = wilson(s, n);
            for x in [r.low, r.high] {
                let gap = (r.rate - x).powi(2) - Z95 * Z95 * x * (1.0 - x) / n as f64;
                assert!(gap.abs() < 1e-14, "{s}/{n}: {gap}");
            }
        }
    }
}
