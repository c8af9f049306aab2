//! Cells: searches of the held-out theorems. Those of one model are searched in one go, so that the
//! device never waits between two of them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use catamount_evaluate::cell::sibling;
use catamount_evaluate::driver::Plan as SearchPlan;
use catamount_evaluate::log::{Manifest, Outcome, TimeRecord};
use catamount_evaluate::pool::Theorems;
use catamount_evaluate::run::{CellRun, CellTask, Watched, run_cells};
use catamount_model::{Backend, Generator, GeneratorConfig, load_adapter};
use catamount_search::{Deployment, Policy, StrategyKind};
use indicatif::{ProgressBar, ProgressStyle};

use crate::config::{Experiment, ModelChoice};
use crate::error::{Error, Result};
use crate::plan::{Step, StepKind};
use crate::run::Host;
use crate::steps::{branch_name, cell_log, load_model, traces};
use crate::time;

/// A cell that is to be searched.
pub(crate) struct Cell<'a> {
    pub step: &'a str,
    pub objective: &'a str,
    pub strategy: StrategyKind,
    pub budget: u64,
    pub log: PathBuf,
    pub theorems: Theorems,
}

/// How many of these steps, from the first on, are cells that can be searched together.
pub(crate) fn together(experiment: &Experiment, steps: &[Step]) -> usize {
    let branch = |step: &Step| match &step.kind {
        StepKind::Cell { branch, .. } => Some(branch.clone()),
        _ => None,
    };
    let Some(first) = steps.first().and_then(branch) else { return 0 };
    // A cap over several strategies needs to know what the strategies before have spent.
    let most = if experiment.evaluation.theorem_time_limit.is_some() { 1 } else { usize::MAX };
    steps.iter().take(most).take_while(|step| branch(step).as_ref() == Some(&first)).count()
}

/// Searches cells of one model; `ended` gets each step as it is done, with what came of it.
pub(crate) fn cells<B: Backend>(
    experiment: &Experiment,
    host: &Host<'_, B>,
    sampler: &mut Sampler<B>,
    steps: &[Step],
    ended: &mut dyn FnMut(&Step, &CellRun) -> Result<()>,
) -> Result<()> {
    let evaluation = &experiment.evaluation;
    let mut all = Vec::new();
    let mut model = String::new();
    for step in steps {
        let StepKind::Cell { branch, objective, strategy, budget } = &step.kind else { continue };
        model = branch_name(branch);
        let mut theorems = theorems(experiment, host, "test", evaluation.limit)?;
        for job in theorems.jobs.iter_mut().take(evaluation.trees) {
            job.tree = true;
        }
        if let Some(cap) = evaluation.theorem_time_limit {
            let spent = earlier_seconds(experiment, host, objective, *strategy, *budget);
            for job in &mut theorems.jobs {
                let left = cap - spent.get(&job.theorem.name).copied().unwrap_or(0.0);
                job.time_left = Some(Duration::from_secs_f64(left.max(0.0)));
            }
        }
        let log = host.folder.join(cell_log(&step.name));
        all.push(Cell {
            step: &step.name,
            objective,
            strategy: *strategy,
            budget: *budget,
            log,
            theorems,
        });
    }
    sampler.search(experiment, host, &model, &all, &mut |index, run| ended(&steps[index], run))
}

/// The theorems of one part of the data, of the evaluated lengths.
pub(crate) fn theorems<B: Backend>(
    experiment: &Experiment,
    host: &Host<'_, B>,
    part: &str,
    limit: Option<usize>,
) -> Result<Theorems> {
    let steps = experiment.evaluation.steps;
    Theorems::select(traces(host, part)?, &format!("data/{part}.jsonl"), Some(steps), limit)
        .ok_or_else(|| Error::Config(format!("no theorem of {part}.jsonl has {steps} steps")))
}

/// Seconds that the strategies before this one spent on each theorem, under the same objective and
/// budget.
fn earlier_seconds<B: Backend>(
    experiment: &Experiment,
    host: &Host<'_, B>,
    objective: &str,
    strategy: StrategyKind,
    budget: u64,
) -> HashMap<String, f64> {
    let mut spent: HashMap<String, f64> = HashMap::new();
    for earlier in
        experiment.evaluation.strategies.iter().take_while(|earlier| **earlier != strategy)
    {
        let log = host.folder.join(cell_log(&format!("cell {objective} {earlier} n{budget}")));
        // An objective that is not evaluated under this strategy has spent nothing there.
        let Ok(text) = std::fs::read_to_string(sibling(&log, "times.jsonl")) else { continue };
        for time in text.lines().filter_map(|line| serde_json::from_str::<TimeRecord>(line).ok()) {
            *spent.entry(time.theorem).or_default() += time.seconds;
        }
    }
    spent
}

/// The generator, kept from one model to the next where they share a base: only the adapter is
/// loaded again.
pub(crate) struct Sampler<B: Backend> {
    generator: Option<Generator<B>>,
}

impl<B: Backend> Default for Sampler<B> {
    fn default() -> Self {
        Sampler { generator: None }
    }
}

