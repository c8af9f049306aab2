//! What each kind of step does, and which files it leaves.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catamount_evaluate::cell::sibling;
use catamount_evaluate::driver::Plan as SearchPlan;
use catamount_evaluate::log::{Manifest, Outcome, TimeRecord, TreeRecord};
use catamount_evaluate::pool::Theorems;
use catamount_evaluate::run::{Watched, run_cell};
use catamount_model::{Backend, Config, Generator, GeneratorConfig, Model, Sampling, Tokenizer, load, load_adapter};
use catamount_objective::{Objective, Prior, Surrogate};
use catamount_search::Stream;
use catamount_traces::{Trace, read_any};
use catamount_train::{Dataset, Outcome as Trained, Recipe, Run, Weigh, export, prepare, train};
use indicatif::{ProgressBar, ProgressStyle};

use crate::config::{Experiment, ModelChoice, ObjectiveChoice, PriorChoice};
use crate::error::{Error, Result};
use crate::offtrace::{OffTrace, measure};
use crate::plan::{Step, StepKind};
use crate::run::Host;
use crate::stamp::file_name;

/// Theorems on which off-trace behaviour is measured, and whose trees are kept for it.
const MEASURED: usize = 200;

/// The files of a step, relative to the study's folder: what is moved aside when the step's key changes.
pub(crate) fn files(step: &Step) -> Vec<PathBuf> {
    let log = |log: PathBuf| {
        let siblings = ["manifest.json", "times.jsonl", "trees.jsonl"].map(|suffix| sibling(&log, suffix));
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
fn branch_name(step: &str) -> String {
    file_name(step.strip_prefix("branch ").unwrap_or(step))
}

fn cell_log(step: &str) -> PathBuf {
    PathBuf::from("cells").join(format!("{}.jsonl", file_name(step.strip_prefix("cell ").unwrap_or(step))))
}

fn off_trace_log(step: &str) -> PathBuf {
    PathBuf::from("off-trace").join(format!("{}.jsonl", file_name(step.strip_prefix("off-trace ").unwrap_or(step))))
}

fn traces<B: Backend>(host: &Host<'_, B>, part: &str) -> Result<Vec<Trace>> {
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
        return Err(Error::Config(format!("no training trace has {} steps", experiment.data.steps)));
    }
    Ok(traces)
}

/// Trains the common ancestor.
pub(crate) fn warm_up<B: Backend>(experiment: &Experiment, host: &Host<'_, B>, step: &str) -> Result<()> {
    let traces = training_traces(experiment, host)?;
    let (model, tokenizer) = match &experiment.model {
        ModelChoice::Pretrained { base } => (host.load)(base, experiment.warm_up.lora.is_none()).map_err(Error::step(step))?,
        ModelChoice::Scratch { hidden, layers, vocab, positions, tokenizer } => {
            let texts = traces.iter().flat_map(|trace| &trace.steps).flat_map(|step| [&step.state, &step.tactic]);
            let tokenizer = match tokenizer.as_str() {
                "symbols" => Tokenizer::train_symbols(texts, *vocab),
                "bpe" => Tokenizer::train_bpe(texts.cloned().collect::<Vec<_>>().into_iter(), *vocab),
                other => return Err(Error::Config(format!("unknown tokenizer `{other}`; the known ones are symbols, bpe"))),
            };
            let tokenizer = tokenizer.map_err(|error| Error::step(step)(error.to_string()))?;
            let config = Config::small(tokenizer.vocab(), *hidden, *layers, *positions);
            let model = Model::init(Arc::clone(&host.backend), config, Stream::new(experiment.seed).named("model"));
            (model.map_err(|error| Error::step(step)(error.to_string()))?, tokenizer)
        }
    };
    let objective = Surrogate::new(Objective::Ce, 0);
    train_and_export(experiment, host, step, model, &tokenizer, &traces, &objective, &experiment.warm_up)
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
    train_and_export(experiment, host, step, model, &tokenizer, &traces, &objective, &experiment.branch)
}

/// The surrogate of a branch; a measured prior is read from the measurement.
fn surrogate<B: Backend>(host: &Host<'_, B>, choice: &ObjectiveChoice, budget: u64) -> Result<Surrogate> {
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
            let found: OffTrace = serde_json::from_slice(&text).map_err(|error| Error::Config(error.to_string()))?;
            Prior::new(found.kappa, found.absorption).map_err(|error| Error::Config(error.to_string()))?
        }
    };
    Surrogate::new(objective, budget).with_prior(prior).map_err(|error| Error::Config(error.to_string()))
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
        "  {} steps over {} examples of {} traces ({} too long, {} traces infeasible, {} skipped){loss}",
        summary.step, summary.examples, summary.traces, summary.dropped, summary.infeasible, summary.skipped
    ));
    let base = match &experiment.model {
        ModelChoice::Pretrained { base } => base.as_str(),
        ModelChoice::Scratch { .. } => "",
    };
    export(&model, tokenizer, base, &host.folder.join("models").join(&name)).map_err(fail)
}

