//! `catamount data`: where traces come from and what they look like.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use catamount_metamath::Extraction;
use catamount_traces::{
    AtomicFile, Manifest, Split, Statistics, Steps, Theorem, Trace, jsonl, read_any, text_key,
};

use crate::{environment, progress};

#[derive(clap::Subcommand)]
pub enum Command {
    /// Extract every proof of a Metamath database as a linear trace, and split.
    Metamath(MetamathArguments),
    /// Split a file of traces (own format, LeanDojo JSON, Parquet) into train, valid and test.
    Split(SplitArguments),
    /// Trace a Lean library: every theorem proved by tactics, as a linear sequence that replays.
    TraceLean(TraceLeanArguments),
    /// Convert traces from one format to another, chosen by extension: .jsonl, .json (LeanDojo),
    /// .parquet.
    Convert { input: PathBuf, output: PathBuf },
    /// Check a file of traces line by line.
    Validate { file: PathBuf },
    /// Counts and length histograms of a file of traces.
    Stats { file: PathBuf },
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
}

#[derive(clap::Args)]
pub struct MetamathArguments {
    /// A file, or the name of one in Debian's metamath-databases.
    #[arg(long, default_value = "set.mm")]
    database: PathBuf,
    /// Write only traces of so many steps. (All are extracted and counted. `1-` writes all: 4.6 GB
    /// for set.mm, whose longest proofs repeat themselves when made linear.)
    #[arg(long, default_value = "1-20")]
    steps: Steps,
    /// Only the first so many theorems of the database.
    #[arg(long)]
    first: Option<usize>,
    #[command(flatten)]
    split: SplitOptions,
}

#[derive(clap::Args)]
pub struct SplitArguments {
    /// Traces to split.
    file: PathBuf,
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
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Metamath(arguments) => metamath(arguments),
        Command::Split(arguments) => split(arguments),
        Command::TraceLean(arguments) => trace_lean(arguments),
        Command::Convert { input, output } => convert(input, output),
        Command::Validate { file } => validate(file),
        Command::Stats { file } => {
            println!("{}", Statistics::of(&load(file)?));
            Ok(())
        }
    }
}

pub fn load(path: &Path) -> Result<Vec<Trace>> {
    let loaded = read_any(path)?;
    if let Some(first) = loaded.skipped.first() {
        eprintln!(
            "{} theorems without a usable trace were left out; the first is {}: {}",
            loaded.skipped.len(),
            first.name,
            first.reason
        );
    }
    Ok(loaded.traces)
}

fn trace_lean(arguments: &TraceLeanArguments) -> Result<()> {
    let mut options = arguments.lean.options()?;
    let mut path = arguments.path.clone();
    if path == Path::new("bundled") && !path.exists() {
        path = arguments.out.with_extension("library");
        catamount_lean::write_bundled_library(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        options.root = Some(path.clone());
    }
    let traces = traced(&options, &path)?;
    jsonl::write(&arguments.out, &traces)?;
    println!("{} traces written to {}", traces.len(), arguments.out.display());
    Ok(())
}

/// Traces a Lean library and says what was lost and why.
pub fn traced(options: &catamount_lean::Options, path: &Path) -> Result<Vec<Trace>> {
    let bar = progress::bar(0, "files");
    let report = catamount_lean::trace(options, path, |progress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
    })?;
    bar.finish_and_clear();
    eprintln!(
        "{} files, {} theorems, {} proved by tactics: {} traces that replay, {} lost",
        report.files,
        report.theorems,
        report.by_tactics,
        report.traces.len(),
        report.lost.len()
    );
    for (why, count) in report.losses() {
        eprintln!("  lost: {count} x {why}");
    }
    if !report.problems.is_empty() {
        let first = &report.problems[0];
        eprintln!(
            "{} commands did not elaborate; the first is {}:{}: {}",
            report.problems.len(),
            first.file,
            first.line,
            first.error
        );
    }
    Ok(report.traces)
}

fn metamath(arguments: &MetamathArguments) -> Result<()> {
    write_metamath(&arguments.database, arguments.steps, arguments.first, &arguments.split)
}

