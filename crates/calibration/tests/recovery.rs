//! Times simulated from a known clock are fitted back, and the fit predicts better than the
//! surrogate as it stands.

use catamount_calibration::{
    Calibration, CalibrationError, Clock, End, Observation, ROLLOUT, calibrate,
};
use catamount_objective::{Objective, Prior, Surrogate};
use catamount_statistics::Random;

/// How long each of many random traces takes to be found along the trace.
struct Simulation {
    objective: Objective,
    budget: u64,
    theorems: usize,
    seed: u64,
    clock: Clock,
    /// Expansions that another proof takes on average, if there are any.
    bypass: Option<f64>,
}

impl Simulation {
    fn observations(&self) -> Vec<Observation> {
        let mut random = Random::new(self.seed);
        (0..self.theorems)
            .map(|i| {
                let log_p: Vec<f64> =
                    (0..2 + random.below(4)).map(|_| -4.0 * random.uniform().powi(2)).collect();
                let along = self.time(&log_p, random.uniform());
                let other = match self.bypass {
                    Some(mean) => (-mean * (1.0 - random.uniform()).ln()).ceil().max(1.0) as u64,
                    None => u64::MAX,
                };
                let end = if along.min(other) > self.budget {
                    End::Unproved(self.budget)
                } else if along <= other {
                    End::Along(along)
                } else {
                    End::Bypass(other)
                };
                Observation { theorem: format!("t{i}"), log_p, end }
            })
            .collect()
    }

    /// The first budget at which J reaches `luck`.
    fn time(&self, log_p: &[f64], luck: f64) -> u64 {
        let length = log_p.len() as f64;
        let (most, q) = match self.clock {
            Clock::Effective { worth, .. } => (worth.max(1.0), 0.0),
            Clock::Prior { absorption, .. } => (self.budget as f64, absorption),
            Clock::Uncalibrated => (self.budget as f64, 0.0),
        };
        let prior = Prior::new(1.0, q).unwrap();
        let surrogate = Surrogate::new(self.objective, most.ceil() as u64);
        let curve = surrogate.with_prior(prior).unwrap().curve(log_p).unwrap();
        let Some(reached) = curve.iter().position(|&success| success >= luck) else {
            return u64::MAX;
        };
        let reached = reached as f64;
        let rollouts = if self.objective == Objective::Pass { ROLLOUT as f64 } else { 1.0 };
        match self.clock {
            Clock::Effective { worth, budget, exponent } => {
                (budget as f64 * (reached / worth).powf(1.0 / exponent)).ceil() as u64
            }
            Clock::Prior { kappa, .. } if self.objective != Objective::Pass => {
                (length + kappa * (reached - length)).ceil() as u64
            }
            _ => (reached * rollouts) as u64,
        }
        .max(1)
    }

    fn calibrate(&self) -> Calibration {
        calibrate(self.objective, self.budget, &self.observations(), &[]).unwrap()
    }
}

fn model<'a>(found: &'a Calibration, name: &str) -> &'a catamount_calibration::Model {
    found.models.iter().find(|model| model.name == name).unwrap()
}

#[test]
fn a_known_prior_is_recovered_within_its_interval() {
    for (objective, seed) in [(Objective::Bfs, 1), (Objective::Rdfs, 2), (Objective::Vdfs, 3)] {
        let truth = Clock::Prior { kappa: 5.0, absorption: 0.05 };
        let simulation =
            Simulation { objective, budget: 256, theorems: 400, seed, clock: truth, bypass: None };
        let found = simulation.calibrate();
        let fitted = model(&found, "kappa, q fitted");
        for (parameter, truth) in fitted.parameters.iter().zip([5.0, 0.05]) {
            assert!(
                parameter.low <= truth && truth <= parameter.high,
                "{objective}: {} {} [{}, {}]",
                parameter.name,
                parameter.value,
                parameter.low,
                parameter.high
            );
            assert!(parameter.high - parameter.low < truth, "{objective}: {parameter:?}");
        }
        assert_eq!(found.bypassed, 0);
    }
}

