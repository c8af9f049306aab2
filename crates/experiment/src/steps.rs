//! What each kind of step does, and which files it leaves.

use std::path::PathBuf;
use std::sync::Arc;

use catamount_evaluate::cell::sibling;
use catamount_evaluate::log::TreeRecord;
use catamount_model::{Backend, Config, Model, Tokenizer, load, load_adapter};
use catamount_objective::{Objective, Prior, Surrogate};
use catamount_search::{StrategyKind, Stream};
use catamount_traces::{Trace, read_any};
use catamount_train::{Dataset, Outcome as Trained, Recipe, Run, Weigh, export, prepare, train};

use crate::cells::{Cell, Sampler, theorems};
use crate::config::{Experiment, ModelChoice, ObjectiveChoice, PriorChoice};
use crate::error::{Error, Result};
use crate::offtrace::{OffTrace, measure};
use crate::plan::{Step, StepKind};
use crate::run::Host;
use crate::stamp::file_name;

/// Theorems on which off-trace behaviour is measured, and whose trees are kept for it.
const MEASURED: usize = 200;

/// The files of a step, relative to the study's folder: what is moved aside when the step's key
/// changes.
pub(crate) fn files(step: &Step) -> Vec<PathBuf> {
    let log = |log: PathBuf| {
        let siblings = ["manifest.json", "times.jsonl", "trees.jsonl", "spent.json"]
            .map(|suffix| sibling(&log, suffix));
        siblings.into_iter().chain([log]).collect()
    };
    match &step.kind {
        StepKind::Data => vec!["data".into()],
        StepKind::WarmUp | StepKind::Branch { .. } => {
            let name = branch_name(&step.name);
            vec![
                format!("models/{name}").into(),
                format!("training/{name}").into(),
                format!("training/{name}.metrics.jsonl").into(),
            ]
        }
        StepKind::OffTrace { .. } => {
            let mut files: Vec<PathBuf> = log(off_trace_log(&step.name));
            files.push(off_trace_log(&step.name).with_extension("measured.json"));
            files
        }
        StepKind::Cell { .. } => log(cell_log(&step.name)),
        StepKind::Report => Vec::new(),
    }
}

/// `branch bfs-n16` trains and exports as `bfs-n16`; the warm-up as `warm-up`.
pub(crate) fn branch_name(step: &str) -> String {
    file_name(step.strip_prefix("branch ").unwrap_or(step))
}

pub(crate) fn cell_log(step: &str) -> PathBuf {
    PathBuf::from("cells")
        .join(format!("{}.jsonl", file_name(step.strip_prefix("cell ").unwrap_or(step))))
}

fn off_trace_log(step: &str) -> PathBuf {
    PathBuf::from("off-trace")
        .join(format!("{}.jsonl", file_name(step.strip_prefix("off-trace ").unwrap_or(step))))
}

pub(crate) fn traces<B: Backend>(host: &Host<'_, B>, part: &str) -> Result<Vec<Trace>> {
    let path = host.folder.join("data").join(format!("{part}.jsonl"));
    read_any(&path).map(|loaded| loaded.traces).map_err(|error| Error::Config(error.to_string()))
}

/// The training traces: filtered by length, and the first so many by a hash of their names.
fn training_traces<B: Backend>(experiment: &Experiment, host: &Host<'_, B>) -> Result<Vec<Trace>> {
    let mut traces = traces(host, "train")?;
    traces.retain(|trace| experiment.data.steps.contains(trace.steps.len()));
    let order = Stream::new(0).named("training");
    traces.sort_by_key(|trace| order.named(&trace.theorem.name).0);
    traces.truncate(experiment.data.limit.unwrap_or(usize::MAX));
    if traces.is_empty() {
        return Err(Error::Config(format!(
            "no training trace has {} steps",
            experiment.data.steps
        )));
    }
    Ok(traces)
}