/// A model of this study: a whole one, or the pretrained base under its adapter.
fn load_model<B: Backend>(
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
            let adapter = load_adapter(&*host.backend, &model.config, &folder, trained).map_err(fail)?;
            model.swap_adapter(Some(adapter));
            Ok((model, tokenizer))
        }
        _ => load(&folder, Arc::clone(&host.backend), trained).map_err(fail),
    }
}

/// One (objective, strategy, budget).
pub(crate) struct CellStep<'a> {
    pub branch: &'a str,
    pub objective: &'a str,
    pub strategy: &'a str,
    pub budget: u64,
}

pub(crate) fn cell<B: Backend>(experiment: &Experiment, host: &Host<'_, B>, step: &str, cell: &CellStep<'_>) -> Result<()> {
    let evaluation = &experiment.evaluation;
    let mut theorems = theorems(experiment, host, "test", evaluation.limit)?;
    for job in theorems.jobs.iter_mut().take(evaluation.trees) {
        job.tree = true;
    }
    if let Some(cap) = evaluation.theorem_time_limit {
        let spent = earlier_seconds(experiment, host, cell)?;
        for job in &mut theorems.jobs {
            let left = cap - spent.get(&job.theorem.name).copied().unwrap_or(0.0);
            job.time_left = Some(Duration::from_secs_f64(left.max(0.0)));
        }
    }
    let log = host.folder.join(cell_log(step));
    search(experiment, host, step, &branch_name(cell.branch), cell, &log, &theorems)
}

/// Measures what the warm-up model's misses cost on validation theorems.
pub(crate) fn off_trace<B: Backend>(
    experiment: &Experiment,
    host: &Host<'_, B>,
    step: &str,
    strategy: &str,
    budget: u64,
) -> Result<()> {
    let mut theorems = theorems(experiment, host, "valid", Some(MEASURED))?;
    theorems.jobs.iter_mut().for_each(|job| job.tree = true);
    let log = host.folder.join(off_trace_log(step));
    let cell = CellStep { branch: "warm-up", objective: "warm-up", strategy, budget };
    search(experiment, host, step, "warm-up", &cell, &log, &theorems)?;
    let path = sibling(&log, "trees.jsonl");
    let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
    let trees: Vec<TreeRecord> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let found = measure(strategy, &trees, &traces(host, "valid")?);
    (host.say)(&format!(
        "  measured on {} theorems: kappa {:.2}, q {:.3}; {} proved along the trace, {} otherwise",
        found.theorems, found.kappa, found.absorption, found.along_trace, found.bypass
    ));
    let path = log.with_extension("measured.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&found).expect("plain data")).map_err(Error::io(&path))?;
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
    std::fs::write(&path, serde_json::to_vec_pretty(&found).expect("plain data")).map_err(Error::io(&path))
}

fn theorems<B: Backend>(experiment: &Experiment, host: &Host<'_, B>, part: &str, limit: Option<usize>) -> Result<Theorems> {
    let steps = experiment.evaluation.steps;
    Theorems::select(traces(host, part)?, &format!("data/{part}.jsonl"), Some(steps), limit)
        .ok_or_else(|| Error::Config(format!("no theorem of {part}.jsonl has {steps} steps")))
}

/// Seconds that the strategies before this one spent on each theorem, under the same objective and budget.
fn earlier_seconds<B: Backend>(experiment: &Experiment, host: &Host<'_, B>, cell: &CellStep<'_>) -> Result<HashMap<String, f64>> {
    let mut spent: HashMap<String, f64> = HashMap::new();
    for strategy in experiment.evaluation.strategies.iter().take_while(|strategy| *strategy != cell.strategy) {
        let log = host.folder.join(cell_log(&format!("cell {} {strategy} n{}", cell.objective, cell.budget)));
        let path = sibling(&log, "times.jsonl");
        // An objective that is not evaluated under this strategy has spent nothing there.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for time in text.lines().filter_map(|line| serde_json::from_str::<TimeRecord>(line).ok()) {
            *spent.entry(time.theorem).or_default() += time.seconds;
        }
    }
    Ok(spent)
}

