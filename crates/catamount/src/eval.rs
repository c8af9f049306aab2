//! `catamount eval`: one cell, or one for each of several strategies.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use catamount_evaluate::driver::Plan;
use catamount_evaluate::log::{Manifest, Outcome};
use catamount_evaluate::run::{CellRun, Watched, run_cell};
use catamount_search::SearchSettings;

use crate::environment::Prover;
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
    /// Name of the objective the policy was trained with, for tables; the policy's kind if not
    /// given.
    #[arg(long)]
    objective: Option<String>,
    /// Keep whole search trees in NAME.trees.jsonl.
    #[arg(long)]
    trees: bool,
    /// Searches in flight.
    #[arg(long, default_value_t = 256)]
    concurrency: usize,
    /// Threads that talk to the prover. If not given, as many as cores; with Lean, whose processes
    /// do the work, one for each search in flight.
    #[arg(long)]
    threads: Option<usize>,
    /// The cell's log, such as cells/bfs.jsonl, resumed if it is there. With several strategies, a
    /// folder: each gets its own log in it.
    #[arg(long)]
    out: PathBuf,
}

#[derive(clap::Args)]
pub struct SearchArguments {
    /// pass, bfs, dfs, rdfs, vdfs or mcts. An evaluation takes several, with commas between them:
    /// one cell after another, without loading model and library again.
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
    /// Further settings of the strategies as KEY=VALUE: pass_batch, bfs_beam, bfs_samples,
    /// bfs_alpha, bfs_restart_after, bfs_restart_when_empty, mcts_exploration.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl SearchArguments {
    pub fn settings(&self) -> Result<SearchSettings> {
        let mut settings = serde_json::to_value(SearchSettings::default())?;
        for pair in &self.set {
            let (key, value) = pair
                .split_once('=')
                .with_context(|| format!("--set {pair} is not of the form KEY=VALUE"))?;
            settings[key] = serde_json::from_str(value)
                .with_context(|| format!("--set {pair}: not a value"))?;
        }
        settings["max_depth"] = self.max_depth.into();
        serde_json::from_value(settings).context("--set")
    }

    pub fn time_limit(&self) -> Result<Option<Duration>> {
        let duration = |seconds: f64| {
            Duration::try_from_secs_f64(seconds).context("--time-limit is a number of seconds")
        };
        self.time_limit.map(duration).transpose()
    }
}

/// A strategy and its log.
fn cells(strategies: &str, out: &Path) -> Result<Vec<(String, PathBuf)>> {
    let names: Vec<&str> = strategies.split(',').map(str::trim).collect();
    if let [one] = names[..] {
        return Ok(vec![(one.to_string(), out.to_path_buf())]);
    }
    if out.extension().is_some_and(|extension| extension == "jsonl") {
        bail!("with several strategies --out is a folder, not {}", out.display());
    }
    Ok(names
        .into_iter()
        .map(|name| (name.to_string(), out.join(format!("{name}.jsonl"))))
        .collect())
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let search = &arguments.search;
    let settings = search.settings()?;
    let cells = cells(&search.strategy, &arguments.out)?;
    for (strategy, _) in &cells {
        settings.search(strategy, search.budget)?;
    }
    let mut theorems = arguments.pool.open()?;
    theorems.jobs.iter_mut().for_each(|job| job.tree = arguments.trees);
    let environment = arguments.environment.open()?;
    let mut policy = arguments.policy.open()?;
    let threads = arguments.threads.unwrap_or_else(|| match arguments.environment.env {
        Prover::Metamath => rayon::current_num_threads(),
        Prover::Lean => arguments.concurrency.min(theorems.jobs.len()),
    });
    let stop = stop::on_interrupt();
    for (strategy, out) in cells {
        let plan = Plan {
            strategy,
            settings: settings.clone(),
            budget: search.budget,
            seed: search.seed,
            time_limit: search.time_limit()?,
            concurrency: arguments.concurrency,
            threads,
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
            pool: theorems.pool.clone(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            commit: command::commit(),
            command: command::line(),
        };
        let bar = progress::bar(theorems.jobs.len() as u64, "theorems");
        let mut proved = 0;
        let mut watch = |watched: Watched<'_>| {
            match watched {
                Watched::Before { done, proved: before } => {
                    if done > 0 {
                        bar.println(format!(
                            "resuming: {done} of {} theorems are done",
                            theorems.jobs.len()
                        ));
                    }
                    bar.set_position(done as u64);
                    bar.reset_eta();
                    proved = before;
                }
                Watched::Finished(finished) => {
                    proved += usize::from(finished.record.outcome == Outcome::Proved);
                    bar.inc(1);
                }
            }
            bar.set_message(format!("{proved} proved"));
        };
        let run = run_cell(
            &out,
            &manifest,
            &environment,
            policy.as_mut(),
            &theorems,
            &plan,
            stop,
            &mut watch,
        )
        .context("the results so far stand in the log; the same command goes on from there")?;
        bar.finish_and_clear();
        if !run.complete {
            eprintln!("interrupted; run the same command again to go on");
            return Ok(());
        }
        summarise(&run, &manifest);
    }
    Ok(())
}

fn summarise(run: &CellRun, manifest: &Manifest) {
    let (proved, theorems) = (run.count(Outcome::Proved), manifest.pool.theorems);
    println!(
        "{} under {} at N = {}: {proved} of {theorems} proved ({:.1} %); {} out of budget, {} \
         exhausted, {} out of time, {} errors",
        manifest.objective,
        manifest.strategy,
        manifest.budget,
        100.0 * proved as f64 / theorems as f64,
        run.count(Outcome::Budget),
        run.count(Outcome::Exhausted),
        run.count(Outcome::Time),
        run.count(Outcome::Error),
    );
    if let Some(record) = run.records.iter().find(|record| record.outcome == Outcome::Error) {
        let reason = record.reason.as_deref().unwrap_or("no reason");
        eprintln!(
            "first error, at {}: {reason}; run the same command again to retry the errors",
            record.theorem
        );
    }
    eprintln!("{}", run.spent);
}