/// Trains the common ancestor.
pub(crate) fn warm_up<B: Backend>(
    experiment: &Experiment,
    host: &Host<'_, B>,
    step: &str,
) -> Result<()> {
    let traces = training_traces(experiment, host)?;
    let (model, tokenizer) = match &experiment.model {
        ModelChoice::Pretrained { base } => {
            (host.load)(base, experiment.warm_up.lora.is_none()).map_err(Error::step(step))?
        }
        ModelChoice::Scratch { hidden, layers, vocab, positions, tokenizer } => {
            let texts = traces
                .iter()
                .flat_map(|trace| &trace.steps)
                .flat_map(|step| [&step.state, &step.tactic]);
            let tokenizer = match tokenizer.as_str() {
                "symbols" => Tokenizer::train_symbols(texts, *vocab),
                "bpe" => {
                    Tokenizer::train_bpe(texts.cloned().collect::<Vec<_>>().into_iter(), *vocab)
                }
                other => {
                    return Err(Error::Config(format!(
                        "unknown tokenizer `{other}`; the known ones are symbols, bpe"
                    )));
                }
            };
            let tokenizer = tokenizer.map_err(|error| Error::step(step)(error.to_string()))?;
            let config = Config::small(tokenizer.vocab(), *hidden, *layers, *positions);
            let model = Model::init(
                Arc::clone(&host.backend),
                config,
                Stream::new(experiment.seed).named("model"),
            );
            (model.map_err(|error| Error::step(step)(error.to_string()))?, tokenizer)
        }
    };
    let objective = Surrogate::new(Objective::Ce, 0);
    train_and_export(
        experiment,
        host,
        step,
        model,
        &tokenizer,
        &traces,
        &objective,
        &experiment.warm_up,
    )
}

/// Trains one objective's branch from the warm-up.
pub(crate) fn branch<B: Backend>(
    experiment: &Experiment,
    host: &Host<'_, B>,
    step: &str,
    choice: &ObjectiveChoice,
    budget: u64,
) -> Result<()> {
    let traces = training_traces(experiment, host)?;
    let objective = surrogate(host, choice, budget)?;
    let (model, tokenizer) = load_model(experiment, host, step, "warm-up", true)?;
    train_and_export(
        experiment,
        host,
        step,
        model,
        &tokenizer,
        &traces,
        &objective,
        &experiment.branch,
    )
}

/// The surrogate of a branch; a measured prior is read from the measurement.
fn surrogate<B: Backend>(
    host: &Host<'_, B>,
    choice: &ObjectiveChoice,
    budget: u64,
) -> Result<Surrogate> {
    let objective = choice.objective().map_err(Error::Config)?;
    // Pass@N counts rollouts; the paper trains with a quarter of the expansions.
    let budget = if objective == Objective::Pass { (budget / 4).max(1) } else { budget };
    let prior = match &choice.prior {
        None => Prior::NONE,
        Some(PriorChoice::Given { kappa, absorption }) => {
            Prior::new(*kappa, *absorption).map_err(|error| Error::Config(error.to_string()))?
        }
        Some(PriorChoice::Named(_)) => {
            let log = off_trace_log(&format!("off-trace {objective} n{budget}"));
            let path = host.folder.join(log.with_extension("measured.json"));
            let text = std::fs::read(&path).map_err(Error::io(&path))?;
            let found: OffTrace =
                serde_json::from_slice(&text).map_err(|error| Error::Config(error.to_string()))?;
            Prior::new(found.kappa, found.absorption)
                .map_err(|error| Error::Config(error.to_string()))?
        }
    };
    Surrogate::new(objective, budget)
        .with_prior(prior)
        .map_err(|error| Error::Config(error.to_string()))
}