fn search<B: Backend>(
    experiment: &Experiment,
    host: &Host<'_, B>,
    step: &str,
    model: &str,
    cell: &CellStep<'_>,
    log: &Path,
    theorems: &Theorems,
) -> Result<()> {
    let evaluation = &experiment.evaluation;
    let fail = |error: String| Error::step(step)(error);
    let (network, tokenizer) = load_model(experiment, host, step, model, false)?;
    let room = network.config.positions.saturating_sub(evaluation.max_tokens);
    let config = GeneratorConfig {
        sampling: Sampling { temperature: evaluation.temperature, top_p: 1.0 },
        max_tokens: evaluation.max_tokens,
        max_prompt: room,
        batch: evaluation.batch,
        cache: (evaluation.concurrency * 96).max(evaluation.batch * evaluation.max_tokens + 8 * room),
    };
    let mut policy = Generator::new(network, tokenizer, config, model).map_err(|error| fail(error.to_string()))?;
    let time_limit = evaluation.time_limit.map(Duration::try_from_secs_f64).transpose();
    let plan = SearchPlan {
        strategy: cell.strategy.to_string(),
        settings: evaluation.search.clone(),
        budget: cell.budget,
        seed: experiment.seed,
        time_limit: time_limit.map_err(|error| fail(format!("time_limit: {error}")))?,
        concurrency: evaluation.concurrency,
        threads: host.threads,
    };
    let manifest = Manifest {
        format: 1,
        objective: cell.objective.to_string(),
        strategy: plan.strategy.clone(),
        settings: serde_json::to_value(&plan.settings).expect("plain data"),
        budget: plan.budget,
        seed: plan.seed,
        policy: catamount_search::Policy::describe(&policy),
        environment: host.environment.describe(),
        pool: theorems.pool.clone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: host.commit.clone(),
        command: host.command.clone(),
    };
    let template = "  {bar:30} {pos}/{len} theorems  {per_sec}  {elapsed} + {eta} left  {msg}";
    let style = ProgressStyle::with_template(template).expect("a valid template");
    let bar = ProgressBar::new(theorems.jobs.len() as u64).with_style(style);
    let mut proved = 0;
    let mut watch = |watched: Watched<'_>| {
        match watched {
            Watched::Before { done, proved: before } => {
                bar.set_position(done as u64);
                bar.reset_eta();
                proved = before;
            }
            Watched::Finished(finished) => {
                bar.inc(1);
                proved += usize::from(finished.record.outcome == Outcome::Proved);
            }
        }
        bar.set_message(format!("{proved} proved"));
    };
    let run = run_cell(log, &manifest, &host.environment, &mut policy, theorems, &plan, host.stop, &mut watch);
    bar.finish_and_clear();
    let run = run.map_err(|error| fail(error.to_string()))?;
    if !run.complete {
        return Err(Error::Interrupted);
    }
    let count = |outcome| run.count(outcome);
    (host.say)(&format!(
        "  {} of {} proved ({:.1} %), {} errors, {:.0} s (sampling {:.0} %)",
        count(Outcome::Proved),
        theorems.jobs.len(),
        100.0 * count(Outcome::Proved) as f64 / theorems.jobs.len() as f64,
        count(Outcome::Error),
        run.spent.total,
        100.0 * run.spent.policy / run.spent.total.max(1e-9),
    ));
    Ok(())
}
