//! The steps that hold surrogates against searches: each objective's is fitted to what came of the
//! warm-up model's searches of validation theorems.

use std::collections::HashMap;

use catamount_calibration::{CalibrationError, calibrate};
use catamount_evaluate::Log;
use catamount_model::Backend;
use catamount_objective::{Objective, Surrogate};
use catamount_report::{CALIBRATIONS, Calibrated, UNFITTED, Unfitted, observations};
use catamount_train::score;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Work};
use crate::experiment::PriorChoice;
use crate::plan::Plan;
use crate::step::{Fit, Step, Trained};
use crate::study::{Study, say};

/// Rows scored together.
const SCORED: usize = 4096;

/// What came of a fit.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Found {
    Fitted(Calibrated),
    /// Too few validation theorems are proved: a study goes on without.
    Unfitted(Unfitted),
}

/// Fits one objective's surrogate to its trials.
pub(crate) fn fit<B: Backend>(study: &Study<'_, B>, plan: &Plan, fit: &Fit) -> Work<()> {
    let traces = study.traces("valid")?;
    let log_p = log_p(study, fit.temperature())?;
    let mut searches = Vec::new();
    for trial in &fit.trials {
        let cell = Log::read(&study.path(trial.log()))?;
        searches.extend(observations(cell.records.values(), fit.budget, &traces, &log_p));
    }
    // Priors that were set by hand are scored beside the fit.
    let given = |choice: &crate::experiment::ObjectiveChoice| match choice.prior {
        PriorChoice::Given(prior) if choice.objective == fit.objective => Some(prior),
        _ => None,
    };
    let given: Vec<_> = study.experiment.objectives.iter().filter_map(given).collect();
    let strategies = || fit.trials.iter().map(|t| t.deployment.strategy().to_string()).collect();
    let calibration = match calibrate(fit.objective, fit.budget, &searches, &given) {
        Err(error @ CalibrationError::Along { .. }) => {
            say(format!("  note: {error}; until then its branch is trained with every weight 1"));
            let unfitted = Unfitted {
                objective: fit.objective.name().to_string(),
                budget: fit.budget,
                strategies: strategies(),
                seed: study.experiment.seed,
                reason: error.to_string(),
            };
            study.write_json(fit.found(), &Found::Unfitted(unfitted))?;
            return collect(study, plan);
        }
        calibration => calibration?,
    };
    let (chosen, base) = (calibration.chosen(), calibration.uncalibrated());
    say(format!(
        "  {} theorems, {} proved along the trace and {} otherwise; {}: log-loss {:.3}, as it \
         stands {:.3}, with other proofs alone {:.3}",
        calibration.theorems,
        calibration.along,
        calibration.bypassed,
        chosen.clock,
        chosen.scores.log_loss,
        base.scores.log_loss,
        calibration.bypass_only().scores.log_loss
    ));
    let ended = chosen.at_bound();
    if !ended.is_empty() {
        say(format!("  note: {} at a bound of the search for it: not a fit", ended.join(", ")));
    }
    let calibrated = Calibrated {
        strategies: strategies(),
        temperature: fit.temperature(),
        distinct: fit.distinct(),
        seed: study.experiment.seed,
        calibration,
    };
    study.write_json(fit.found(), &Found::Fitted(calibrated))?;
    collect(study, plan)
}

/// log p of the demonstrations of validation theorems under the warm-up model; those that are too
/// long for it have none.
fn log_p<B: Backend>(study: &Study<'_, B>, temperature: f64) -> Work<HashMap<String, Vec<f64>>> {
    let steps = study.experiment.evaluation.steps;
    let (model, tokenizer) = study.model(&Trained::warm_up(), false)?;
    let mut traces = study.traces("valid")?;
    traces.retain(|trace| steps.contains(trace.steps.len()));
    let mut log_p = HashMap::new();
    let rows = SCORED.max(model.config.positions);
    let each = |scored: catamount_train::Scored| {
        if let Ok(values) = scored.log_p {
            log_p.insert(scored.trace.theorem.name, values);
        }
        Ok(())
    };
    let traces = traces.into_iter().map(Ok);
    if !score(&model, &tokenizer, temperature, traces, rows, study.stop, each)? {
        return Err(Error::Interrupted.into());
    }
    Ok(log_p)
}

/// The surrogate that a branch is to be trained with. Where too few theorems are proved for a fit,
/// the budget is as good as too small for any search, and the weights of the smallest feasible one
/// are all 1: cross-entropy.
pub(crate) fn surrogate<B: Backend>(study: &Study<'_, B>, fit: &Fit) -> Work<Surrogate> {
    Ok(match study.read_json::<Found>(fit.found())? {
        Found::Fitted(fitted) => {
            fitted.calibration.chosen().clock.surrogate(fit.objective, fit.budget)?
        }
        Found::Unfitted(_) => Surrogate::new(Objective::Ce, 0),
    })
}

/// Puts what came of the plan's fits so far into the files that the report shows.
pub(crate) fn collect<B: Backend>(study: &Study<'_, B>, plan: &Plan) -> Work<()> {
    let (mut fitted, mut unfitted) = (Vec::new(), Vec::new());
    for planned in &plan.steps {
        if let Step::Calibration(fit) = &planned.step
            && study.path(fit.found()).exists()
        {
            match study.read_json(fit.found())? {
                Found::Fitted(one) => fitted.push(one),
                Found::Unfitted(one) => unfitted.push(one),
            }
        }
    }
    if !fitted.is_empty() {
        study.write_json(CALIBRATIONS, &fitted)?;
    }
    // Written where it was before, too: what was not fitted once may be now.
    if !unfitted.is_empty() || study.path(UNFITTED).exists() {
        study.write_json(UNFITTED, &unfitted)?;
    }
    Ok(())
}