/// Distinct samples are worth many with replacement, and rollouts that share a search come late:
/// neither may end at a bound in silence.
#[test]
fn a_fit_far_from_the_start_is_found_and_one_beyond_its_bounds_is_flagged() {
    let truth = Clock::Effective { worth: 1500.0, budget: 128, exponent: 3.0 };
    let objective = Objective::Rdfs;
    let simulation =
        Simulation { objective, budget: 128, theorems: 400, seed: 4, clock: truth, bypass: None };
    let found = simulation.calibrate();
    let fitted = model(&found, "effective budget fitted");
    for (parameter, truth) in fitted.parameters.iter().zip([1500.0, 3.0]) {
        assert!((parameter.value / truth - 1.0).abs() < 0.25, "{parameter:?}");
        assert_eq!(parameter.at_bound, Some(false), "{parameter:?}");
    }
    assert!(fitted.at_bound().is_empty());
    // Everything is found, and nothing before the end: no clock grows as late as that.
    let late = simulation.observations().into_iter().map(|o| Observation {
        end: End::Along(128),
        log_p: vec![-3.0; o.log_p.len()],
        ..o
    });
    let late = calibrate(objective, 128, &late.collect::<Vec<_>>(), &[]).unwrap();
    let fitted = model(&late, "effective budget fitted");
    assert!(!fitted.at_bound().is_empty(), "{:?}", fitted.parameters);
}

/// What a fit gains beside the risk of other proofs is told from what that risk alone gains.
#[test]
fn other_proofs_alone_are_a_column_of_their_own() {
    let simulation = Simulation {
        objective: Objective::Bfs,
        budget: 128,
        theorems: 300,
        seed: 5,
        clock: Clock::Uncalibrated,
        bypass: Some(200.0),
    };
    let found = simulation.calibrate();
    let (stands, alone) = (found.uncalibrated(), found.bypass_only());
    assert!(alone.scores.log_loss < stands.scores.log_loss);
    assert_eq!(stands.scores.beyond_bypass, None);
    assert_eq!(alone.scores.beyond_bypass, Some([0.0, 0.0, 0.0]));
    // The surrogate is right already: beside other proofs there is nothing to gain.
    let [gain, low, high] = found.chosen().scores.beyond_bypass.unwrap();
    assert!(gain.abs() < 0.01 && low <= gain && gain <= high, "{gain} [{low}, {high}]");
}

#[test]
fn a_known_effective_budget_is_recovered_under_every_objective() {
    let objectives = Objective::ALL.into_iter().filter(|o| *o != Objective::Ce);
    for (seed, objective) in objectives.enumerate() {
        let truth = Clock::Effective { worth: 30.0, budget: 128, exponent: 0.8 };
        let simulation = Simulation {
            objective,
            budget: 128,
            theorems: 400,
            seed: seed as u64,
            clock: truth,
            bypass: Some(300.0),
        };
        let found = simulation.calibrate();
        assert!(found.bypassed > 40, "{objective}: {}", found.bypassed);
        let fitted = model(&found, "effective budget fitted");
        let worth = &fitted.parameters[0];
        // Rounding up to whole expansions delays the simulated proofs a little.
        assert!(
            worth.low * 0.9 <= 30.0 && 30.0 <= worth.high * 1.1,
            "{objective}: {worth:?} {:?}",
            fitted.parameters[1]
        );
        // An exponential time has a straight hazard: exponent 1, no slope.
        let bypass = found.bypass;
        assert!((bypass.hazard / (128.0 / 300.0) - 1.0).abs() < 0.35, "{objective}: {bypass:?}");
        assert!((bypass.exponent - 1.0).abs() < 0.4, "{objective}: {bypass:?}");
    }
}

#[test]
fn a_fit_is_never_less_likely_than_the_surrogate_as_it_stands() {
    for (seed, objective) in Objective::ALL.into_iter().enumerate().skip(1) {
        for clock in [
            Clock::Uncalibrated,
            Clock::Prior { kappa: 3.0, absorption: 0.2 },
            Clock::Effective { worth: 200.0, budget: 64, exponent: 1.0 },
        ] {
            let seed = 100 + seed as u64;
            let simulation = Simulation {
                objective,
                budget: 64,
                theorems: 90,
                seed,
                clock,
                bypass: Some(100.0),
            };
            let found = simulation.calibrate();
            let base = found.uncalibrated().log_likelihood;
            for fitted in &found.models {
                assert!(fitted.log_likelihood >= base, "{objective} {clock:?} {}", fitted.name);
            }
        }
    }
}

#[test]
fn a_wrong_surrogate_predicts_worse_and_a_right_one_is_left_alone() {
    let dear = Simulation {
        objective: Objective::Bfs,
        budget: 128,
        theorems: 400,
        seed: 9,
        clock: Clock::Prior { kappa: 8.0, absorption: 0.1 },
        bypass: Some(200.0),
    };
    let found = dear.calibrate();
    let (chosen, base) = (&found.chosen().scores, &found.uncalibrated().scores);
    assert!(chosen.gain_high < 0.0 && chosen.log_loss < base.log_loss, "{chosen:?}");
    assert!(chosen.brier < base.brier);
    // The predictions of the fit hold: proved as often as said, at every horizon.
    for at in &chosen.horizons {
        assert!((at.proved - at.predicted).abs() < 0.06, "{at:?}");
    }
    let right = Simulation { clock: Clock::Uncalibrated, bypass: None, ..dear };
    let found = right.calibrate();
    let gap = found.chosen().scores.log_loss - found.uncalibrated().scores.log_loss;
    assert!(gap.abs() < 0.01, "nothing to gain, next to nothing to lose: {gap}");
    // Theorems that are said to be proved seven times in ten are.
    for bin in &found.uncalibrated().reliability {
        let (low, high) = (bin.observed.low - 0.05, bin.observed.high + 0.05);
        assert!((low..=high).contains(&bin.predicted), "{bin:?}");
    }
}