#[allow(clippy::too_many_arguments, reason = "warm-up and branches differ in all of them")]
fn train_and_export<B: Backend>(
    experiment: &Experiment,
    host: &Host<'_, B>,
    step: &str,
    mut model: Model<B>,
    tokenizer: &Tokenizer,
    traces: &[Trace],
    objective: &dyn Weigh,
    recipe: &Recipe,
) -> Result<()> {
    let fail = |error: catamount_train::Error| Error::step(step)(error.to_string());
    prepare(&mut model, recipe).map_err(fail)?;
    let data = Dataset::tokenize(tokenizer, traces, recipe.max_tokens).map_err(fail)?;
    let (folder, name) = (host.folder.join("training"), branch_name(step));
    let run = Run::new(&folder, &name, host.stop).resuming(true).showing(true);
    let outcome = train(&mut model, &data, objective, recipe, &run).map_err(fail)?;
    let Trained::Finished(summary) = outcome else {
        return Err(Error::Interrupted);
    };
    let loss = summary.last.map_or(String::new(), |last| format!(", loss {:.3}", last.loss));
    (host.say)(&format!(
        "  {} steps over {} examples of {} traces ({} too long, {} traces infeasible, {} \
         skipped){loss}",
        summary.step,
        summary.examples,
        summary.traces,
        summary.dropped,
        summary.infeasible,
        summary.skipped
    ));
    let base = match &experiment.model {
        ModelChoice::Pretrained { base } => base.as_str(),
        ModelChoice::Scratch { .. } => "",
    };
    export(&model, tokenizer, base, &host.folder.join("models").join(&name)).map_err(fail)
}

/// A model of this study: a whole one, or the pretrained base under its adapter.
pub(crate) fn load_model<B: Backend>(
    experiment: &Experiment,
    host: &Host<'_, B>,
    step: &str,
    name: &str,
    trained: bool,
) -> Result<(Model<B>, Tokenizer)> {
    let folder = host.folder.join("models").join(name);
    let fail = |error: catamount_model::Error| Error::step(step)(error.to_string());
    match (&experiment.model, &experiment.branch.lora) {
        (ModelChoice::Pretrained { base }, Some(_)) => {
            let (mut model, tokenizer) = (host.load)(base, false).map_err(Error::step(step))?;
            let adapter =
                load_adapter(&*host.backend, &model.config, &folder, trained).map_err(fail)?;
            model.swap_adapter(Some(adapter));
            Ok((model, tokenizer))
        }
        _ => load(&folder, Arc::clone(&host.backend), trained).map_err(fail),
    }
}

/// Measures what the warm-up model's misses cost on validation theorems.
pub(crate) fn off_trace<B: Backend>(
    experiment: &Experiment,
    host: &Host<'_, B>,
    step: &str,
    strategy: StrategyKind,
    budget: u64,
) -> Result<()> {
    let mut theorems = theorems(experiment, host, "valid", Some(MEASURED))?;
    theorems.jobs.iter_mut().for_each(|job| job.tree = true);
    let log = host.folder.join(off_trace_log(step));
    let cell = Cell { step, objective: "warm-up", strategy, budget, log: log.clone(), theorems };
    Sampler::default().search(experiment, host, "warm-up", &[cell], &mut |_, _| Ok(()))?;
    let path = sibling(&log, "trees.jsonl");
    let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
    let trees: Vec<TreeRecord> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let found = measure(strategy.name(), &trees, &traces(host, "valid")?);
    (host.say)(&format!(
        "  measured on {} theorems: kappa {:.2}, q {:.3}; {} proved along the trace, {} otherwise",
        found.theorems, found.kappa, found.absorption, found.along_trace, found.bypass
    ));
    let path = log.with_extension("measured.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&found).expect("plain data"))
        .map_err(Error::io(&path))?;
    collect_off_trace(host)
}

/// Puts every measurement into the table that the report shows.
fn collect_off_trace<B: Backend>(host: &Host<'_, B>) -> Result<()> {
    let folder = host.folder.join("off-trace");
    let mut found: Vec<OffTrace> = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(Error::io(&folder))?.flatten() {
        if entry.path().to_string_lossy().ends_with("measured.json")
            && let Ok(text) = std::fs::read(entry.path())
        {
            found.extend(serde_json::from_slice::<OffTrace>(&text));
        }
    }
    found.sort_by(|a, b| a.strategy.cmp(&b.strategy));
    let path = host.folder.join("offtrace.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&found).expect("plain data"))
        .map_err(Error::io(&path))
}
