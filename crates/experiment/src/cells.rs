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
use crate::plan::Plan;
use crate::planned::Planned;
use crate::step::{Cell, Step, Trained, WARM_UP, part};
use crate::study::Study;
use crate::time;

/// The model that a step samples, if it searches.
pub(crate) fn sampled(step: &Step) -> Option<Trained> {
    match step {
        Step::Cell(cell) => Some(cell.trained.clone()),
        Step::Trial(_) => Some(Trained::warm_up()),
        _ => None,
    }
}

/// The batch that a step's samples are drawn in, if it searches: steps that sample one model in one
/// way share it.
pub(crate) fn batch(step: &Step) -> Option<String> {
    let deployment = match step {
        Step::Cell(cell) => &cell.deployment,
        Step::Trial(trial) => &trial.deployment,
        _ => return None,
    };
    let (model, d) = (sampled(step)?, deployment);
    let again = if d.distinct() { "distinct" } else { "with replacement" };
    let (temperature, top_p, longest) = (d.temperature(), d.top_p(), d.max_tokens());
    Some(format!("{} at {temperature}, top {top_p}, {longest} tokens, {again}", model.slug()))
}

/// Which of these steps are searched together with the first, by their places: those of its batch.
/// Cells only as far as they follow one another, since branches may have to be trained in between;
/// trials wherever they stand, since they need the warm-up alone.
pub(crate) fn together(limited: bool, steps: &[&Planned]) -> Vec<usize> {
    let of =
        |planned: &Planned| Some((batch(&planned.step)?, matches!(planned.step, Step::Trial(_))));
    let Some(first) = steps.first().and_then(|planned| of(planned)) else { return vec![] };
    let alike = |&(_, planned): &(usize, &&Planned)| of(planned).as_ref() == Some(&first);
    let places = steps.iter().enumerate();
    if first.1 {
        return places.filter(alike).map(|(place, _)| place).collect();
    }
    // A cap over several strategies needs to know what the strategies before have spent.
    let most = if limited { 1 } else { usize::MAX };
    places.take(most).take_while(alike).map(|(place, _)| place).collect()
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
    let what = if name == "valid" { "validation theorem" } else { "held-out theorem" };
    let empty = Error::Empty { what, steps, path: study.path(file) };
    Ok(theorems.ok_or(empty)?)
}

/// What a step searches, if it does.
pub(crate) fn task<B: Backend>(
    study: &Study<'_, B>,
    plan: &Plan,
    step: &Step,
) -> Work<Option<CellTask>> {
    match step {
        Step::Cell(cell) => searches(study, plan, cell).map(Some),
        Step::Trial(trial) => Ok(Some(CellTask {
            objective: WARM_UP.to_string(),
            deployment: trial.deployment.clone(),
            log: study.path(trial.log()),
            theorems: theorems(study, "valid", Some(study.experiment.evaluation.trials))?,
        })),
        _ => Ok(None),
    }
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
    pub(crate) fn load(
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
        workload: Workload { concurrency: evaluation.concurrency, threads: study.threads },
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
    use crate::experiment::Experiment;
    use crate::presets::preset;

    #[test]
    fn cells_of_one_model_are_searched_together() {
        let experiment = preset("demo").unwrap();
        let plan = Plan::new(&experiment, &crate::Inputs::named("source")).unwrap();
        let steps: Vec<&Planned> = plan.steps.iter().collect();
        let first = steps.iter().position(|p| matches!(p.step, Step::Cell(_))).unwrap();
        let (mut groups, mut at) = (Vec::new(), first);
        while !together(false, &steps[at..]).is_empty() {
            groups.push(together(false, &steps[at..]).len());
            at += groups.last().unwrap();
        }
        // Cross-entropy is searched under every strategy; every cell is in one group.
        assert_eq!(groups[0], experiment.evaluation.strategies.len());
        assert_eq!(groups.iter().sum::<usize>(), plan.cells().count());
        assert!(together(false, &steps).is_empty(), "data comes first, and is no cell");
        let one = together(true, &steps[first..]);
        assert_eq!(one, [0], "later strategies depend on what earlier ones spent");
    }

    #[test]
    fn trials_that_sample_alike_are_searched_together() {
        let text = r#"
name = "n"
data = { environment = "metamath", database = "x.mm" }
model = { base = "b" }
objectives = [
    { objective = "ce" },
    { objective = "matched", prior = "fitted" },
    { objective = "matched", prior = "fitted", deployed = { distinct = true } },
]
evaluation = { strategies = ["pass", "bfs", "mcts"], budgets = [64] }
"#;
        let experiment = Experiment::parse(text, "x.toml").unwrap();
        let plan = Plan::new(&experiment, &crate::Inputs::named("source")).unwrap();
        let steps: Vec<&Planned> = plan.steps.iter().collect();
        let first = steps.iter().position(|p| matches!(p.step, Step::Trial(_))).unwrap();
        let group = together(false, &steps[first..]);
        let names: Vec<&str> = group.iter().map(|&i| steps[first + i].name.as_str()).collect();
        assert_eq!(names, ["trial pass n64 t0.8", "trial bfs n64 t0.8", "trial mcts n64 t0.8"]);
    }
}
