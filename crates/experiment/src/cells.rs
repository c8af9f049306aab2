//! The steps that search. Cells of one model are searched in one go, so that the device never waits
//! between two of them.

use std::collections::HashMap;
use std::time::Duration;

use catamount_base::Lines;
use catamount_evaluate::log::TimeRecord;
use catamount_evaluate::{CellRun, CellTask, Evaluation, Observer, Theorems, Workload, sibling};
use catamount_model::{Backend, Generator, GeneratorConfig, load_adapter};
use catamount_search::{Deployment, Policy};

use crate::error::{Error, Result, Work};
use crate::plan::{Plan, Planned};
use crate::step::{Cell, Step, Trained, part};
use crate::study::Study;
use crate::time;

/// How many of these steps, from the first on, are cells that can be searched together: those of
/// one model that is sampled in one way.
pub(crate) fn together(limited: bool, steps: &[&Planned]) -> usize {
    fn sampling(planned: &Planned) -> Option<(&Trained, [u64; 2], usize, bool)> {
        let Step::Cell(Cell { trained, deployment: d, .. }) = &planned.step else { return None };
        let numbers = [d.temperature().to_bits(), d.top_p().to_bits()];
        Some((trained, numbers, d.max_tokens(), d.distinct()))
    }
    let Some(first) = steps.first().and_then(|planned| sampling(planned)) else { return 0 };
    // A cap over several strategies needs to know what the strategies before have spent.
    let most = if limited { 1 } else { usize::MAX };
    let alike = |planned: &&&Planned| sampling(planned) == Some(first);
    steps.iter().take(most).take_while(alike).count()
}

/// The theorems of one part of the data, of the evaluated lengths.
pub(crate) fn theorems<B: Backend>(
    study: &Study<'_, B>,
    name: &str,
    limit: Option<usize>,
) -> Work<Theorems> {
    let steps = study.experiment.evaluation.steps;
    let file = part(name);
    let traces = study.traces(name)?;
    let theorems = Theorems::select(traces, &file.display().to_string(), Some(steps), limit);
    let empty = Error::Empty { what: "held-out theorem", steps, path: study.path(file) };
    Ok(theorems.ok_or(empty)?)
}

/// What a cell searches.
pub(crate) fn searches<B: Backend>(
    study: &Study<'_, B>,
    plan: &Plan,
    cell: &Cell,
) -> Work<CellTask> {
    let evaluation = &study.experiment.evaluation;
    let mut theorems = theorems(study, "test", evaluation.limit)?;
    for job in theorems.jobs.iter_mut().take(evaluation.trees) {
        job.tree = true;
    }
    if let Some(cap) = evaluation.theorem_time_limit {
        let spent = earlier_seconds(study, plan, cell)?;
        for job in &mut theorems.jobs {
            let spent = spent.get(&job.theorem.name).copied().unwrap_or(0.0);
            job.time_left = Some(cap.saturating_sub(Duration::from_secs_f64(spent)));
        }
    }
    Ok(CellTask {
        objective: cell.objective.clone(),
        deployment: cell.deployment.clone(),
        log: study.path(cell.log()),
        theorems,
    })
}

/// Seconds that the strategies before this one spent on each theorem, under the same objective and
/// budget.
fn earlier_seconds<B: Backend>(
    study: &Study<'_, B>,
    plan: &Plan,
    cell: &Cell,
) -> Work<HashMap<String, f64>> {
    let mut spent: HashMap<String, f64> = HashMap::new();
    let same = |other: &&Cell| {
        other.objective == cell.objective && other.deployment.budget() == cell.deployment.budget()
    };
    for earlier in plan.cells().take_while(|other| *other != cell).filter(same) {
        let times = sibling(&study.path(earlier.log()), "times.jsonl");
        for time in Lines::<TimeRecord>::read(&times)? {
            *spent.entry(time.theorem).or_default() += time.seconds.max(0.0);
        }
    }
    Ok(spent)
}

/// The generator, kept from one model to the next where they share a base: only the adapter is
/// loaded again.
pub(crate) struct Sampler<B: Backend> {
    generator: Option<(GeneratorConfig, Generator<B>)>,
}

impl<B: Backend> Default for Sampler<B> {
    fn default() -> Self {
        Sampler { generator: None }
    }
}

