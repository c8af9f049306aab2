//! What data must have for the steps after them: known as soon as there are data, and refused
//! before anything is trained.

use catamount_calibration::{CalibrationError, LEAST_THEOREMS};
use catamount_model::Backend;

use crate::cells::theorems;
use crate::error::Work;
use crate::plan::Plan;
use crate::scores;
use crate::step::Step;
use crate::study::Study;
use crate::training::training_traces;

/// Refuses data that some step of a plan could not use.
pub(crate) fn check<B: Backend>(study: &Study<'_, B>, plan: &Plan) -> Work<()> {
    let wanted = |of: fn(&Step) -> bool| plan.steps.iter().any(|planned| of(&planned.step));
    training_traces(study)?;
    scores::check(study, plan)?;
    let experiment = study.experiment;
    if wanted(|step| matches!(step, Step::Tournament(_))) {
        theorems(study, "valid", Some(experiment.tune.theorems))?;
    }
    if wanted(|step| matches!(step, Step::Trial(_))) {
        let found = theorems(study, "valid", Some(experiment.evaluation.trials))?.jobs.len();
        if found < LEAST_THEOREMS {
            return Err(CalibrationError::Theorems { found }.into());
        }
    }
    if wanted(|step| matches!(step, Step::Cell(_) | Step::Chosen(_))) {
        theorems(study, "test", experiment.evaluation.limit)?;
    }
    Ok(())
}
