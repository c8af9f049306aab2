//! `catamount export`: found proofs, for another program to verify.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use catamount_evaluate::log::Outcome;
use catamount_evaluate::{Log, is_sidecar};

use crate::{environment, output};

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// The Metamath database, with each found proof in place of the original.
    Mm,
    /// Lean text that a person can paste; needs --theorems.
    Lean,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// What to write.
    #[arg(long, value_enum)]
    format: Format,
    #[command(flatten)]
    metamath: environment::MetamathArguments,
    /// Lean: the file of theorems that was searched, for their statements.
    #[arg(long)]
    theorems: Option<PathBuf>,
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
            let path = arguments
                .theorems
                .as_ref()
                .context("--format lean needs --theorems, the file that was searched")?;
            let traces = catamount_traces::read_any(path)?.traces;
            let theorems: HashMap<&str, _> =
                traces.iter().map(|trace| (trace.theorem.name.as_str(), &trace.theorem)).collect();
            let mut out = output::lock();
            for ((name, tactics), axioms) in proofs.iter().zip(&axioms) {
                let theorem = theorems
                    .get(name.as_str())
                    .with_context(|| format!("{} has no theorem {name}", path.display()))?;
                if !axioms.is_empty() {
                    writeln!(out, "-- Axioms of {name}: {}", axioms.join(", "))?;
                }
                writeln!(out, "{}", catamount_lean::export(theorem, tactics))?;
            }
        }
    }
    eprintln!("{} proofs exported", proofs.len());
    Ok(())
}