/// Extracts a database's proofs into a split folder.
pub fn write_metamath(
    database_name: &Path,
    steps: Steps,
    first: Option<usize>,
    options: &SplitOptions,
) -> Result<()> {
    let database = environment::database(database_name)?;
    // Parts are decided from the statements alone, so that traces can be written as they are made.
    let stub = |id| Trace {
        theorem: Theorem { name: database.assertion(id).label().to_string(), ..Theorem::default() },
        steps: Vec::new(),
    };
    let ids: HashMap<String, _> =
        database.theorems().map(|id| (database.assertion(id).label().to_string(), id)).collect();
    let key = |trace: &Trace| database.key(ids[&trace.theorem.name]).to_string();
    let parts = options.split.apply(
        database.theorems().take(first.unwrap_or(usize::MAX)).map(stub).collect(),
        options.seed,
        key,
    )?;
    let mut writers = Writers::create(&options.out, "train", "valid", "test")?;
    let mut part_of: HashMap<String, usize> = HashMap::new();
    for (part, traces) in [parts.train, parts.valid, parts.test].into_iter().enumerate() {
        part_of.extend(traces.into_iter().map(|trace| (trace.theorem.name, part)));
    }

    let bar = progress::bar(ids.len() as u64, "theorems");
    let (mut statistics, mut filtered, mut failure) = (Vec::new(), 0u64, None);
    let extracted = database.extract(&Extraction::default(), |trace, done| {
        bar.set_position(done as u64);
        statistics.push(trace.steps.len());
        let Some(&part) = part_of.get(&trace.theorem.name) else { return };
        if !steps.contains(trace.steps.len()) {
            filtered += 1;
        } else if let Err(error) = writers.write(part, &trace) {
            failure.get_or_insert(error);
        }
    });
    bar.finish_and_clear();
    if let Some(error) = failure {
        return Err(error);
    }

    let mut manifest = Manifest::new(
        environment::database_path(database_name)?.display().to_string(),
        Some(options.seed),
    );
    manifest.settings.insert("split".into(), options.split.to_string().into());
    manifest.settings.insert("steps".into(), steps.to_string().into());
    let counts = writers.finish(&options.out, manifest)?;
    println!(
        "{} theorems: {} traces with {} steps ({}), {} trivial, {} without a trace",
        extracted.theorems,
        extracted.traces,
        extracted.steps,
        histogram(&statistics),
        extracted.trivial,
        extracted.remainder.len(),
    );
    for (label, reason) in extracted.remainder.iter().take(20) {
        println!("  no trace: {label}: {reason}");
    }
    if filtered > 0 {
        println!("{filtered} traces outside --steps {steps} were not written");
    }
    println!(
        "train {}, valid {}, test {} written to {}",
        counts[0],
        counts[1],
        counts[2],
        options.out.display()
    );
    Ok(())
}

/// Trace lengths in the pools that the notes and the paper speak of.
fn histogram(lengths: &[usize]) -> String {
    let count = |low: usize, high: usize| {
        lengths.iter().filter(|&&length| (low..=high).contains(&length)).count()
    };
    format!(
        "1 / 2-5 / 6-10 / more: {} / {} / {} / {}",
        count(1, 1),
        count(2, 5),
        count(6, 10),
        count(11, usize::MAX)
    )
}

fn split(arguments: &SplitArguments) -> Result<()> {
    write_split(load(&arguments.file)?, &arguments.file, &arguments.split)
}

/// Writes traces into a split folder.
pub fn write_split(traces: Vec<Trace>, source: &Path, options: &SplitOptions) -> Result<()> {
    let parts = options.split.apply(traces, options.seed, text_key)?;
    let mut writers = Writers::create(&options.out, "train", "valid", "test")?;
    for (part, traces) in [&parts.train, &parts.valid, &parts.test].into_iter().enumerate() {
        for trace in traces {
            writers.write(part, trace)?;
        }
    }
    let mut manifest = Manifest::new(source.display().to_string(), Some(options.seed));
    manifest.settings.insert("split".into(), options.split.to_string().into());
    let counts = writers.finish(&options.out, manifest)?;
    println!(
        "train {}, valid {}, test {} written to {}",
        counts[0],
        counts[1],
        counts[2],
        options.out.display()
    );
    Ok(())
}

fn convert(input: &Path, output: &Path) -> Result<()> {
    let traces = load(input)?;
    let format = catamount_traces::write_any(output, &traces)?;
    println!("{} traces written to {} as {format}", traces.len(), output.display());
    Ok(())
}

fn validate(file: &Path) -> Result<()> {
    let report = catamount_traces::validate(file)?;
    println!("{report}");
    if !report.is_valid() {
        bail!("{} is not a valid file of traces", file.display());
    }
    Ok(())
}

/// The files of a split, each appearing whole or not at all.
struct Writers {
    names: [&'static str; 3],
    files: Vec<AtomicFile>,
    counts: [usize; 3],
    steps: [usize; 3],
}

impl Writers {
    fn create(
        folder: &Path,
        train: &'static str,
        valid: &'static str,
        test: &'static str,
    ) -> Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let names = [train, valid, test];
        let files = names.map(|name| AtomicFile::create(&folder.join(format!("{name}.jsonl"))));
        Ok(Writers {
            names,
            files: files.into_iter().collect::<Result<_, _>>()?,
            counts: [0; 3],
            steps: [0; 3],
        })
    }

    fn write(&mut self, part: usize, trace: &Trace) -> Result<()> {
        jsonl::write_to(&mut self.files[part], [trace])
            .with_context(|| format!("cannot write {}.jsonl", self.names[part]))?;
        self.counts[part] += 1;
        self.steps[part] += trace.steps.len();
        Ok(())
    }

    fn finish(self, folder: &Path, mut manifest: Manifest) -> Result<[usize; 3]> {
        for (part, file) in self.files.into_iter().enumerate() {
            file.commit()?;
            let name = format!("{}.jsonl", self.names[part]);
            manifest.add(folder, &name, self.counts[part], self.steps[part])?;
        }
        manifest.write(folder)?;
        Ok(self.counts)
    }
}
