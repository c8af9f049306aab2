//! `catamount lean`: what is done to a Lean library as a whole.

use std::path::PathBuf;

use anyhow::{Result, bail};
use catamount_base::Progress;
use catamount_data::trace_corpus;
use catamount_lean::{BuildReport, Options, Recipe};
use serde_json::json;

use crate::data;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Compile a library's modules once, in the order of their imports, and keep them in the cache:
    /// theorems are then opened, searched and checked without elaborating what they import.
    Build(BuildArguments),
    /// Trace a corpus by its recipe: somebody else's library, at one commit of it.
    Trace(TraceArguments),
}

#[derive(clap::Args)]
pub struct BuildArguments {
    /// Folders that module names are relative to: the library, and what it depends on besides core
    /// Lean.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Only these modules, whatever is below them, and all that they import.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Modules (and submodules) never to import, even if another module asks for them.
    #[arg(long, value_delimiter = ',')]
    leave_out: Vec<String>,
    /// Modules compiled at a time; each takes a process of about 1 GiB.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Print what was compiled as JSON, for programs.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct TraceArguments {
    /// The recipe: batteries, cedar, extra4, mathlib, or a file of your own.
    recipe: String,
    /// A folder with a checkout of the corpus, and of each that it depends on, under their names.
    #[arg(long)]
    checkouts: PathBuf,
    /// The file of traces to write.
    #[arg(long)]
    out: PathBuf,
    /// Files traced at a time; each takes a process of about 1 GiB.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Print what was traced as JSON, for programs.
    #[arg(long)]
    json: bool,
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Build(arguments) => build(arguments),
        Command::Trace(arguments) => trace(arguments),
    }
}

fn trace(arguments: &TraceArguments) -> Result<()> {
    let corpus = Recipe::open(&arguments.recipe)?.find(&arguments.checkouts)?;
    let options = Options { workers: arguments.workers, ..Options::default() };
    let bar = Progress::new(0, "files").named(&format!("tracing {}", corpus.recipe.name));
    let (traces, tracing) = trace_corpus(&options, &corpus, &mut |done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish();
    data::traced(&tracing, &traces, &arguments.out, arguments.json)
}

fn build(arguments: &BuildArguments) -> Result<()> {
    let options = Options {
        workers: arguments.workers,
        left_out: arguments.leave_out.clone(),
        ..Options::default()
    };
    let bar = Progress::new(0, "KB of source").named("compiling");
    let report = catamount_lean::build(&options, &arguments.paths, &arguments.only, |at| {
        bar.set_length(at.to_compile_bytes.div_ceil(1000));
        bar.set_message(format!(
            "{}/{} modules, {} commands failed; {}",
            at.done, at.total, at.problems, at.module
        ));
        bar.set_position(at.compiled_bytes / 1000);
    })?;
    bar.finish();
    match arguments.json {
        true => println!("{}", described(&report)),
        false => say(&report),
    }
    match report.failed.len() {
        0 => Ok(()),
        failed => bail!(
            "{failed} modules did not compile; the others are kept, and the same command goes on \
             from here"
        ),
    }
}

/// What was compiled, for programs.
fn described(report: &BuildReport) -> serde_json::Value {
    let problems = report.problems.iter();
    let problems: Vec<_> =
        problems.map(|it| json!({ "file": it.file, "line": it.line, "error": it.error })).collect();
    let failed = report.failed.iter();
    let failed: Vec<_> = failed
        .map(|it| json!({ "module": it.module, "why": it.why, "dependants": it.dependants }))
        .collect();
    json!({
        "modules": report.modules,
        "compiled": report.compiled,
        "theorems": report.theorems,
        "bytes": report.bytes,
        "folder": catamount_lean::modules_folder(),
        "problems": problems,
        "failed": failed,
    })
}

fn say(report: &BuildReport) {
    for problem in &report.problems {
        let error = problem.error.lines().next().unwrap_or_default();
        eprintln!("{}:{}: {error}", problem.file, problem.line);
    }
    for module in &report.failed {
        eprintln!("{} did not compile: {}", module.module, module.why);
        if let Some(first) = module.dependants.first() {
            let more = match module.dependants.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            eprintln!("  {first}{more} import it and were not tried");
        }
    }
    println!(
        "{} modules compiled, {} of them now: {} theorems, {:.1} MB in {}",
        report.modules,
        report.compiled,
        report.theorems,
        report.bytes as f64 / 1e6,
        catamount_lean::modules_folder().display()
    );
    if !report.problems.is_empty() {
        println!(
            "{} commands failed (above); what they declare is missing, or rests on `sorry`, which \
             no check accepts",
            report.problems.len()
        );
    }
}
