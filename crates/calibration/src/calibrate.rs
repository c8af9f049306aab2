//! The whole calibration: fits, intervals, and scores on theorems that were not fitted on.

use std::collections::HashMap;

use catamount_objective::{Objective, Prior};
use catamount_statistics::Random;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::bypass::Bypass;
use crate::clock::Clock;
use crate::error::{CalibrationError, LEAST_ALONG, LEAST_THEOREMS};
use crate::fit::{Family, Sample};
use crate::observation::{End, Observation};
use crate::reliability::{Bin, reliability};
use crate::score::{Scores, score};

/// Theorems are held out in so many parts.
const FOLDS: usize = 5;
/// Resamples behind an interval.
const RESAMPLES: u64 = 200;

/// A surrogate held against what the search did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The objective whose surrogate it is.
    pub objective: String,
    /// The deployed budget, in expansions.
    pub budget: u64,
    /// Theorems.
    pub theorems: usize,
    /// Searches of them.
    pub searches: usize,
    /// Searches that found the demonstrated proof.
    pub along: usize,
    /// Searches that found another one.
    pub bypassed: usize,
    /// The risk of other proofs, fitted on all searches.
    pub bypass: Bypass,
    /// The models that were compared; the first is the surrogate as it stands.
    pub models: Vec<Model>,
    /// Which of them predicts best: the one to train with.
    pub chosen: usize,
}

/// One way of predicting whether a theorem is proved within n expansions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// For tables.
    pub name: String,
    /// What expansions are worth, fitted on all searches.
    pub clock: Clock,
    /// Its parameters, with intervals.
    pub parameters: Vec<Parameter>,
    /// Log-likelihood of the times along the trace, on the searches it was fitted to.
    pub log_likelihood: f64,
    /// Scores on theorems that were held out of its fit.
    pub scores: Scores,
    /// Reliability of those predictions at the deployed budget.
    pub reliability: Vec<Bin>,
}

/// A fitted number with its 95 % interval: percentiles over resampled theorems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The most likely value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether the value is where the search for it ended, so that it is not the most likely one;
    /// none in files that were written before this was noted.
    #[serde(default)]
    pub at_bound: Option<bool>,
}

impl Model {
    /// The names of parameters that are where the search for them ended.
    pub fn at_bound(&self) -> Vec<&str> {
        let ended = self.parameters.iter().filter(|parameter| parameter.at_bound == Some(true));
        ended.map(|parameter| parameter.name.as_str()).collect()
    }
}

impl Calibration {
    /// The surrogate as it stands, which says nothing of other proofs.
    pub fn uncalibrated(&self) -> &Model {
        &self.models[0]
    }

    /// The surrogate as it stands beside the fitted risk of other proofs. What it predicts better
    /// than [`uncalibrated`](Self::uncalibrated) is nothing that training ever sees.
    pub fn bypass_only(&self) -> &Model {
        &self.models[1]
    }

    /// The model that predicts best.
    pub fn chosen(&self) -> &Model {
        &self.models[self.chosen]
    }
}

/// How a model comes by its clock.
#[derive(Clone, Copy)]
enum Source {
    Fixed(Clock),
    Fitted(Family),
}

impl Source {
    fn clock(self, sample: &Sample<'_>, weights: &[f64]) -> Clock {
        match self {
            Source::Fixed(clock) => clock,
            Source::Fitted(family) => sample.fit(family, weights),
        }
    }
}

