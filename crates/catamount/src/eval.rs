//! `catamount eval`: one cell.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use catamount_evaluate::cell::Cell;
use catamount_evaluate::driver::{Plan, search_all};
use catamount_evaluate::log::{Manifest, Outcome};
use catamount_search::SearchSettings;

use crate::{command, environment, policy, pool, progress, stop, weights};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    environment: environment::Arguments,
    #[command(flatten)]
    pool: pool::Arguments,
    #[command(flatten)]
    policy: policy::Arguments,
    #[command(flatten)]
    search: SearchArguments,
    /// Name of the objective the policy was trained with, for tables; the policy's kind if not given.
    #[arg(long)]
    objective: Option<String>,
    /// Keep whole search trees in NAME.trees.jsonl.
    #[arg(long)]
    trees: bool,
    /// Searches in flight.
    #[arg(long, default_value_t = 256)]
    concurrency: usize,
    /// Threads that talk to the prover; all cores if not given.
    #[arg(long)]
    threads: Option<usize>,
    /// The cell's log, such as cells/bfs.jsonl; resumed if it is there.
    #[arg(long)]
    out: PathBuf,
}

#[derive(clap::Args)]
pub struct SearchArguments {
    /// pass, bfs, dfs, rdfs, vdfs or mcts.
    #[arg(long)]
    pub strategy: String,
    /// Expansions per theorem: sampled tactics, each with its check.
    #[arg(long, allow_negative_numbers = true, value_parser = weights::parse_budget)]
    pub budget: u64,
    /// Seed of every random stream.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Longest proof that may be built.
    #[arg(long, default_value_t = SearchSettings::default().max_depth)]
    pub max_depth: u32,
    /// Wall-clock cap per theorem, in seconds.
    #[arg(long)]
    pub time_limit: Option<f64>,
    /// Further settings of the strategies as KEY=VALUE: pass_batch, bfs_beam, bfs_samples, bfs_alpha, bfs_restart_after, bfs_restart_when_empty, mcts_exploration.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl SearchArguments {
    pub fn settings(&self) -> Result<SearchSettings> {
        let mut settings = serde_json::to_value(SearchSettings::default())?;
        for pair in &self.set {
            let (key, value) = pair.split_once('=').with_context(|| format!("--set {pair} is not of the form KEY=VALUE"))?;
            settings[key] = serde_json::from_str(value).with_context(|| format!("--set {pair}: not a value"))?;
        }
        settings["max_depth"] = self.max_depth.into();
        serde_json::from_value(settings).context("--set")
    }

    pub fn time_limit(&self) -> Result<Option<Duration>> {
        let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).context("--time-limit is a number of seconds");
        self.time_limit.map(duration).transpose()
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let search = &arguments.search;
    let settings = search.settings()?;
    settings.search(&search.strategy, search.budget)?;
    let (jobs, pool) = arguments.pool.open()?;
    let environment = arguments.environment.open()?;
    let mut policy = arguments.policy.open()?;
    let plan = Plan {
        strategy: search.strategy.clone(),
        settings,
        budget: search.budget,
        seed: search.seed,
        time_limit: search.time_limit()?,
        concurrency: arguments.concurrency,
        threads: arguments.threads.unwrap_or_else(rayon::current_num_threads),
        trees: arguments.trees,
    };
    let kind = arguments.policy.policy.split(':').next().unwrap_or_default();
    let manifest = Manifest {
        format: 1,
        objective: arguments.objective.clone().unwrap_or_else(|| kind.to_string()),
        strategy: plan.strategy.clone(),
        settings: serde_json::to_value(&plan.settings)?,
        budget: plan.budget,
        seed: plan.seed,
        policy: policy.describe(),
        environment: environment.describe(),
        pool,
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: command::commit(),
        command: command::line(),
    };
    let mut cell = Cell::open(&arguments.out, &manifest, arguments.trees)?;
    let order: Vec<String> = jobs.iter().map(|job| job.theorem.name.clone()).collect();
    let completed = cell.completed();
    let left: Vec<_> = jobs.into_iter().filter(|job| !completed.contains(job.theorem.name.as_str())).collect();
    if left.len() < order.len() {
        eprintln!("resuming: {} of {} theorems are done", order.len() - left.len(), order.len());
    }

    let bar = progress::bar(order.len() as u64, "theorems");
    bar.set_position((order.len() - left.len()) as u64);
    bar.reset_eta();
    let mut proved = proved(&cell);
    let mut failure = None;
    let stop = stop::on_interrupt();
    let mut done = |finished: catamount_evaluate::driver::Finished| {
        proved += usize::from(finished.record.outcome == Outcome::Proved);
        if let Err(error) = cell.append(finished) {
            failure.get_or_insert(error);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        bar.inc(1);
        bar.set_message(format!("{proved} proved"));
    };
    let spent = search_all(&environment, policy.as_mut(), left, &plan, stop, &mut done)?;
    bar.finish_and_clear();
    if let Some(error) = failure {
        return Err(error).context("the results so far are in the log; make room and run the same command again");
    }
    if stop::requested() {
        eprintln!("interrupted; run the same command again to go on");
        return Ok(());
    }
    summarise(&cell, &order, &manifest, &spent);
    cell.settle(&order)?;
    Ok(())
}

fn proved(cell: &Cell) -> usize {
    cell.records().values().filter(|record| record.outcome == Outcome::Proved).count()
}

fn summarise(cell: &Cell, order: &[String], manifest: &Manifest, spent: &catamount_evaluate::driver::Spent) {
    let count = |outcome| cell.records().values().filter(|record| record.outcome == outcome).count();
    let proved = count(Outcome::Proved);
    println!(
        "{} under {} at N = {}: {proved} of {} proved ({:.1} %); {} out of budget, {} exhausted, {} out of time, {} errors",
        manifest.objective,
        manifest.strategy,
        manifest.budget,
        order.len(),
        100.0 * proved as f64 / order.len() as f64,
        count(Outcome::Budget),
        count(Outcome::Exhausted),
        count(Outcome::Time),
        count(Outcome::Error),
    );
    if let Some(record) = cell.records().values().find(|record| record.outcome == Outcome::Error) {
        let reason = record.reason.as_deref().unwrap_or("no reason");
        eprintln!("first error, at {}: {reason}; run the same command again to retry the errors", record.theorem);
    }
    if spent.total > 0.0 {
        let share = |seconds: f64| 100.0 * seconds / spent.total;
        eprintln!(
            "{:.1} s: policy {:.0} %, waiting for the prover {:.0} %",
            spent.total,
            share(spent.policy),
            share(spent.waiting)
        );
    }
}
