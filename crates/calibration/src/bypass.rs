//! Proofs other than the demonstrated one, as a risk that competes with it.

use serde::{Deserialize, Serialize};

use crate::minimise::minimise;
use crate::observation::{End, Observation};

/// The cumulative hazard of finding another proof: Weibull's in the expansions, scaled by how
/// likely the demonstration looks. An exponent below one says that theorems differ: what can be
/// bypassed is bypassed early.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bypass {
    /// The hazard accumulated over the deployed budget, at the mean score.
    pub hazard: f64,
    /// How it grows with the expansions.
    pub exponent: f64,
    /// By how much its logarithm rises with the score: the geometric mean of the tactics'
    /// probabilities.
    pub slope: f64,
    /// The mean score.
    pub score: f64,
    /// The deployed budget.
    pub budget: u64,
}

/// Below this many such proofs only a constant hazard is fitted.
const FEW: f64 = 10.0;

impl Bypass {
    /// The probability that no other proof is found within `n` expansions.
    pub(crate) fn survival(&self, n: u64, score: f64) -> f64 {
        if self.hazard <= 0.0 || n == 0 {
            return 1.0;
        }
        let time = (n as f64 / self.budget as f64).ln();
        let log = self.hazard.ln() + self.exponent * time + self.slope * (score - self.score);
        (-log.min(50.0).exp()).exp()
    }

    /// Maximum likelihood, the end of every search taken at the resolution of the horizons.
    pub(crate) fn fit(
        observations: &[Observation],
        scores: &[f64],
        weights: &[f64],
        horizons: &[u64],
        budget: u64,
    ) -> Self {
        let all = || observations.iter().zip(scores).zip(weights).filter(|(_, w)| **w > 0.0);
        let (mut events, mut total, mut exposure, mut mean) = (0.0, 0.0, 0.0, 0.0);
        for ((observation, score), weight) in all() {
            events += weight * f64::from(u8::from(matches!(observation.end, End::Bypass(_))));
            exposure += weight * observation.end.expansions() as f64 / budget as f64;
            mean += weight * score;
            total += weight;
        }
        let score = if total > 0.0 { mean / total } else { 0.0 };
        let hazard = if events > 0.0 { events / exposure } else { 0.0 };
        let constant = Bypass { hazard, exponent: 1.0, slope: 0.0, score, budget };
        if events < FEW {
            return constant;
        }
        let at = |&[level, exponent, slope]: &[f64; 3]| Bypass {
            hazard: level.exp(),
            exponent: exponent.exp().clamp(0.02, 5.0),
            slope: slope.clamp(-12.0, 12.0),
            ..constant
        };
        let loss = |x: &[f64; 3]| {
            let fit = at(x);
            // A whisper of a prior: a slope that the data cannot tell stays near none.
            let ridge = 1e-3 * (x[1] * x[1] + x[2] * x[2]);
            let likelihood = |((observation, score), weight): ((&Observation, &f64), &f64)| {
                weight * fit.log_likelihood(observation.end, *score, horizons)
            };
            ridge - all().map(likelihood).sum::<f64>()
        };
        at(&minimise(loss, [hazard.ln(), 0.0, 0.0], [0.5, -0.5, 1.0]).0)
    }

    fn log_likelihood(&self, end: End, score: f64, horizons: &[u64]) -> f64 {
        let survival = |n| self.survival(n, score);
        match end {
            End::Bypass(n) => {
                let (after, by) = bin(n, horizons);
                survival(after) - survival(by)
            }
            End::Along(n) | End::Unproved(n) => survival(n),
        }
        .max(1e-12)
        .ln()
    }
}

/// The horizons that an expansion lies between: after the first, and by the second.
pub(crate) fn bin(n: u64, horizons: &[u64]) -> (u64, u64) {
    let by = horizons.partition_point(|&horizon| horizon < n).min(horizons.len() - 1);
    (if by == 0 { 0 } else { horizons[by - 1] }, horizons[by])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_open_below_and_closed_above() {
        let horizons = [4, 8, 16];
        assert_eq!(
            [1, 4, 5, 8, 9, 16].map(|n| bin(n, &horizons)),
            [(0, 4), (0, 4), (4, 8), (4, 8), (8, 16), (8, 16)]
        );
    }

    #[test]
    fn without_such_proofs_there_is_no_hazard() {
        let observation =
            Observation { theorem: "t".into(), log_p: vec![-1.0], end: End::Unproved(16) };
        let none = Bypass::fit(&[observation], &[0.3], &[1.0], &[4, 8, 16], 16);
        assert_eq!(none.survival(16, 0.3), 1.0);
    }
}
