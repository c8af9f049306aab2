//! How good predictions are: log-loss and Brier score of "proved within n".

use catamount_statistics::Z95;
use serde::{Deserialize, Serialize};

use crate::observation::Observation;

/// Predictions are kept this far from certainty when their log-loss is taken, or a single theorem
/// that was called impossible would make the mean infinite.
const CLIP: f64 = 1e-3;

/// Scores over all horizons, and at each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Mean log-loss over theorems and horizons, in nats, predictions kept within [0.001, 0.999].
    pub log_loss: f64,
    /// Mean squared error of the predicted probability.
    pub brier: f64,
    /// Difference of the log-loss to the uncalibrated surrogate's, the theorem as the unit: below
    /// zero is better.
    pub gain: f64,
    /// Lower end of its 95 % interval.
    pub gain_low: f64,
    /// Upper end.
    pub gain_high: f64,
    /// The same against the surrogate as it stands beside the fitted risk of other proofs: the
    /// difference and the ends of its interval. What is left is what the surrogate itself gained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond_bypass: Option<[f64; 3]>,
    /// The same at every horizon.
    pub horizons: Vec<AtHorizon>,
}

/// Scores at one horizon.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtHorizon {
    /// Expansions.
    pub n: u64,
    /// Searches that say whether a proof was found by then.
    pub searches: usize,
    /// Share of them that found one.
    pub proved: f64,
    /// Mean predicted probability.
    pub predicted: f64,
    /// Mean log-loss.
    pub log_loss: f64,
    /// Mean squared error.
    pub brier: f64,
}

pub(crate) fn log_loss(predicted: f64, proved: bool) -> f64 {
    let p = predicted.clamp(CLIP, 1.0 - CLIP);
    -(if proved { p } else { 1.0 - p }).ln()
}

/// Scores predictions (search by search, horizon by horizon) against what was observed, and against
/// the losses of a baseline. `theorems` numbers the theorem of each search.
pub(crate) fn score(
    observations: &[Observation],
    horizons: &[u64],
    predictions: &[Vec<f64>],
    baseline: &[Vec<f64>],
    theorems: &[usize],
) -> Scores {
    let mut at: Vec<AtHorizon> = Vec::new();
    // Per theorem: sum of differences, and how many.
    let count = theorems.iter().max().map_or(0, |last| last + 1);
    let mut differences = vec![(0.0, 0.0); count];
    for (k, &n) in horizons.iter().enumerate() {
        let mut here =
            AtHorizon { n, searches: 0, proved: 0.0, predicted: 0.0, log_loss: 0.0, brier: 0.0 };
        for (i, observation) in observations.iter().enumerate() {
            let Some(proved) = observation.end.proved_by(n) else { continue };
            let (p, truth) = (predictions[i][k], f64::from(u8::from(proved)));
            let loss = log_loss(p, proved);
            here.searches += 1;
            here.proved += truth;
            here.predicted += p;
            here.log_loss += loss;
            here.brier += (p - truth).powi(2);
            let (sum, pairs) = &mut differences[theorems[i]];
            *sum += loss - log_loss(baseline[i][k], proved);
            *pairs += 1.0;
        }
        at.push(here);
    }
    let searches = at.iter().map(|h| h.searches).sum::<usize>().max(1) as f64;
    let log_loss = at.iter().map(|h| h.log_loss).sum::<f64>() / searches;
    let brier = at.iter().map(|h| h.brier).sum::<f64>() / searches;
    for here in &mut at {
        let searches = here.searches.max(1) as f64;
        for sum in [&mut here.proved, &mut here.predicted, &mut here.log_loss, &mut here.brier] {
            *sum /= searches;
        }
    }
    // A mean of ratios would weigh short searches too much: a ratio of means, by theorem.
    let gain = differences.iter().map(|(sum, _)| sum).sum::<f64>() / searches;
    let residuals = differences.iter().map(|(sum, pairs)| (sum - gain * pairs).powi(2));
    let half = Z95 * residuals.sum::<f64>().sqrt() / searches;
    let (gain_low, gain_high) = (gain - half, gain + half);
    Scores { log_loss, brier, gain, gain_low, gain_high, beyond_bypass: None, horizons: at }
}