impl<B: Backend> Sampler<B> {
    fn load(
        &mut self,
        experiment: &Experiment,
        host: &Host<'_, B>,
        step: &str,
        model: &str,
        deployment: &Deployment,
    ) -> Result<&mut Generator<B>> {
        let evaluation = &experiment.evaluation;
        let fail = |error: catamount_model::Error| Error::step(step)(error.to_string());
        let shared = matches!(
            (&experiment.model, &experiment.branch.lora),
            (ModelChoice::Pretrained { .. }, Some(_))
        );
        let generator = match self.generator.take() {
            Some(mut generator) if shared => {
                let folder = host.folder.join("models").join(model);
                let adapter =
                    load_adapter(&*host.backend, &generator.model().config, &folder, false)
                        .map_err(fail)?;
                generator.swap_adapter(Some(adapter), model).map_err(fail)?;
                generator
            }
            old => {
                // Given back first: the two need not fit at once.
                drop(old);
                let (network, tokenizer) = load_model(experiment, host, step, model, false)?;
                let config = GeneratorConfig::deployed(
                    &network.config,
                    deployment,
                    evaluation.batch,
                    evaluation.concurrency,
                );
                Generator::new(network, tokenizer, config, model).map_err(fail)?
            }
        };
        Ok(self.generator.insert(generator))
    }

    /// Searches cells of one model, and says of each what came of it.
    pub fn search(
        &mut self,
        experiment: &Experiment,
        host: &Host<'_, B>,
        model: &str,
        cells: &[Cell<'_>],
        ended: &mut dyn FnMut(usize, &CellRun) -> Result<()>,
    ) -> Result<()> {
        let Some(first) = cells.first() else { return Ok(()) };
        let evaluation = &experiment.evaluation;
        let fail = Error::step(first.step);
        let deployment = evaluation
            .deployment(first.strategy, first.budget)
            .map_err(|error| fail(error.to_string()))?;
        let policy = self.load(experiment, host, first.step, model, &deployment)?;
        let time_limit = evaluation.time_limit.map(Duration::try_from_secs_f64).transpose();
        let time_limit = time_limit.map_err(|error| fail(format!("time_limit: {error}")))?;
        let (mut plans, mut manifests) = (Vec::new(), Vec::new());
        for cell in cells {
            let deployment = evaluation.deployment(cell.strategy, cell.budget);
            let plan = SearchPlan {
                deployment: deployment.map_err(|error| fail(error.to_string()))?,
                seed: experiment.seed,
                time_limit,
                concurrency: evaluation.concurrency,
                threads: host.threads,
            };
            manifests.push(Manifest {
                format: 1,
                objective: cell.objective.to_string(),
                strategy: cell.strategy.to_string(),
                settings: serde_json::to_value(&plan.deployment).expect("plain data"),
                budget: cell.budget,
                seed: plan.seed,
                policy: policy.describe(),
                environment: host.environment.describe(),
                pool: cell.theorems.pool.clone(),
                version: env!("CARGO_PKG_VERSION").to_string(),
                commit: host.commit.clone(),
                command: host.command.clone(),
            });
            plans.push(plan);
        }
        let tasks: Vec<CellTask<'_>> = cells
            .iter()
            .zip(plans.iter().zip(&manifests))
            .map(|(cell, (plan, manifest))| CellTask {
                log: &cell.log,
                manifest,
                theorems: &cell.theorems,
                plan,
            })
            .collect();
        let template = "  {bar:30} {pos}/{len} theorems  {per_sec}  {elapsed} + {eta} left  {msg}";
        let style = ProgressStyle::with_template(template).expect("a valid template");
        let bar = ProgressBar::new(cells.iter().map(|cell| cell.theorems.jobs.len() as u64).sum())
            .with_style(style);
        let mut proved = 0;
        let mut watch = |_: usize, watched: Watched<'_>| {
            match watched {
                Watched::Before { done, proved: before } => {
                    bar.inc(done as u64);
                    bar.reset_eta();
                    proved += before;
                }
                Watched::Finished(finished) => {
                    bar.inc(1);
                    proved += usize::from(finished.record.outcome == Outcome::Proved);
                }
            }
            bar.set_message(format!("{proved} proved"));
        };
        let (mut failure, mut complete) = (None, true);
        let mut done = |index: usize, run: CellRun| {
            complete &= run.complete;
            if let Err(error) =
                bar.suspend(|| if run.complete { ended(index, &run) } else { Ok(()) })
            {
                failure.get_or_insert(error);
            }
        };
        let before = policy.work();
        let run = run_cells(&tasks, &host.environment, policy, host.stop, &mut watch, &mut done);
        bar.finish_and_clear();
        run.map_err(|error| fail(error.to_string()))?;
        if let Some(error) = failure {
            return Err(error);
        }
        let work = policy.work() - before;
        time::Sampled {
            steps: work.steps,
            tokens: work.tokens,
            prompts: work.prompts,
            prompt_tokens: work.prompt_tokens,
            device: work.device.as_secs_f64(),
            total: work.total.as_secs_f64(),
        }
        .add(host.folder, model)?;
        if complete { Ok(()) } else { Err(Error::Interrupted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::presets::preset;

    #[test]
    fn cells_of_one_model_are_searched_together() {
        let mut experiment = preset("demo").unwrap();
        let plan = Plan::new(&experiment, "source");
        let cells: Vec<&Step> =
            plan.steps.iter().filter(|step| matches!(step.kind, StepKind::Cell { .. })).collect();
        let first = plan.steps.iter().position(|step| step.name == cells[0].name).unwrap();
        let (mut groups, mut at) = (Vec::new(), first);
        while together(&experiment, &plan.steps[at..]) > 0 {
            groups.push(together(&experiment, &plan.steps[at..]));
            at += groups.last().unwrap();
        }
        // Cross-entropy is searched under every strategy; every cell is in one group.
        assert_eq!(groups[0], experiment.evaluation.strategies.len());
        assert_eq!(groups.iter().sum::<usize>(), cells.len());
        assert_eq!(together(&experiment, &plan.steps), 0, "data comes first, and is no cell");
        experiment.evaluation.theorem_time_limit = Some(1.0);
        assert_eq!(
            together(&experiment, &plan.steps[first..]),
            1,
            "later strategies depend on what earlier ones spent"
        );
    }
}