#[test]
fn a_prior_given_by_hand_is_scored_beside_the_fit() {
    let simulation = Simulation {
        objective: Objective::Dfs,
        budget: 128,
        theorems: 300,
        seed: 4,
        clock: Clock::Prior { kappa: 4.0, absorption: 0.0 },
        bypass: None,
    };
    let given = [Prior::new(4.0, 0.0).unwrap(), Prior::new(60.0, 0.3).unwrap()];
    let found = calibrate(Objective::Dfs, 128, &simulation.observations(), &given).unwrap();
    let [right, wrong] = [&found.models[4], &found.models[5]];
    assert!(right.scores.log_loss < wrong.scores.log_loss && found.chosen < 4);
}

#[test]
fn what_cannot_be_fitted_is_refused_with_what_is_needed() {
    let observation =
        |i: usize, end| Observation { theorem: format!("t{i}"), log_p: vec![-0.5, -1.0], end };
    let of = |count, end: fn(usize) -> End| {
        let all: Vec<_> = (0..count).map(|i| observation(i, end(i))).collect();
        calibrate(Objective::Bfs, 64, &all, &[])
    };
    let few = of(39, |_| End::Along(4)).unwrap_err();
    assert_eq!(few, CalibrationError::Theorems { found: 39 });
    assert!(few.to_string().contains("at least 40"));
    let censored = of(200, |_| End::Unproved(64)).unwrap_err();
    assert!(censored.to_string().contains("at least 10"), "{censored}");
    assert!(matches!(
        of(60, |_| End::Along(65)).unwrap_err(),
        CalibrationError::End { expansions: 65, .. }
    ));
    // Nothing censored at all is no obstacle, and neither is the least budget.
    let all = of(60, |i| End::Along(2 + i as u64 % 9)).unwrap();
    assert!(all.chosen().scores.log_loss.is_finite());
    let least: Vec<_> = (0..40).map(|i| observation(i, End::Along(1))).collect();
    assert!(calibrate(Objective::Ua, 1, &least, &[]).is_ok());
    assert_eq!(calibrate(Objective::Ce, 64, &[], &[]), Err(CalibrationError::NoBudget));
    let broken = Observation { log_p: vec![0.5], ..observation(0, End::Along(4)) };
    let mut some: Vec<_> = (0..50).map(|i| observation(i, End::Along(4))).collect();
    some.push(broken);
    let refused = calibrate(Objective::Bfs, 64, &some, &[]).unwrap_err();
    assert!(refused.to_string().starts_with("t0: "), "{refused}");
}

#[test]
fn the_surrogate_to_train_with_follows_the_clock() {
    let prior = Clock::Prior { kappa: 3.0, absorption: 0.1 };
    let surrogate = prior.surrogate(Objective::Bfs, 256).unwrap();
    assert_eq!((surrogate.budget(), surrogate.prior().kappa()), (256, 3.0));
    let effective = Clock::Effective { worth: 32.0, budget: 1024, exponent: 0.5 };
    assert_eq!(effective.surrogate(Objective::Ua, 1024).unwrap().budget(), 32);
    assert_eq!(effective.surrogate(Objective::Ua, 256).unwrap().budget(), 16);
    assert_eq!(Clock::Uncalibrated.surrogate(Objective::Pass, 256).unwrap().budget(), 64);
    assert!(prior.surrogate(Objective::Pass, 256).is_err(), "rollouts have no kappa");
}

#[test]
fn a_calibration_survives_json_and_is_the_same_again() {
    let simulation = Simulation {
        objective: Objective::Mcts,
        budget: 48,
        theorems: 80,
        seed: 8,
        clock: Clock::Uncalibrated,
        bypass: Some(60.0),
    };
    let found = simulation.calibrate();
    assert_eq!(found, simulation.calibrate());
    let text = serde_json::to_string(&found).unwrap();
    let read: Calibration = serde_json::from_str(&text).unwrap();
    // Numbers may come back changed in their last digit.
    assert_eq!((read.chosen, &read.chosen().name), (found.chosen, &found.chosen().name));
    assert!((read.chosen().scores.log_loss - found.chosen().scores.log_loss).abs() < 1e-12);
}
