//! The steps that hold surrogates against searches: each objective's is fitted to what came of the
//! warm-up model's searches of validation theorems.

use std::collections::HashMap;

use catamount_calibration::{Clock, calibrate};
use catamount_evaluate::Log;
use catamount_model::Backend;
use catamount_report::{CALIBRATIONS, Calibrated, observations};
use catamount_train::score;

use crate::error::{Error, Work};
use crate::experiment::PriorChoice;
use crate::plan::Plan;
use crate::step::{Fit, Step, Trained};
use crate::study::{Study, say};

/// Rows scored together.
const SCORED: usize = 4096;

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
    let calibration = calibrate(fit.objective, fit.budget, &searches, &given)?;
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
        strategies: fit.trials.iter().map(|t| t.deployment.strategy().to_string()).collect(),
        temperature: fit.temperature(),
        distinct: fit.distinct(),
        seed: study.experiment.seed,
        calibration,
    };
    study.write_json(fit.found(), &calibrated)?;
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

/// What a branch is to be trained with.
pub(crate) fn clock<B: Backend>(study: &Study<'_, B>, fit: &Fit) -> Work<Clock> {
    Ok(study.read_json::<Calibrated>(fit.found())?.calibration.chosen().clock)
}

/// Puts the plan's calibrations so far into the file that the report shows.
pub(crate) fn collect<B: Backend>(study: &Study<'_, B>, plan: &Plan) -> Work<()> {
    let mut all: Vec<Calibrated> = Vec::new();
    for planned in &plan.steps {
        if let Step::Calibration(fit) = &planned.step
            && study.path(fit.found()).exists()
        {
            all.push(study.read_json(fit.found())?);
        }
    }
    if all.is_empty() { Ok(()) } else { study.write_json(CALIBRATIONS, &all) }
}
