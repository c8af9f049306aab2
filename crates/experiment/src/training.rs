//! The steps that train: the common ancestor, and a branch for each objective.

use std::sync::Arc;

use catamount_base::Stream;
use catamount_model::{Backend, Config, Model, Tokenizer, open};
use catamount_objective::{Objective, Surrogate};
use catamount_traces::Trace;
use catamount_train::{Dataset, Outcome, Recipe, Run, Weigh, export, prepare, train};

use crate::calibrating;
use crate::error::{Error, Work};
use crate::experiment::{ModelChoice, PriorChoice};
use crate::file::TokenizerKind;
use crate::step::{Branch, Trained, part};
use crate::study::{Study, say};

/// The training traces: filtered by length, and the first so many by a hash of their names.
fn traces<B: Backend>(study: &Study<'_, B>) -> Work<Vec<Trace>> {
    let data = &study.experiment.data;
    let mut traces = study.traces("train")?;
    traces.retain(|trace| data.steps.contains(trace.steps.len()));
    let order = Stream::new(0).named("training");
    traces.sort_by_key(|trace| order.named(&trace.theorem.name).0);
    traces.truncate(data.limit.unwrap_or(usize::MAX));
    if traces.is_empty() {
        let path = study.path(part("train"));
        return Err(Error::Empty { what: "training trace", steps: data.steps, path }.into());
    }
    Ok(traces)
}

/// Trains the common ancestor.
pub(crate) fn warm_up<B: Backend>(study: &Study<'_, B>) -> Work<()> {
    let experiment = study.experiment;
    let traces = traces(study)?;
    let (model, tokenizer) = match &experiment.model {
        ModelChoice::Pretrained { base } => {
            open(base, &study.backend, experiment.warm_up.lora.is_none())?
        }
        ModelChoice::Scratch { hidden, layers, vocab, positions, tokenizer } => {
            let steps = traces.iter().flat_map(|trace| &trace.steps);
            let texts = steps.flat_map(|step| [&step.state, &step.tactic]);
            let tokenizer = match tokenizer {
                TokenizerKind::Symbols => Tokenizer::train_symbols(texts, *vocab)?,
                TokenizerKind::Bpe => {
                    Tokenizer::train_bpe(texts.cloned().collect::<Vec<_>>().into_iter(), *vocab)?
                }
            };
            let config = Config::small(tokenizer.vocab(), *hidden, *layers, *positions);
            let seed = Stream::new(experiment.seed).named("model");
            (Model::init(Arc::clone(&study.backend), config, seed)?, tokenizer)
        }
    };
    let objective = Surrogate::new(Objective::Ce, 0);
    let recipe = &experiment.warm_up;
    finish(study, &Trained::warm_up(), model, &tokenizer, &traces, &objective, recipe)
}

/// Trains one objective's branch from the warm-up.
pub(crate) fn branch<B: Backend>(study: &Study<'_, B>, branch: &Branch) -> Work<()> {
    let choice = &branch.objective;
    let objective = match choice.prior {
        PriorChoice::None => choice.surrogate(branch.budget),
        PriorChoice::Given(prior) => choice.surrogate(branch.budget).with_prior(prior)?,
        PriorChoice::Fitted => {
            let fit = choice.fit(&study.experiment.evaluation, branch.budget);
            let clock = calibrating::clock(study, &fit.map_err(Error::Deployment)?)?;
            clock.surrogate(choice.objective, branch.budget)?
        }
    };
    let mut recipe = study.experiment.branch.clone();
    if let Some(floor) = choice.floor {
        recipe.weights.min = floor;
    }
    let traces = traces(study)?;
    let (model, tokenizer) = study.model(&Trained::warm_up(), true)?;
    finish(study, &branch.trained, model, &tokenizer, &traces, &objective, &recipe)
}

/// Trains from wherever it stands, and exports.
fn finish<B: Backend>(
    study: &Study<'_, B>,
    trained: &Trained,
    mut model: Model<B>,
    tokenizer: &Tokenizer,
    traces: &[Trace],
    objective: &dyn Weigh,
    recipe: &Recipe,
) -> Work<()> {
    prepare(&mut model, recipe)?;
    let data = Dataset::tokenize(tokenizer, traces, recipe.max_tokens)?;
    let folder = study.path(Trained::training());
    let run = Run::new(&folder, trained.slug(), study.stop).resuming(true).showing(true);
    let Outcome::Finished(summary) = train(&mut model, &data, objective, recipe, &run)? else {
        return Err(Error::Interrupted.into());
    };
    let loss = summary.last.map_or(String::new(), |last| format!(", loss {:.3}", last.loss));
    say(format!(
        "  {} steps over {} examples of {} traces ({} too long, {} traces infeasible, {} \
         skipped){loss}",
        summary.step,
        summary.examples,
        summary.traces,
        summary.dropped,
        summary.infeasible,
        summary.skipped
    ));
    let base = match &study.experiment.model {
        ModelChoice::Pretrained { base } => base.as_str(),
        ModelChoice::Scratch { .. } => "",
    };
    Ok(export(&model, tokenizer, base, &study.path(trained.model()))?)
}
