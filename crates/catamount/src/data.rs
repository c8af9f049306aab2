//! `catamount data`: where traces come from and what they look like.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use catamount_base::{Progress, counted};
use catamount_data::{Making, Source, Summary, Tracing, load, trace_lean};
use catamount_traces::{Format, Loaded, Split, Statistics, Steps, Trace, jsonl};
use serde_json::json;

use crate::arguments::range;
use crate::{environment, found};

#[derive(clap::Subcommand)]
pub enum Command {
    /// Extract every proof of a Metamath database as a linear trace, and split.
    Metamath(MetamathArguments),
    /// Split a file of traces (own format, LeanDojo JSON, Parquet) into train, valid and test.
    Split(SplitArguments),
    /// Trace a Lean library: every theorem proved by tactics, as a linear sequence that replays.
    TraceLean(TraceLeanArguments),
    /// Make traces of the proofs that searches found, to train on what a search finds.
    Found(found::Arguments),
    /// Convert traces from one format to another, chosen by extension: .jsonl, .json (LeanDojo),
    /// .parquet.
    Convert {
        /// Traces, compressed or not; several files by a pattern, such as 'train-*.parquet'.
        input: PathBuf,
        /// The file to write; `.gz` after `.jsonl` or `.json` compresses it.
        output: PathBuf,
        /// Print what was written as JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Check a file of traces line by line.
    Validate(FileArguments),
    /// Counts and length histograms of a file of traces.
    Stats(FileArguments),
}

#[derive(clap::Args)]
pub struct FileArguments {
    /// Print JSON, for programs.
    #[arg(long)]
    json: bool,
    /// Traces in any known format.
    file: PathBuf,
}

#[derive(clap::Args)]
pub struct SplitOptions {
    /// Shares of train, valid and test: fractions (0.9,0.05,0.05) or counts (rest,500,500).
    #[arg(long, default_value = "0.9,0.05,0.05")]
    pub split: Split,
    /// Seed of the split.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Folder for train.jsonl, valid.jsonl, test.jsonl and manifest.json.
    #[arg(long)]
    pub out: PathBuf,
    /// Print what was done as JSON, for programs.
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
pub struct MetamathArguments {
    /// A file, or the name of one in Debian's metamath-databases.
    #[arg(long, default_value = "set.mm")]
    database: PathBuf,
    /// Write only traces of this many steps. (All are extracted and counted. `1-` writes all: 4.6
    /// GB for set.mm, whose longest proofs repeat themselves when made linear.)
    #[arg(long, default_value = "1-20")]
    steps: Steps,
    /// Use only the first FIRST theorems of the database.
    #[arg(long, value_parser = range(1, usize::MAX))]
    first: Option<usize>,
    #[command(flatten)]
    split: SplitOptions,
}

#[derive(clap::Args)]
pub struct SplitArguments {
    /// Traces to split.
    file: PathBuf,
    /// Take the file as it is, without comparing it with the manifest beside it.
    #[arg(long)]
    no_verify: bool,
    #[command(flatten)]
    split: SplitOptions,
}

#[derive(clap::Args)]
pub struct TraceLeanArguments {
    /// A Lean file, a folder of them, or `bundled` for the library that comes with the program.
    path: PathBuf,
    #[command(flatten)]
    lean: environment::LeanArguments,
    /// The file of traces to write.
    #[arg(long)]
    out: PathBuf,
    /// Print what was traced as JSON, for programs.
    #[arg(long)]
    json: bool,
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Metamath(arguments) => {
            let source =
                Source::Metamath { database: arguments.database.clone(), first: arguments.first };
            make(source, arguments.steps, &arguments.split)
        }
        Command::Split(arguments) => {
            let source = Source::Traces(arguments.file.clone());
            if !arguments.no_verify {
                source.verify()?;
            }
            make(source, Steps::ALL, &arguments.split)
        }
        Command::TraceLean(arguments) => trace(arguments),
        Command::Found(arguments) => found::run(arguments),
        Command::Convert { input, output, json } => convert(input, output, *json),
        Command::Validate(arguments) => validate(arguments),
        Command::Stats(arguments) => {
            let statistics = Statistics::of(&said(load(&arguments.file)?).traces);
            match arguments.json {
                true => println!("{}", serde_json::to_string(&statistics)?),
                false => println!("{statistics}"),
            }
            Ok(())
        }
    }
}

fn make(source: Source, steps: Steps, options: &SplitOptions) -> Result<()> {
    let making = Making { source, origin: None, steps, split: options.split, seed: options.seed };
    let bar = Progress::new(0, "theorems");
    let summary: Summary = making.write(&options.out, &mut |done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish();
    match options.json {
        true => println!("{}", described(&summary)),
        false => println!("{summary}"),
    }
    Ok(())
}

/// What was made, for programs.
fn described(summary: &Summary) -> serde_json::Value {
    let [train, valid, test] = summary.counts;
    let mut described = json!({
        "folder": &summary.folder,
        "train": train,
        "valid": valid,
        "test": test,
        "skipped": summary.skipped.len(),
    });
    if let Some(extracting) = &summary.extracting {
        let extracted = &extracting.extracted;
        described["theorems"] = extracted.theorems.into();
        described["traces"] = extracted.traces.into();
        described["steps"] = extracted.steps.into();
        described["trivial"] = extracted.trivial.into();
        described["without_trace"] = extracted.remainder.len().into();
        described["refused"] = extracted.refused.len().into();
        described["of_other_lengths"] = extracting.filtered.into();
    }
    described
}

/// Traces as they were loaded, after saying which theorems have none.
fn said(loaded: Loaded) -> Loaded {
    if let Some(first) = loaded.skipped.first() {
        note!(
            "left out {} without a usable trace; the first is {}: {}",
            counted(loaded.skipped.len(), "theorem"),
            first.name,
            first.reason
        );
    }
    loaded
}

fn trace(arguments: &TraceLeanArguments) -> Result<()> {
    let mut options = arguments.lean.options()?;
    let mut path = arguments.path.clone();
    if path == Path::new("bundled") && !path.exists() {
        path = arguments.out.with_extension("library");
        catamount_lean::write_bundled_library(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        options.root = Some(path.clone());
    }
    let bar = Progress::new(0, "files").named("tracing");
    let (traces, tracing) = trace_lean(&options, &path, &mut |done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish();
    traced(&tracing, &traces, &arguments.out, arguments.json.then_some(&[]))
}

/// Writes what was traced, and says so: for programs with these fields besides its counts, or for
/// people.
pub fn traced(
    tracing: &Tracing,
    traces: &[Trace],
    out: &Path,
    json: Option<&[(&str, &str)]>,
) -> Result<()> {
    eprint!("{tracing}");
    jsonl::write(out, traces)?;
    match json {
        Some(fields) => {
            let mut row = tracing.described(traces);
            row["file"] = json!(out);
            for (field, value) in fields {
                row[*field] = json!(value);
            }
            println!("{row}");
        }
        None => println!("{} written to {}", counted(traces.len(), "trace"), out.display()),
    }
    Ok(())
}

fn steps(traces: &[Trace]) -> usize {
    traces.iter().map(|trace| trace.steps.len()).sum()
}

fn convert(input: &Path, output: &Path, json: bool) -> Result<()> {
    let loaded = said(load(input)?);
    let (traces, skipped) = (loaded.traces, loaded.skipped.len());
    let format = catamount_traces::write_any(output, &traces)?;
    match json {
        true => println!(
            "{}",
            json!({ "file": output, "format": format, "traces": traces.len(),
                "steps": steps(&traces), "skipped": skipped })
        ),
        false => {
            println!(
                "{} written to {} as {format}",
                counted(traces.len(), "trace"),
                output.display()
            )
        }
    }
    let annotated = traces.iter().any(|trace| trace.steps.iter().any(|s| s.annotated.is_some()));
    if format == Format::Parquet && annotated {
        eprintln!("premises were dropped: our Parquet format has no column for them");
    }
    Ok(())
}

fn validate(arguments: &FileArguments) -> Result<()> {
    let file = &arguments.file;
    let report = catamount_traces::validate(file)?;
    match arguments.json {
        true => println!("{}", serde_json::to_string(&report)?),
        false => println!("{report}"),
    }
    if !report.is_valid() {
        bail!("{} is not a valid file of traces", file.display());
    }
    Ok(())
}
