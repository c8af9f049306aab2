//! `catamount lean`: what is done to a Lean library as a whole.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use catamount_base::{Appender, Progress};
use catamount_data::trace_corpus;
use catamount_evaluate::Workload;
use catamount_lean::{BuildReport, Options, Recipe, workers_here};
use serde_json::json;

use crate::arguments::range;
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
    /// With names for compiler-made helpers: for libraries that bring tactics of their own.
    #[arg(long)]
    helpers: bool,
    /// Modules compiled at a time; each takes a process of about 1 GiB. As many as processors and
    /// memory allow if left out.
    #[arg(long, value_parser = range(1, Workload::MOST_THREADS))]
    workers: Option<usize>,
    /// Print what was compiled as JSON, for programs.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct TraceArguments {
    /// The recipe: aesop, batteries, cedar, extra4, mathlib, quote4, or a file of your own.
    recipe: String,
    /// A folder with a checkout of the corpus, and of each that it depends on, under their names.
    #[arg(long)]
    checkouts: PathBuf,
    /// The file of traces to write. Until it is whole, the traces so far are beside it, in a file
    /// that ends in `.partial`.
    #[arg(long)]
    out: PathBuf,
    /// Files traced at a time; each takes a process of about 1 GiB. As many as processors and
    /// memory allow if left out.
    #[arg(long, value_parser = range(1, Workload::MOST_THREADS))]
    workers: Option<usize>,
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
    let workers = arguments.workers.unwrap_or_else(workers_here);
    let options = Options { workers, ..Options::default() };
    let name = &corpus.recipe.name;
    let bar = Progress::new(0, "KB of source").named(&format!("tracing {name}"));
    let partial = beside(&arguments.out);
    // What an interrupted run left is in the cache, and comes again.
    let _ = std::fs::remove_file(&partial);
    let mut so_far =
        Appender::open(&partial).with_context(|| format!("cannot write {}", partial.display()))?;
    let (mut count, mut unwritten) = (0, None);
    let (traces, tracing) = trace_corpus(&options, &corpus, |at| {
        for trace in at.traces {
            unwritten = so_far.append(trace).err().or(unwritten.take());
        }
        count += at.traces.len();
        bar.set_length(at.work.total.div_ceil(1000));
        let (done, total, file) = (at.done, at.total, at.file);
        bar.set_message(format!("{done}/{total} files, {count} traces; {file}"));
        bar.set_position(at.work.done / 1000);
    })?;
    bar.finish();
    if let Some(error) = unwritten {
        bail!("cannot write {}: {error}", partial.display());
    }
    let labels = [("corpus", name.as_str()), ("commit", corpus.recipe.commit.as_str())];
    data::traced(&tracing, &traces, &arguments.out, arguments.json.then_some(&labels[..]))?;
    std::fs::remove_file(&partial).with_context(|| format!("cannot remove {}", partial.display()))
}

/// Where traces are until all are there.
fn beside(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

fn build(arguments: &BuildArguments) -> Result<()> {
    let options = Options {
        workers: arguments.workers.unwrap_or_else(workers_here),
        left_out: arguments.leave_out.clone(),
        helpers: arguments.helpers,
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