impl<B: Backend> Sampler<B> {
    fn load(
        &mut self,
        study: &Study<'_, B>,
        trained: &Trained,
        deployment: &Deployment,
    ) -> Work<&mut Generator<B>> {
        let evaluation = &study.experiment.evaluation;
        let config = |model: &catamount_model::Config| {
            GeneratorConfig::deployed(model, deployment, evaluation.batch, evaluation.concurrency)
        };
        let kept = self.generator.take().filter(|(same, generator)| {
            study.adapted().is_some() && *same == config(&generator.model().config)
        });
        let generator = match kept {
            Some((config, mut generator)) => {
                let (backend, folder) = (&*study.backend, study.path(trained.model()));
                let adapter = load_adapter(backend, &generator.model().config, &folder, false)?;
                generator.swap_adapter(Some(adapter), trained.name())?;
                (config, generator)
            }
            // What was there is given back by now: the two need not fit at once.
            None => {
                let (network, tokenizer) = study.model(trained, false)?;
                let config = config(&network.config);
                let generator = Generator::new(network, tokenizer, config, trained.name())?;
                (config, generator)
            }
        };
        let generator = &mut self.generator.insert(generator).1;
        generator.set_identity(study.identity(trained)?);
        Ok(generator)
    }

    /// Searches cells of one model; `ended` gets each as it is done, with what came of it.
    pub fn search(
        &mut self,
        study: &Study<'_, B>,
        trained: &Trained,
        cells: &[CellTask],
        ended: &mut dyn FnMut(usize, &CellRun) -> Result<()>,
    ) -> Work<()> {
        let Some(first) = cells.first() else { return Ok(()) };
        let complete = match &study.experiment.policy {
            Some(server) => {
                let mut policy = server.open(study, trained, &first.deployment)?;
                evaluate(study, &mut policy, cells, ended)?
            }
            None => {
                let policy = self.load(study, trained, &first.deployment)?;
                let started = policy.work();
                let complete = evaluate(study, policy, cells, ended)?;
                let sampled = time::Sampled::from(policy.work() - started);
                sampled.add(&study.path(trained.sampling()))?;
                complete
            }
        };
        if complete { Ok(()) } else { Err(Error::Interrupted.into()) }
    }
}

/// Searches cells with a policy; whether all came to their end.
fn evaluate<B: Backend>(
    study: &Study<'_, B>,
    policy: &mut dyn Policy,
    cells: &[CellTask],
    ended: &mut dyn FnMut(usize, &CellRun) -> Result<()>,
) -> Work<bool> {
    let (experiment, evaluation) = (study.experiment, &study.experiment.evaluation);
    let mut ledger = Ledger { ended, failure: None };
    let runs = Evaluation {
        environment: &study.environment,
        policy,
        seed: experiment.seed,
        time_limit: evaluation.time_limit,
        theorem_time_limit: evaluation.theorem_time_limit,
        workload: Workload {
            concurrency: evaluation.concurrency,
            threads: experiment.prover_threads(),
        },
        provenance: study.provenance.clone(),
        stop: study.stop,
    }
    .run(cells, &mut ledger)?;
    match ledger.failure {
        Some(error) => Err(error.into()),
        None => Ok(runs.iter().all(|run| run.complete)),
    }
}

/// Books the cells that are done.
struct Ledger<'a> {
    ended: &'a mut dyn FnMut(usize, &CellRun) -> Result<()>,
    failure: Option<Error>,
}

impl Observer for Ledger<'_> {
    fn ended(&mut self, cell: usize, run: &CellRun) {
        if run.complete
            && let Err(error) = (self.ended)(cell, run)
        {
            self.failure.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::preset;

    #[test]
    fn cells_of_one_model_are_searched_together() {
        let experiment = preset("demo").unwrap();
        let plan = Plan::new(&experiment, "source").unwrap();
        let steps: Vec<&Planned> = plan.steps.iter().collect();
        let first = steps.iter().position(|p| matches!(p.step, Step::Cell(_))).unwrap();
        let (mut groups, mut at) = (Vec::new(), first);
        while together(false, &steps[at..]) > 0 {
            groups.push(together(false, &steps[at..]));
            at += groups.last().unwrap();
        }
        // Cross-entropy is searched under every strategy; every cell is in one group.
        assert_eq!(groups[0], experiment.evaluation.strategies.len());
        assert_eq!(groups.iter().sum::<usize>(), plan.cells().count());
        assert_eq!(together(false, &steps), 0, "data comes first, and is no cell");
        let one = together(true, &steps[first..]);
        assert_eq!(one, 1, "later strategies depend on what earlier ones spent");
    }
}
