//! Maximum likelihood of the time to proof along the trace, with other proofs as a competing risk.
//!
//! A search is censored where it ends without the demonstrated proof: at the budget, or at the
//! expansion that found another one. The two risks being taken as independent given the trace, the
//! likelihood falls into two factors, and each is fitted by itself.
//!
//! Times are taken at the resolution of the horizons (powers of two). That is what a surrogate is
//! asked for, and the deployed search does not resolve more: it samples several tactics at a node
//! before it looks at any of them.

use catamount_objective::Objective;

use crate::bypass::{Bypass, bin};
use crate::clock::{Clock, ROLLOUT};
use crate::curves::{ABSORPTIONS, Curves};
use crate::error::CalibrationError;
use crate::minimise::minimise;
use crate::observation::{End, Observation};

/// What a fit starts from.
pub(crate) struct Sample<'a> {
    pub(crate) objective: Objective,
    pub(crate) budget: u64,
    pub(crate) observations: &'a [Observation],
    pub(crate) scores: Vec<f64>,
    pub(crate) horizons: Vec<u64>,
    curves: Curves,
}

/// The kinds of clock that are fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Prior,
    Effective,
}

/// What is searched: the logarithm of kappa, up to this, and the exponent, between these. The
/// surrogate as it stands (kappa = 1, q = 0) is no bound but a possible answer.
const LOG_KAPPA: f64 = 9.0;
const EXPONENT: (f64, f64) = (0.05, 8.0);

/// An event that a clock calls impossible counts as this improbable: one odd search must not decide
/// a fit.
const IMPROBABLE: f64 = 1e-6;

impl<'a> Sample<'a> {
    pub(crate) fn new(
        objective: Objective,
        budget: u64,
        observations: &'a [Observation],
    ) -> Result<Self, CalibrationError> {
        let curves = Curves::new(objective, budget, observations)?;
        let scores = observations.iter().map(Observation::score).collect();
        Ok(Sample { objective, budget, observations, scores, horizons: horizons(budget), curves })
    }

    /// J: the probability of the demonstrated proof within `n` expansions.
    pub(crate) fn along(&self, index: usize, n: u64, clock: &Clock) -> f64 {
        let length = self.observations[index].log_p.len();
        let budget = clock.reading(self.objective, n as f64, length);
        self.curves.at(index, budget, clock.absorption())
    }

    /// The probability of any proof within `n` expansions.
    pub(crate) fn proved(&self, index: usize, n: u64, clock: &Clock, bypass: &Bypass) -> f64 {
        1.0 - (1.0 - self.along(index, n, clock)) * bypass.survival(n, self.scores[index])
    }

    /// Log-likelihood of the times along the trace; `weights` count each search.
    pub(crate) fn log_likelihood(&self, clock: &Clock, weights: &[f64]) -> f64 {
        let one = |(index, weight): (usize, &f64)| {
            if *weight == 0.0 {
                return 0.0;
            }
            let by = |n| if n == 0 { 0.0 } else { self.along(index, n, clock) };
            let probability = match self.observations[index].end {
                End::Along(n) => {
                    let (after, until) = bin(n, &self.horizons);
                    by(until) - by(after)
                }
                End::Bypass(n) | End::Unproved(n) => 1.0 - by(n),
            };
            weight * probability.max(IMPROBABLE).ln()
        };
        weights.iter().enumerate().map(one).sum()
    }

    /// The most likely clock of a family. Never less likely than the uncalibrated one, which is a
    /// member of both families and where the search starts.
    pub(crate) fn fit(&self, family: Family, weights: &[f64]) -> Clock {
        match family {
            Family::Prior => self.fit_from(family, weights, &[[0.0, 0.0], [1.5, 1.0], [0.7, 5.0]]),
            Family::Effective => {
                let whole = self.uncalibrated_worth();
                let starts = [[whole, 1.0], [whole - 1.5, 1.0], [whole - 2.5, 0.7]];
                self.fit_from(family, weights, &starts)
            }
        }
    }

