//! `catamount eval`: one cell, or one for each of several strategies.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use catamount_evaluate::log::Outcome;
use catamount_evaluate::{
    CellError, CellRun, CellTask, Evaluation, Observer, Remembered, Workload,
};
use catamount_search::{Environment, StrategyKind};
use catamount_service::{Addresses, Remote};

use crate::arguments::range;
use crate::environment::Prover;
use crate::{command, environment, policy, pool, search, stop};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    environment: environment::Arguments,
    #[command(flatten)]
    pool: pool::Arguments,
    #[command(flatten)]
    policy: policy::Arguments,
    #[command(flatten)]
    search: search::Arguments,
    /// Name of the objective the policy was trained with, for tables; the policy's kind if not
    /// given.
    #[arg(long)]
    objective: Option<String>,
    /// Keep whole search trees in NAME.trees.jsonl.
    #[arg(long)]
    trees: bool,
    /// Searches in flight.
    #[arg(long, default_value_t = Workload::CONCURRENCY)]
    #[arg(value_parser = range(1, Workload::MOST_SEARCHES))]
    concurrency: usize,
    /// Threads that talk to the prover. If not given, as many as cores; with Lean, whose processes
    /// do the work, or with provers elsewhere, one for each search in flight.
    #[arg(long, value_parser = range(1, Workload::MOST_THREADS))]
    threads: Option<usize>,
    /// Provers elsewhere: addresses of `catamount serve`, or a file with one on each line, which is
    /// read again as they come and go. They use their own library; --env and its options are
    /// ignored.
    #[arg(long, value_name = "HOST:PORT,...")]
    provers: Option<Addresses>,
    /// Print what came of each cell as JSON lines, for programs.
    #[arg(long)]
    json: bool,
    /// The cell's log, such as cells/bfs.jsonl, resumed if it is there. With several strategies, a
    /// folder: each gets its own log in it.
    #[arg(long)]
    out: PathBuf,
}

/// The strategies and their logs.
fn cells(strategies: &[StrategyKind], out: &Path) -> Result<Vec<(StrategyKind, PathBuf)>> {
    if let Some(twice) =
        strategies.iter().enumerate().find(|(i, kind)| strategies[..*i].contains(kind))
    {
        bail!("--strategy names {} twice", twice.1);
    }
    if let [one] = strategies[..] {
        return Ok(vec![(one, out.to_path_buf())]);
    }
    if out.extension().is_some_and(|extension| extension == "jsonl") {
        bail!("with several strategies --out is a folder, not {}", out.display());
    }
    Ok(strategies.iter().map(|kind| (*kind, out.join(format!("{kind}.jsonl")))).collect())
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let search = &arguments.search;
    let mut theorems = arguments.pool.open(!arguments.policy.no_verify)?;
    theorems.jobs.iter_mut().for_each(|job| job.tree = arguments.trees);
    let kind = arguments.policy.policy.split(':').next().unwrap_or_default();
    let objective = arguments.objective.clone().unwrap_or_else(|| kind.to_string());
    let mut tasks = Vec::new();
    for (strategy, log) in cells(&search.strategy, &arguments.out)? {
        let deployment = search.deployment(strategy)?;
        let (objective, theorems) = (objective.clone(), theorems.clone());
        tasks.push(CellTask { log, objective, deployment, theorems });
    }
    let time_limit = search.time_limit()?;
    let environment: Arc<dyn Environment> = match &arguments.provers {
        Some(addresses) => {
            let remote = Remote::connect(addresses.clone(), None)?;
            arguments.environment.lean.has_kernel(&remote)?;
            Arc::new(remote)
        }
        None => arguments.environment.open()?,
    };
    let elsewhere = arguments.provers.is_some() || arguments.environment.env == Prover::Lean;
    // Metamath in this process is faster than a memory.
    let environment = match elsewhere {
        true => Arc::new(Remembered::new(environment)),
        false => environment,
    };
    let concurrency = arguments.concurrency;
    let mut policy = arguments.policy.open(&tasks[0].deployment, concurrency)?;
    detail!("prover: {}", environment.describe());
    detail!("policy: {}", policy.describe());
    let threads = arguments.threads.unwrap_or_else(|| match elsewhere {
        true => concurrency.min(theorems.jobs.len()),
        false => rayon::current_num_threads(),
    });
    let runs = Evaluation {
        environment: &environment,
        policy: policy.as_mut(),
        seed: search.seed,
        time_limit,
        theorem_time_limit: None,
        workload: Workload { concurrency, threads },
        provenance: command::provenance(),
        stop: stop::on_interrupt(),
    }
    .run(&tasks, &mut Terminal { tasks: &tasks, json: arguments.json })
    .map_err(|error| match error {
        CellError::Io { .. } => anyhow::Error::new(error)
            .context("the results so far are in the log; the same command continues from there"),
        other => other.into(),
    })?;
    if runs.iter().any(|run| !run.complete) {
        note!("interrupted; run the same command again to go on");
        return Ok(());
    }
    let all_failed = |run: &CellRun| run.count(Outcome::Error) == run.records.len();
    if let Some((_, task)) = runs.iter().zip(&tasks).find(|(run, _)| all_failed(run)) {
        let log = task.log.display();
        bail!("{log}: every theorem ended in an error: nothing was evaluated");
    }
    Ok(())
}

