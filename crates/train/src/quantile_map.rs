//! What a tactic's probability would be if its theorem had been held out, judged by its rank: the
//! most probable tenth of the training tactics gets the probabilities of the most probable tenth of
//! the held-out ones, and so on.

use crate::distribution::{quantile, sorted};
use crate::{Error, Result};

/// Most knots of a map.
const KNOTS: usize = 200;

/// A monotone map from the log p of tactics that were trained on to that of tactics that were not.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantileMap {
    /// Ascending, without ties.
    from: Vec<f64>,
    /// Not descending, at most 0.
    to: Vec<f64>,
}

impl QuantileMap {
    /// Tactics that both sides need: with so many, a quantile's rank is known to five in a hundred.
    pub const LEAST: usize = 100;

    /// Estimates the map from the log p that one model gives to training and to held-out tactics.
    pub fn fit(training: &[f64], held_out: &[f64]) -> Result<Self> {
        for (what, log_p) in [("training", training), ("validation", held_out)] {
            if log_p.len() < Self::LEAST {
                return Err(Error::Data(format!(
                    "{} tactics of {what} traces are too few to map training probabilities to \
                     held-out ones; {} are needed",
                    log_p.len(),
                    Self::LEAST
                )));
            }
            if let Some(wrong) = log_p.iter().find(|l| !(l.is_finite() && **l <= 0.0)) {
                return Err(Error::Data(format!(
                    "log p = {wrong} of a {what} tactic is not a log-probability"
                )));
            }
        }
        let (training, held_out) = (sorted(training), sorted(held_out));
        let knots = KNOTS.min(training.len()).min(held_out.len());
        let mut map = QuantileMap { from: Vec::new(), to: Vec::new() };
        let mut tied = 0;
        for i in 0..knots {
            let level = (i as f64 + 0.5) / knots as f64;
            let (Some(from), Some(to)) = (quantile(&training, level), quantile(&held_out, level))
            else {
                continue;
            };
            match (map.from.last(), map.to.last_mut()) {
                // Training tactics of one probability get the mean of what their ranks would give.
                (Some(last), Some(mean)) if *last == from => {
                    tied += 1;
                    *mean += (to - *mean) / f64::from(tied);
                }
                _ => {
                    map.from.push(from);
                    map.to.push(to);
                    tied = 1;
                }
            }
        }
        Ok(map)
    }

    /// The held-out log p of a training log p. Between two knots it is interpolated; below the
    /// lowest a tactic keeps its ratio to it, and above the highest the distance to certainty
    /// shrinks in proportion, so that the result is never above 0.
    pub fn apply(&self, log_p: f64) -> f64 {
        let Self { from, to } = self;
        let above = from.partition_point(|knot| *knot < log_p);
        match (above.checked_sub(1), from.get(above)) {
            (None, Some(lowest)) => to[0] + (log_p - lowest),
            (Some(below), Some(knot)) => {
                let part = (log_p - from[below]) / (knot - from[below]);
                to[below] + (to[above] - to[below]) * part
            }
            (Some(highest), None) => to[highest] * (log_p / from[highest]),
            (None, None) => log_p,
        }
    }
}

#[cfg(test)]
mod tests {
    use catamount_search::Stream;

    use super::*;

    /// log p of `n` tactics: p is a power of a uniform number.
    fn tactics(n: u64, power: f64) -> Vec<f64> {
        (0..n).map(|i| power * (1.0 - Stream::new(1).uniform(i)).ln()).collect()
    }

    #[test]
    fn mapped_tactics_are_distributed_as_the_held_out_ones() {
        let (training, held_out) = (tactics(5000, 0.05), tactics(3000, 2.0));
        let map = QuantileMap::fit(&training, &held_out).unwrap();
        let mapped: Vec<f64> = training.iter().map(|l| map.apply(*l)).collect();
        assert!(crate::distance(&training, &held_out) > 0.5);
        assert!(crate::distance(&mapped, &held_out) < 0.01);
        // Known here: rank u has training log p 0.05 ln u and held-out log p 2 ln u.
        for (before, after) in training.iter().zip(&mapped).filter(|(b, _)| **b > -0.2) {
            assert!((after - 40.0 * before).abs() < 0.05 + 0.15 * after.abs(), "{before} {after}");
        }
    }

    #[test]
    fn maps_are_monotone_continuous_and_stay_below_certainty() {
        let map = QuantileMap::fit(&tactics(300, 0.3), &tactics(150, 3.0)).unwrap();
        let places: Vec<f64> = (0..40_000).map(|i| -40.0 + f64::from(i) / 1000.0).collect();
        let mapped: Vec<f64> = places.iter().map(|l| map.apply(*l)).collect();
        assert!(mapped.windows(2).all(|w| w[0] <= w[1] && w[1] - w[0] < 0.5));
        assert!(mapped.iter().all(|l| *l <= 0.0 && l.is_finite()));
        assert_eq!(map.apply(0.0), 0.0);
        assert!(map.apply(-1e4) < -9e3, "a tactic that is never sampled stays one");
    }

    #[test]
    fn the_same_distribution_is_mapped_to_itself() {
        let same = tactics(2000, 1.0);
        let map = QuantileMap::fit(&same, &same).unwrap();
        assert!(same.iter().all(|l| (map.apply(*l) - l).abs() < 1e-9));
    }

    #[test]
    fn certain_tactics_share_what_their_ranks_would_give() {
        // Half of the training tactics are certain, to the last digit.
        let mut training = tactics(500, 0.1);
        training.extend([0.0; 500]);
        let held_out = tactics(1000, 1.0);
        let map = QuantileMap::fit(&training, &held_out).unwrap();
        // The mean of ln u over u in (1/2, 1).
        assert!((map.apply(0.0) - (2f64.ln() - 1.0)).abs() < 0.02, "{}", map.apply(0.0));
        assert!(map.apply(-1e-9) < map.apply(0.0));
    }

    #[test]
    fn too_few_are_refused_with_the_number_needed() {
        let error = QuantileMap::fit(&tactics(500, 1.0), &tactics(99, 1.0)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("99 tactics of validation") && text.contains("100 are needed"));
        let broken = [tactics(99, 1.0), vec![f64::NAN]].concat();
        assert!(QuantileMap::fit(&broken, &tactics(500, 1.0)).is_err());
    }
}
