//! `catamount export`: found proofs, for another program to verify.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use catamount_evaluate::log::Outcome;
use catamount_evaluate::{Log, is_sidecar};
use catamount_traces::Theorem;

use crate::{environment, output};

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// The Metamath database, with each found proof in place of the original.
    Mm,
    /// Lean text that a person can paste; needs --theorems.
    Lean,
    /// Lean's terms, for other people's kernels: a file for each proof, with everything it rests
    /// on, in the format of lean4export 3.1, and beside it nanoda's settings; needs --theorems and
    /// --out.
    Lean4export,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// What to write.
    #[arg(long, value_enum)]
    format: Format,
    #[command(flatten)]
    metamath: environment::MetamathArguments,
    #[command(flatten)]
    lean: environment::LeanArguments,
    /// Lean: the file of theorems that was searched, for their statements.
    #[arg(long)]
    theorems: Option<PathBuf>,
    /// lean4export: the folder to write to.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Cell logs. A theorem proved in several keeps the first proof.
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let mut proofs: Vec<(String, Vec<String>)> = Vec::new();
    let mut axioms: Vec<Vec<String>> = Vec::new();
    let mut names = std::collections::HashSet::new();
    // `cells/*.jsonl` is what one types, and it also matches the files that stand beside a log.
    for path in arguments.logs.iter().filter(|path| !is_sidecar(path)) {
        let log = Log::read(path)?;
        for problem in &log.problems {
            eprintln!("left out: {problem}");
        }
        for record in log.in_order() {
            if record.outcome == Outcome::Proved && names.insert(record.theorem.clone()) {
                proofs.push((record.theorem.clone(), record.tactics.clone()));
                axioms.push(record.axioms.clone());
            }
        }
    }
    if proofs.is_empty() {
        bail!("no log holds a proof; nothing to export");
    }
    match arguments.format {
        Format::Mm => {
            let database = arguments.metamath.open()?;
            let mut out = std::io::BufWriter::new(output::lock());
            database.export(&proofs, &mut out)?;
            out.flush()?;
        }
        Format::Lean => {
            let theorems = Theorems::read(arguments)?;
            let mut out = output::lock();
            for ((name, tactics), axioms) in proofs.iter().zip(&axioms) {
                if !axioms.is_empty() {
                    writeln!(out, "-- Axioms of {name}: {}", axioms.join(", "))?;
                }
                writeln!(out, "{}", catamount_lean::export(theorems.get(name)?, tactics))?;
            }
        }
        Format::Lean4export => terms(arguments, &proofs)?,
    }
    note!("{} proofs exported", proofs.len());
    Ok(())
}

/// The theorems that were searched, by name.
struct Theorems {
    path: PathBuf,
    by_name: HashMap<String, Theorem>,
}

impl Theorems {
    fn read(arguments: &Arguments) -> Result<Theorems> {
        let path = arguments
            .theorems
            .clone()
            .context("this format needs --theorems, the file that was searched")?;
        let theorems = catamount_traces::read_any(&path)?.traces.into_iter().map(|t| t.theorem);
        Ok(Theorems { by_name: theorems.map(|t| (t.name.clone(), t)).collect(), path })
    }

    fn get(&self, name: &str) -> Result<&Theorem> {
        self.by_name
            .get(name)
            .with_context(|| format!("{} has no theorem {name}", self.path.display()))
    }
}

/// Writes each proof as a file that a kernel can judge by itself, with the settings for it beside.
/// One that cannot be written does not keep the others back.
fn terms(arguments: &Arguments, proofs: &[(String, Vec<String>)]) -> Result<()> {
    let theorems = Theorems::read(arguments)?;
    let folder = arguments
        .out
        .as_ref()
        .context("--format lean4export needs --out, the folder to write its files to")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let options = arguments.lean.options()?;
    let lean = catamount_lean::Lean::new(options.clone())?;
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    let certificate = |name: &str, tactics: &[String]| {
        lean.certificate(theorems.get(name)?, tactics)?
            .map_err(|why| anyhow::anyhow!("no proof of it is written: {why}"))
    };
    let mut failed = 0;
    for (name, tactics) in proofs {
        let certificate = match certificate(name, tactics) {
            Ok(certificate) => certificate,
            Err(why) => {
                eprintln!("theorem {name}: {why:#}");
                failed += 1;
                continue;
            }
        };
        let path = folder.join(format!("{}.ndjson", name.replace('/', "_")));
        write(&path, &certificate.text)?;
        let settings = serde_json::to_string_pretty(&certificate.kernel_settings(&options))?;
        write(&path.with_extension("config.json"), &settings)?;
        let stated = &certificate.library_statements;
        println!("{}: relative to {} library statements", path.display(), stated.len());
        stated.iter().for_each(|name| println!("  {name}"));
    }
    if failed > 0 {
        bail!("{failed} of {} proofs were not written", proofs.len());
    }
    Ok(())
}
