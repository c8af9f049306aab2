//! `catamount prove`: one theorem, live.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use catamount_base::Activity;
use catamount_evaluate::driver::{CellEvent, Finished, Job, Plan, Searches, Workload};
use catamount_evaluate::log::{Outcome, TreeRecord, TreeVerdict};
use catamount_search::Environment;

use crate::{environment, policy, search, stop};

#[derive(clap::Args)]
pub struct Arguments {
    /// The theorem: a label of the Metamath database, or a Lean statement such as "theorem t (a b :
    /// Nat) : a + b = b + a".
    theorem: String,
    /// Lean commands before the theorem.
    #[arg(long)]
    header: Option<String>,
    #[command(flatten)]
    environment: environment::Arguments,
    #[command(flatten)]
    policy: policy::Arguments,
    #[command(flatten)]
    search: search::Arguments,
    /// Print the search tree.
    #[arg(long, conflicts_with = "json")]
    tree: bool,
    /// Print the record of the search as JSON, as in a cell's log, for programs.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let search = &arguments.search;
    let deployment = search.single()?;
    let environment: Arc<dyn Environment> = arguments.environment.open()?;
    let theorem = arguments.environment.theorem(&arguments.theorem, arguments.header.as_deref());
    // A theorem that does not open is the user's mistake here, not a fault to be logged.
    let root =
        environment.open(&theorem).map_err(|fault| anyhow::anyhow!("{fault}"))?.root().to_string();
    if !arguments.json {
        println!("{root}\n");
    }
    let mut policy = arguments.policy.open(&deployment, 1)?;
    detail!("prover: {}", environment.describe());
    detail!("policy: {}", policy.describe());
    let strategy = deployment.strategy();
    let plan = Plan { deployment, seed: search.seed, time_limit: search.time_limit()? };
    let searching = Activity::begin(format!("searching with {strategy}"));
    let started = Instant::now();
    let mut result: Option<Finished> = None;
    let job = Job { theorem, demonstrated: None, time_left: None, tree: true };
    catamount_evaluate::driver::search(
        &environment,
        policy.as_mut(),
        vec![Searches { plan, jobs: vec![job] }],
        Workload { concurrency: 1, threads: 1 },
        stop::on_interrupt(),
        &mut |event| {
            if let CellEvent::Finished(_, finished) = event {
                result = Some(*finished);
            }
        },
    );
    searching.finish();
    let Some(finished) = result else {
        bail!("interrupted before an outcome");
    };
    if arguments.json {
        println!("{}", serde_json::to_string(&finished.record)?);
        return match &finished.record.reason {
            Some(reason) if finished.record.outcome == Outcome::Error => bail!("{reason}"),
            _ => Ok(()),
        };
    }
    if arguments.tree
        && let Some(tree) = &finished.tree
    {
        print_tree(tree);
        println!();
    }
    let record = &finished.record;
    match record.outcome {
        Outcome::Proved => {
            println!(
                "proved, and checked independently, at expansion {} of {}:",
                record.expansions, search.budget
            );
            for tactic in &record.tactics {
                println!("  {tactic}");
            }
            if !record.note.is_empty() {
                println!("{}", record.note);
            }
            if !record.relative_to.is_empty() {
                println!("relative to {}", record.relative_to.join(", "));
            }
        }
        Outcome::Error => bail!("{}", record.reason.as_deref().unwrap_or("the prover failed")),
        Outcome::Budget => println!("not proved within {} expansions", record.expansions),
        Outcome::Exhausted => {
            println!("not proved: nothing left to expand after {} expansions", record.expansions)
        }
        Outcome::Time => {
            println!("not proved within the time limit ({} expansions)", record.expansions)
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} valid, {} rejected, {} repeated tactics; expansions at {}",
        record.valid,
        record.rejected,
        record.duplicates,
        catamount_base::rate(record.expansions as f64 / seconds.max(1e-9))
    );
    Ok(())
}

/// The tree, indented, each expansion with its number, probability and verdict.
fn print_tree(tree: &TreeRecord) {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.expansions.len() + 1];
    for (index, expansion) in tree.expansions.iter().enumerate() {
        children[expansion.parent as usize].push(index);
    }
    let mut stack: Vec<(usize, usize)> =
        children[0].iter().rev().map(|&index| (index, 1)).collect();
    while let Some((index, depth)) = stack.pop() {
        let expansion = &tree.expansions[index];
        let mark = match expansion.verdict {
            TreeVerdict::Proved => "✓",
            TreeVerdict::Open => "·",
            TreeVerdict::Rejected => "×",
        };
        println!(
            "{:indent$}{mark} {}  [{}] p={:.3}",
            "",
            expansion.tactic,
            index + 1,
            expansion.log_p.exp(),
            indent = 2 * depth
        );
        stack.extend(children[index + 1].iter().rev().map(|&child| (child, depth + 1)));
    }
}
