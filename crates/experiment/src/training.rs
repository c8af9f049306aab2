//! The steps that train: the common ancestor, what it would be without some of its traces, and a
//! branch for each objective.

use std::sync::Arc;

use catamount_base::{Content, Stream};
use catamount_model::{Backend, Config, Model, Tokenizer, open};
use catamount_objective::{Objective, Prior, Surrogate};
use catamount_search::Identity;
use catamount_traces::Trace;
use catamount_train::{Card, Dataset, Outcome, Recipe, Run, Scores, Weigh, export, prepare, train};

use crate::calibrating;
use crate::error::{Error, Work};
use crate::experiment::{Experiment, ModelChoice, PriorChoice};
use crate::file::TokenizerKind;
use crate::inputs::Inputs;
use crate::step::{Branch, Fit, Trained, part};
use crate::study::{Study, say};

/// Held-out traces that a run is measured on, at most.
const VALIDATED: usize = 200;

/// The training traces: filtered by length, and the first so many by a hash of their names.
pub(crate) fn training_traces<B: Backend>(study: &Study<'_, B>) -> Work<Vec<Trace>> {
    let traces = chosen(study.experiment, study.traces("train")?);
    if traces.is_empty() {
        let (path, steps) = (study.path(part("train")), study.experiment.data.steps);
        return Err(Error::Empty { what: "training trace", steps, path }.into());
    }
    Ok(traces)
}

/// Of the traces of the training part, those that are trained on.
pub(crate) fn chosen(experiment: &Experiment, traces: Vec<Trace>) -> Vec<Trace> {
    let mut traces = shuffled(experiment, traces);
    traces.truncate(experiment.data.limit.unwrap_or(usize::MAX));
    traces
}

/// The validation traces of the lengths that are trained on, in an order that says nothing of them.
pub(crate) fn held_out_traces<B: Backend>(study: &Study<'_, B>) -> Work<Vec<Trace>> {
    Ok(shuffled(study.experiment, study.traces("valid")?))
}

fn shuffled(experiment: &Experiment, mut traces: Vec<Trace>) -> Vec<Trace> {
    traces.retain(|trace| experiment.data.steps.contains(trace.steps.len()));
    let order = Stream::new(0).named("training");
    traces.sort_by_key(|trace| order.named(&trace.theorem.name).0);
    traces
}

/// The tokenizer of a study whose model begins from nothing. It is made of all training traces, so
/// that all models of a study have the same tokens.
pub(crate) fn tokenizer(kind: TokenizerKind, vocab: usize, traces: &[Trace]) -> Work<Tokenizer> {
    let steps = traces.iter().flat_map(|trace| &trace.steps);
    let texts = steps.flat_map(|step| [&step.state, &step.tactic]);
    Ok(match kind {
        TokenizerKind::Symbols => Tokenizer::train_symbols(texts, vocab)?,
        TokenizerKind::Bpe => {
            Tokenizer::train_bpe(texts.cloned().collect::<Vec<_>>().into_iter(), vocab)?
        }
    })
}

/// Trains the common ancestor.
pub(crate) fn warm_up<B: Backend>(study: &Study<'_, B>) -> Work<()> {
    let traces = training_traces(study)?;
    ancestor(study, &Trained::warm_up(), &traces, &traces)
}

/// Trains as the common ancestor is trained, on these of all training traces.
pub(crate) fn ancestor<B: Backend>(
    study: &Study<'_, B>,
    trained: &Trained,
    all: &[Trace],
    traces: &[Trace],
) -> Work<()> {
    let experiment = study.experiment;
    let (model, tokenizer) = match &experiment.model {
        ModelChoice::Pretrained { base } => {
            if experiment.warm_up.lora.is_some() {
                study.frozen(base)?
            } else {
                open(base, &study.backend, true)?
            }
        }
        ModelChoice::Scratch { hidden, layers, vocab, positions, tokenizer: kind } => {
            let tokenizer = tokenizer(*kind, *vocab, all)?;
            let config = Config::small(tokenizer.vocab(), *hidden, *layers, *positions);
            let seed = Stream::new(experiment.seed).named("model");
            (Model::init(Arc::clone(&study.backend), config, seed)?, tokenizer)
        }
    };
    let objective = &Surrogate::new(Objective::Ce, 0);
    let recipe = &experiment.warm_up;
    let begun_from = Inputs::base(experiment)?;
    let training = Training { trained, traces, scores: None, objective, recipe, begun_from };
    finish(study, model, &tokenizer, &training)
}