/// Fits `objective`'s surrogate to searches with a budget of `budget` expansions, and compares it
/// with the surrogate as it stands and with priors `given` by hand.
pub fn calibrate(
    objective: Objective,
    budget: u64,
    observations: &[Observation],
    given: &[Prior],
) -> Result<Calibration, CalibrationError> {
    let theorems = check(objective, budget, observations)?;
    let sample = Sample::new(objective, budget, observations)?;
    let whole = vec![1.0; observations.len()];
    let mut sources = vec![
        ("as it stands".to_string(), false, Source::Fixed(Clock::Uncalibrated)),
        ("other proofs fitted".to_string(), true, Source::Fixed(Clock::Uncalibrated)),
        ("kappa, q fitted".to_string(), true, Source::Fitted(Family::Prior)),
        ("effective budget fitted".to_string(), true, Source::Fitted(Family::Effective)),
    ];
    let fitted = 1..sources.len();
    for prior in given {
        let (kappa, absorption) = (prior.kappa(), prior.absorption());
        let clock = Clock::Prior { kappa, absorption };
        sources.push((
            format!("kappa {kappa:.3}, q {absorption:.3} given"),
            true,
            Source::Fixed(clock),
        ));
    }
    let folds: Vec<Held> = (0..FOLDS)
        .into_par_iter()
        .map(|fold| {
            let weights: Vec<f64> = theorems
                .iter()
                .map(|theorem| if theorem % FOLDS == fold { 0.0 } else { 1.0 })
                .collect();
            Held {
                bypass: fit_bypass(&sample, &weights),
                clocks: sources.iter().map(|(.., s)| s.clock(&sample, &weights)).collect(),
            }
        })
        .collect();
    let predictions = |model: usize, bypassing: bool| -> Vec<Vec<f64>> {
        let one = |(index, theorem): (usize, &usize)| {
            let held = &folds[theorem % FOLDS];
            let clock = &held.clocks[model];
            let at = |&n: &u64| match bypassing {
                true => sample.proved(index, n, clock, &held.bypass),
                false => sample.along(index, n, clock),
            };
            sample.horizons.iter().map(at).collect()
        };
        theorems.iter().enumerate().map(one).collect()
    };
    let (baseline, bypass_only) = (predictions(0, false), predictions(1, true));
    let models: Vec<Model> = sources
        .into_iter()
        .enumerate()
        .map(|(index, (name, bypassing, source))| {
            let clock = source.clock(&sample, &whole);
            let predicted = predictions(index, bypassing);
            let against = |base| score(observations, &sample.horizons, &predicted, base, &theorems);
            let mut scores = against(&baseline);
            if bypassing {
                let beyond = against(&bypass_only);
                scores.beyond_bypass = Some([beyond.gain, beyond.gain_low, beyond.gain_high]);
            }
            let last = predicted.iter().zip(observations).filter_map(|(predicted, observation)| {
                Some((*predicted.last()?, observation.end.proved_by(budget)?))
            });
            Model {
                name,
                log_likelihood: sample.log_likelihood(&clock, &whole),
                parameters: match source {
                    Source::Fixed(_) => Vec::new(),
                    Source::Fitted(_) => intervals(&sample, &clock, &theorems),
                },
                clock,
                scores,
                reliability: reliability(last),
            }
        })
        .collect();
    let chosen = fitted
        .min_by(|&a, &b| models[a].scores.log_loss.total_cmp(&models[b].scores.log_loss))
        .unwrap_or(0);
    let ended = |test: fn(End) -> bool| observations.iter().filter(|o| test(o.end)).count();
    Ok(Calibration {
        objective: objective.name().to_string(),
        budget,
        theorems: theorems.iter().max().map_or(0, |last| last + 1),
        searches: observations.len(),
        along: ended(|end| matches!(end, End::Along(_))),
        bypassed: ended(|end| matches!(end, End::Bypass(_))),
        bypass: fit_bypass(&sample, &whole),
        models,
        chosen,
    })
}

/// What was fitted without one fold.
struct Held {
    bypass: Bypass,
    clocks: Vec<Clock>,
}

fn fit_bypass(sample: &Sample<'_>, weights: &[f64]) -> Bypass {
    let Sample { observations, scores, horizons, budget, .. } = sample;
    Bypass::fit(observations, scores, weights, horizons, *budget)
}

/// Refuses what cannot be fitted; otherwise the number of each search's theorem.
fn check(
    objective: Objective,
    budget: u64,
    observations: &[Observation],
) -> Result<Vec<usize>, CalibrationError> {
    if objective == Objective::Ce {
        return Err(CalibrationError::NoBudget);
    }
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut theorems = Vec::with_capacity(observations.len());
    let (mut along, mut bypass) = (0, 0);
    for observation in observations {
        let expansions = observation.end.expansions();
        if expansions == 0 || expansions > budget {
            let theorem = observation.theorem.clone();
            return Err(CalibrationError::End { theorem, expansions, budget });
        }
        along += usize::from(matches!(observation.end, End::Along(_)));
        bypass += usize::from(matches!(observation.end, End::Bypass(_)));
        let next = numbers.len();
        theorems.push(*numbers.entry(&observation.theorem).or_insert(next));
    }
    if numbers.len() < LEAST_THEOREMS {
        return Err(CalibrationError::Theorems { found: numbers.len() });
    }
    if along < LEAST_ALONG {
        return Err(CalibrationError::Along { along, bypass, theorems: numbers.len() });
    }
    Ok(theorems)
}

/// The parameters of a clock: their names and values.
fn parameters(clock: &Clock) -> Vec<(&'static str, f64)> {
    match *clock {
        Clock::Uncalibrated => Vec::new(),
        Clock::Prior { kappa, absorption } => vec![("kappa", kappa), ("q", absorption)],
        Clock::Effective { worth, exponent, .. } => {
            vec![("effective budget", worth), ("exponent", exponent)]
        }
    }
}

/// Percentile intervals over theorems drawn with replacement, with all their searches.
fn intervals(sample: &Sample<'_>, clock: &Clock, theorems: &[usize]) -> Vec<Parameter> {
    let count = theorems.iter().max().map_or(0, |last| last + 1);
    let resampled: Vec<Vec<f64>> = (0..RESAMPLES)
        .into_par_iter()
        .map(|seed| {
            let mut random = Random::new(seed);
            let mut drawn = vec![0.0; count];
            (0..count).for_each(|_| drawn[random.below(count)] += 1.0);
            let weights: Vec<f64> = theorems.iter().map(|&theorem| drawn[theorem]).collect();
            parameters(&sample.refit(clock, &weights)).into_iter().map(|(_, value)| value).collect()
        })
        .collect();
    let bounds = sample.at_bound(clock);
    let interval = |(index, (name, value)): (usize, (&str, f64))| {
        let mut values: Vec<f64> = resampled.iter().map(|values| values[index]).collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[(share * (values.len() - 1) as f64).round() as usize];
        let (low, high, at_bound) = (at(0.025), at(0.975), Some(bounds[index]));
        Parameter { name: name.to_string(), value, low, high, at_bound }
    };
    parameters(clock).into_iter().enumerate().map(interval).collect()
}