    /// The same for a resample, from the answer for the whole.
    pub(crate) fn refit(&self, clock: &Clock, weights: &[f64]) -> Clock {
        match *clock {
            Clock::Uncalibrated => *clock,
            Clock::Prior { kappa, absorption } => {
                let start = [kappa.ln(), place(absorption)];
                self.fit_from(Family::Prior, weights, &[start])
            }
            Clock::Effective { worth, budget, exponent } => {
                let start = [(worth / budget as f64).ln(), exponent];
                self.fit_from(Family::Effective, weights, &[start])
            }
        }
    }

    fn fit_from(&self, family: Family, weights: &[f64], starts: &[[f64; 2]]) -> Clock {
        let loss = |x: &[f64; 2]| -self.log_likelihood(&self.clock(family, x), weights);
        let fits = starts.iter().map(|&start| minimise(loss, start, [0.8, 0.5]));
        let best = fits.min_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or(Clock::Uncalibrated, |(x, _)| self.clock(family, &x))
    }

    /// A clock from the two numbers that are searched for: logarithms, and a place among the
    /// tabulated absorptions.
    fn clock(&self, family: Family, &[x, y]: &[f64; 2]) -> Clock {
        match family {
            Family::Prior => Clock::Prior {
                // Rollouts have no kappa: a missed one costs exactly one.
                kappa: if self.objective == Objective::Pass {
                    1.0
                } else {
                    x.clamp(0.0, LOG_KAPPA).exp()
                },
                absorption: absorption(y),
            },
            Family::Effective => {
                let most = (self.curves.most() as f64 / self.budget as f64).ln();
                let least = -(self.budget as f64).ln();
                let worth = x.clamp(least, most).exp() * self.budget as f64;
                let exponent = y.clamp(EXPONENT.0, EXPONENT.1);
                Clock::Effective { worth, budget: self.budget, exponent }
            }
        }
    }

    /// Which parameters of a clock are where the search for them ends: the data ask for more, and
    /// such a value is only the nearest that could be had.
    pub(crate) fn at_bound(&self, clock: &Clock) -> Vec<bool> {
        let near = |value: f64, bound: f64| (value / bound - 1.0).abs() < 1e-6;
        match *clock {
            Clock::Uncalibrated => Vec::new(),
            Clock::Prior { kappa, absorption } => {
                vec![near(kappa, LOG_KAPPA.exp()), near(absorption, 0.95)]
            }
            Clock::Effective { worth, exponent, .. } => vec![
                near(worth, 1.0) || near(worth, self.curves.most() as f64),
                near(exponent, EXPONENT.0) || near(exponent, EXPONENT.1),
            ],
        }
    }

    /// Logarithm of the share of the budget that counts where nothing was fitted.
    fn uncalibrated_worth(&self) -> f64 {
        if self.objective == Objective::Pass { -(ROLLOUT as f64).ln() } else { 0.0 }
    }
}

/// An absorption from its place in the table.
fn absorption(place: f64) -> f64 {
    let place = place.clamp(0.0, (ABSORPTIONS.len() - 1) as f64);
    let below = (place as usize).min(ABSORPTIONS.len() - 2);
    let (low, high) = (ABSORPTIONS[below], ABSORPTIONS[below + 1]);
    low + (high - low) * (place - below as f64)
}

/// The place of an absorption in the table.
fn place(absorption: f64) -> f64 {
    let above = ABSORPTIONS.partition_point(|&q| q <= absorption).clamp(1, ABSORPTIONS.len() - 1);
    let (low, high) = (ABSORPTIONS[above - 1], ABSORPTIONS[above]);
    (above - 1) as f64 + ((absorption - low) / (high - low)).clamp(0.0, 1.0)
}

/// Powers of two from four up, and the budget itself.
fn horizons(budget: u64) -> Vec<u64> {
    let powers = std::iter::successors(Some(4u64), |n| n.checked_mul(2));
    powers.take_while(|&n| n < budget).chain([budget]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn horizons_end_at_the_budget() {
        assert_eq!(horizons(32), [4, 8, 16, 32]);
        assert_eq!(horizons(100), [4, 8, 16, 32, 64, 100]);
        assert_eq!(horizons(3), [3]);
    }

    #[test]
    fn places_and_absorptions_are_inverse() {
        for q in [0.0, 0.001, 0.02, 0.03, 0.35, 0.7] {
            assert!((absorption(place(q)) - q).abs() < 1e-12, "{q}");
        }
        assert_eq!((absorption(-1.0), absorption(99.0)), (0.0, 0.95));
    }
}