/// Trains one objective's branch from the warm-up.
pub(crate) fn branch<B: Backend>(study: &Study<'_, B>, branch: &Branch) -> Work<()> {
    let choice = &branch.objective;
    let objective = match choice.prior {
        PriorChoice::None => choice.surrogate(branch.budget),
        PriorChoice::Given(prior) => choice.surrogate(branch.budget).with_prior(prior)?,
        PriorChoice::Fitted => {
            let fit = Fit::of(choice, &study.experiment.evaluation, branch.budget);
            calibrating::surrogate(study, &fit.map_err(Error::Deployment)?)?
        }
    };
    let (model, tokenizer) = study.model(&Trained::warm_up(), true)?;
    let scores = match &branch.scoring {
        Some(scoring) => Some(Scores::read(&study.path(scoring.scores()))?),
        None => None,
    };
    let training = Training {
        trained: &branch.trained,
        traces: &training_traces(study)?,
        scores: scores.as_ref(),
        objective: &objective,
        recipe: &choice.recipe(&study.experiment.branch),
        begun_from: Some(content(&study.identity(&Trained::warm_up())?)),
    };
    finish(study, model, &tokenizer, &training)
}

/// A model's weights and adapter as one word.
fn content(model: &Identity) -> String {
    let parts = ["weights", "adapter"].map(|part| model.get(part).unwrap_or_default());
    Content::of_texts(parts).to_string()
}

/// What a model is trained on, and how.
struct Training<'a> {
    trained: &'a Trained,
    traces: &'a [Trace],
    scores: Option<&'a Scores>,
    objective: &'a Surrogate,
    recipe: &'a Recipe,
    /// What the model is before the first step, by content; none if it is made here.
    begun_from: Option<String>,
}

/// Trains from wherever it stands, and exports.
fn finish<B: Backend>(
    study: &Study<'_, B>,
    mut model: Model<B>,
    tokenizer: &Tokenizer,
    training: &Training<'_>,
) -> Work<()> {
    let Training { trained, traces, scores, objective, recipe, begun_from } = training;
    prepare(&mut model, recipe)?;
    let mut data = Dataset::tokenize(tokenizer, traces, recipe.max_tokens)?;
    if let Some(scores) = scores {
        data = data.weighed_by(scores, traces)?;
    }
    let mut held_out = held_out_traces(study)?;
    held_out.truncate(VALIDATED);
    // Without any that fit, the run is not measured on them.
    let held_out = Dataset::tokenize(tokenizer, &held_out, recipe.max_tokens).ok();
    let folder = study.path(trained.training());
    let in_fp8 = |content: String| match study.experiment.is_fp8() {
        true => format!("{content} in fp8"),
        false => content,
    };
    let run = Run::new(&folder, trained.slug(), study.stop)
        .resuming(true)
        .showing(true)
        .validating(held_out.as_ref())
        .begun_from(begun_from.clone().map(in_fp8));
    let Outcome::Finished(summary) = train(&mut model, &data, *objective, recipe, &run)? else {
        return Err(Error::Interrupted.into());
    };
    let last = summary.last.as_ref();
    let loss = last.map_or(String::new(), |last| format!(", loss {:.3}", last.loss));
    let valid = last.and_then(|last| last.valid.as_ref());
    let valid = valid.map_or(String::new(), |valid| format!(", held-out loss {:.3}", valid.ce));
    say(format!(
        "  {} steps over {} examples of {} traces ({} too long, {} traces infeasible, {} \
         skipped){loss}{valid}",
        summary.step,
        summary.examples,
        summary.traces,
        summary.dropped,
        summary.infeasible,
        summary.skipped
    ));
    let mut card = card(study.experiment, objective, data.len());
    if let Some(measured) = run.measured() {
        card = card.measured(&measured);
    }
    Ok(export(&model, tokenizer, &card, &study.path(trained.model()))?)
}

/// What stands beside a model of the study.
fn card(experiment: &Experiment, objective: &Surrogate, traces: usize) -> Card {
    let base = match &experiment.model {
        ModelChoice::Pretrained { base } => Some(base.clone()),
        ModelChoice::Scratch { .. } => None,
    };
    let prior = objective.prior();
    Card {
        objective: objective.objective().to_string(),
        budget: Weigh::budget(objective),
        prior: (prior != Prior::default()).then_some(prior),
        base,
        data: Some(format!("{traces} traces of the study \"{}\"", experiment.name)),
        ..Card::default()
    }
}
