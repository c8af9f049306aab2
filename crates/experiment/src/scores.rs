//! The steps that make the probabilities weights are computed from: models that never saw a fold of
//! the traces, and the scores of all traces.

use catamount_calibration::LEAST_THEOREMS;
use catamount_model::{Backend, Model, Tokenizer};
use catamount_traces::{Trace, folds, text_key};
use catamount_train::{
    Dataset, Probabilities, QuantileMap, Reading, Run, Scores, mapped, score_data,
};

use crate::error::{Error, Work};
use crate::plan::Plan;
use crate::step::{Fold, Scoring, Step, Trained, part};
use crate::study::{Study, say};
use crate::training::{self, held_out_traces, training_traces};

/// Trains as the warm-up was trained, on all traces but one fold.
pub(crate) fn fold<B: Backend>(study: &Study<'_, B>, fold: Fold) -> Work<()> {
    let (_, others) = divided(study, fold)?;
    training::ancestor(study, &Trained::fold(fold), &training_traces(study)?, &others)
}

/// The traces of a fold, and the others.
fn divided<B: Backend>(study: &Study<'_, B>, fold: Fold) -> Work<(Vec<Trace>, Vec<Trace>)> {
    let traces = training_traces(study)?;
    let fold_of = folds(&traces, fold.of, study.experiment.seed, text_key)?;
    let (own, others): (Vec<_>, Vec<_>) =
        traces.into_iter().zip(fold_of).partition(|(_, of)| *of == fold.index);
    let traces = |part: Vec<(Trace, usize)>| part.into_iter().map(|(trace, _)| trace).collect();
    Ok((traces(own), traces(others)))
}

/// Scores all traces, and says how like held-out ones their probabilities are.
pub(crate) fn scores<B: Backend>(study: &Study<'_, B>, scoring: &Scoring) -> Work<()> {
    let warm_up = study.model(&Trained::warm_up(), false)?;
    let training = judged(study, &warm_up, scoring, &training_traces(study)?)?;
    let held_out = judged(study, &warm_up, scoring, &held_out_traces(study)?)?;
    drop(warm_up);
    let used = match scoring.probabilities {
        Probabilities::Training => training.clone(),
        Probabilities::Mapped => mapped(&training, &held_out)?,
        Probabilities::CrossFitted => {
            let mut crossed = Scores::default();
            for fold in Fold::all(scoring.folds) {
                let model = study.model(&Trained::fold(fold), false)?;
                let (own, _) = divided(study, fold)?;
                crossed.extend(judged(study, &model, scoring, &own)?);
            }
            crossed
        }
    };
    let (way, temperature) = (scoring.probabilities, scoring.temperature);
    let reading = Reading::new(way, temperature, [&training, &held_out, &used]);
    say(format!(
        "  median p of a tactic: {:.3} in training, {:.3} held out, {:.3} used for weights; \
         distance from the held-out ones {:.3}, and {:.3} as used",
        reading.training.p_median,
        reading.held_out.p_median,
        reading.used.p_median,
        reading.training_distance,
        reading.used_distance
    ));
    let path = study.path(scoring.reading());
    let text = serde_json::to_vec_pretty(&reading).unwrap_or_default();
    catamount_base::write(&path, text).map_err(Error::io(&path))?;
    Ok(used.write(&study.path(scoring.scores()))?)
}

/// The scores of traces under a model of the study.
fn judged<B: Backend>(
    study: &Study<'_, B>,
    (model, tokenizer): &(Model<B>, Tokenizer),
    scoring: &Scoring,
    traces: &[Trace],
) -> Work<Scores> {
    let recipe = &study.experiment.branch;
    let data = Dataset::tokenize(tokenizer, traces, recipe.max_tokens)?;
    let run = Run::new(study.folder, "probabilities", study.stop).showing(true);
    match score_data(model, &data, scoring.temperature, recipe.batch.tokens, &run)? {
        Some(log_p) => Ok(Scores::new(traces, &data, &log_p)),
        None => Err(Error::Interrupted.into()),
    }
}

/// Refuses data that the probabilities asked for cannot be made from, or surrogates fitted to:
/// known as soon as there are data, and before anything is trained.
pub(crate) fn check<B: Backend>(study: &Study<'_, B>, plan: &Plan) -> Work<()> {
    let experiment = study.experiment;
    let wanted = |way: Probabilities| {
        let made = |step: &Step| matches!(step, Step::Scores(made) if made.probabilities == way);
        plan.steps.iter().any(|planned| made(&planned.step))
    };
    if wanted(Probabilities::CrossFitted) {
        folds(&training_traces(study)?, experiment.folds, experiment.seed, text_key)?;
        // The weights need none, but without any nobody could tell whether they are right.
        enough(study, "valid", &held_out_traces(study)?, 1, Probabilities::CrossFitted)?;
    }
    if wanted(Probabilities::Mapped) {
        let (least, way) = (QuantileMap::LEAST, Probabilities::Mapped);
        enough(study, "train", &training_traces(study)?, least, way)?;
        enough(study, "valid", &held_out_traces(study)?, least, way)?;
    }
    searched(study, plan)
}

/// Refuses too few validation theorems to fit surrogates on, or none to choose on.
fn searched<B: Backend>(study: &Study<'_, B>, plan: &Plan) -> Work<()> {
    let planned = |test: fn(&Step) -> bool| plan.steps.iter().any(|planned| test(&planned.step));
    let (least, what) = if planned(|step| matches!(step, Step::Calibration(_))) {
        (LEAST_THEOREMS, "to fit a surrogate on")
    } else if planned(|step| matches!(step, Step::Tournament(_))) {
        (1, "to choose on")
    } else {
        return Ok(());
    };
    let steps = study.experiment.evaluation.steps;
    let found = study.traces("valid")?.iter().filter(|t| steps.contains(t.steps.len())).count();
    if found >= least {
        return Ok(());
    }
    let reason = format!(
        "has {found} theorems of {steps} steps {what}: at least {least} are needed; give this part \
         a larger share (data.split), or widen the lengths (evaluation.steps)"
    );
    Err(Error::File { path: study.path(part("valid")), reason }.into())
}

fn enough<B: Backend>(
    study: &Study<'_, B>,
    name: &str,
    traces: &[Trace],
    least: usize,
    way: Probabilities,
) -> Work<()> {
    let tactics: usize = traces.iter().map(|trace| trace.steps.len()).sum();
    if tactics >= least {
        return Ok(());
    }
    let reason = format!(
        "has {tactics} tactics in traces of {} steps, and probabilities = \"{way}\" needs {least}; \
         give this part a larger share of the traces (data.split)",
        study.experiment.data.steps
    );
    Err(Error::File { path: study.path(part(name)), reason }.into())
}
