//! `catamount check`: finished proofs, judged by the prover alone.

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use catamount_search::Checked;
use catamount_traces::Theorem;
use serde::{Deserialize, Serialize};

use crate::environment::{self, Prover};
use crate::output;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    environment: environment::Arguments,
    /// JSON lines; standard input if not given. Metamath: `{"name", "tactics": [...]}`. Lean:
    /// `{"name", "header", "statement", "tactics"}`, or `{"name", "file", "tactics"}` for a theorem
    /// of the library, where it stands.
    file: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Claim {
    #[serde(flatten)]
    theorem: Theorem,
    tactics: Vec<String>,
}

#[derive(Serialize)]
struct Judged {
    name: String,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    axioms: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.environment.env == Prover::Lean {
        return lean(arguments);
    }
    let environment = arguments.environment.open()?;
    let input: Box<dyn BufRead> = match &arguments.file {
        Some(path) => {
            let file = std::fs::File::open(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Box::new(std::io::BufReader::new(file))
        }
        None => Box::new(std::io::stdin().lock()),
    };
    let source = arguments
        .file
        .as_ref()
        .map_or("standard input".to_string(), |path| path.display().to_string());
    let mut out = output::lock();
    let mut errors = 0;
    for (index, line) in input.split(b'\n').enumerate() {
        let line = line.with_context(|| format!("cannot read {source}"))?;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let claim: Claim = serde_json::from_slice(&line).with_context(|| {
            format!(
                "{source}:{}: not a claim; a line looks like {{\"name\": \"id\", \"tactics\": \
             [\"ax-1\"]}}",
                index + 1
            )
        })?;
        let (verdict, reason, axioms) = match environment.check(&claim.theorem, &claim.tactics) {
            Ok(Checked::Proved { axioms, .. }) => ("proved", None, axioms),
            Ok(Checked::Refused { reason }) => ("refused", Some(reason), Vec::new()),
            Err(fault) => {
                errors += 1;
                ("error", Some(fault.to_string()), Vec::new())
            }
        };
        let judged = Judged { name: claim.theorem.name, verdict, reason, axioms };
        serde_json::to_writer(&mut out, &judged)?;
        out.write_all(b"\n")?;
    }
    without_verdict(errors)
}

/// An error if some claims got no verdict.
fn without_verdict(errors: usize) -> Result<()> {
    if errors > 0 {
        bail!("{errors} claims got no verdict: their lines say what failed");
    }
    Ok(())
}

/// Lean's claims carry their own header and statement, or name a theorem of the library.
fn lean(arguments: &Arguments) -> Result<()> {
    let mut lines = Vec::new();
    match &arguments.file {
        Some(path) => {
            lines =
                std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?
        }
        None => {
            std::io::stdin()
                .lock()
                .read_to_end(&mut lines)
                .context("cannot read standard input")?;
        }
    }
    let lean = catamount_lean::Lean::new(arguments.environment.lean.options()?)?;
    let mut out = output::lock();
    let mut failure = None;
    let mut errors = 0;
    lean.rule_lines(&lines, |ruling| {
        errors += usize::from(ruling.verdict == catamount_lean::RulingVerdict::Error);
        let written = serde_json::to_string(ruling)
            .map_err(anyhow::Error::from)
            .and_then(|line| Ok(writeln!(out, "{line}")?));
        failure = failure.take().or(written.err());
    })
    .map_err(|fault| anyhow::anyhow!("{fault}"))?;
    failure.map_or_else(|| without_verdict(errors), Err)
}