/// Says what came of each cell as it ends.
struct Terminal<'a> {
    tasks: &'a [CellTask],
    json: bool,
}

impl Observer for Terminal<'_> {
    fn opened(&mut self, cell: usize, done: usize) {
        let task = &self.tasks[cell];
        if done > 0 {
            let (log, theorems) = (task.log.display(), task.theorems.jobs.len());
            note!("resuming {log}: {done} of {theorems} theorems are done");
        }
    }

    fn ended(&mut self, cell: usize, run: &CellRun) {
        if run.complete {
            match self.json {
                true => println!("{}", described(run, &self.tasks[cell])),
                false => summarise(run, &self.tasks[cell]),
            }
        }
    }
}

/// What came of a cell, for programs.
fn described(run: &CellRun, task: &CellTask) -> serde_json::Value {
    serde_json::json!({
        "objective": task.objective,
        "strategy": task.deployment.strategy().to_string(),
        "budget": task.deployment.budget(),
        "log": task.log,
        "theorems": run.records.len(),
        "proved": run.count(Outcome::Proved),
        "budget_spent": run.count(Outcome::Budget),
        "exhausted": run.count(Outcome::Exhausted),
        "time": run.count(Outcome::Time),
        "errors": run.count(Outcome::Error),
        "refused": refused(run),
    })
}

/// Claimed proofs that the final check refused.
fn refused(run: &CellRun) -> u64 {
    run.records.iter().map(|record| record.refused).sum()
}

fn summarise(run: &CellRun, task: &CellTask) {
    let (proved, theorems) = (run.count(Outcome::Proved), run.records.len());
    println!(
        "{} under {} at N = {}: {proved} of {theorems} proved ({:.1} %); {} out of budget, {} \
         exhausted, {} out of time, {} errors",
        task.objective,
        task.deployment.strategy(),
        task.deployment.budget(),
        100.0 * proved as f64 / theorems.max(1) as f64,
        run.count(Outcome::Budget),
        run.count(Outcome::Exhausted),
        run.count(Outcome::Time),
        run.count(Outcome::Error),
    );
    match refused(run) {
        0 => {}
        1 => println!("one claimed proof refused by the final check"),
        many => println!("{many} claimed proofs refused by the final check"),
    }
    if let Some(record) = run.records.iter().find(|record| record.outcome == Outcome::Error) {
        let reason = record.reason.as_deref().unwrap_or("no reason");
        eprintln!(
            "first error, at {}: {reason}; run the same command again to retry the errors",
            record.theorem
        );
    }
    note!("{}", run.timing);
}
