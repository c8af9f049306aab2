//! `catamount eval`: one cell, or one for each of several strategies.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use catamount_evaluate::driver::Plan;
use catamount_evaluate::log::{Manifest, Outcome};
use catamount_evaluate::redraw;
use catamount_evaluate::run::{CellRun, Watched, run_cell};
use catamount_search::StrategyKind;

use crate::environment::Prover;
use crate::{command, environment, policy, pool, progress, search, stop};

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
    #[arg(long, default_value_t = 128)]
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

/// The strategies and their logs.
fn cells(strategies: &[StrategyKind], out: &Path) -> Result<Vec<(StrategyKind, PathBuf)>> {
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
    let mut cells_with_deployments = Vec::new();
    for (strategy, out) in cells(&search.strategy, &arguments.out)? {
        cells_with_deployments.push((search.deployment(strategy)?, out));
    }
    let mut theorems = arguments.pool.open()?;
    theorems.jobs.iter_mut().for_each(|job| job.tree = arguments.trees);
    let environment = arguments.environment.open()?;
    let mut policy = arguments.policy.open(&cells_with_deployments[0].0, arguments.concurrency)?;
    let threads = arguments.threads.unwrap_or_else(|| match arguments.environment.env {
        Prover::Metamath => rayon::current_num_threads(),
        Prover::Lean => arguments.concurrency.min(theorems.jobs.len()),
    });
    let stop = stop::on_interrupt();
    for (deployment, out) in cells_with_deployments {
        let plan = Plan {
            deployment,
            seed: search.seed,
            time_limit: search.time_limit()?,
            concurrency: arguments.concurrency,
            threads,
        };
        let kind = arguments.policy.policy.split(':').next().unwrap_or_default();
        let manifest = Manifest {
            format: 1,
            objective: arguments.objective.clone().unwrap_or_else(|| kind.to_string()),
            strategy: plan.deployment.strategy().to_string(),
            settings: serde_json::to_value(&plan.deployment)?,
            budget: plan.deployment.budget(),
            seed: plan.seed,
            policy: redraw::describe(policy.as_ref(), &plan.deployment),
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
