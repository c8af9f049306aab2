//! Traces of a Lean library.

use std::fmt;
use std::path::Path;

use catamount_lean::{Corpus, Options, TraceProgress, TraceReport};
use catamount_traces::Trace;
use serde_json::{Value, json};

use crate::error::Result;
use crate::making::Progress;

/// What tracing found and what it lost.
#[derive(Clone, Debug)]
pub struct Tracing(TraceReport);

/// Traces a Lean file, or a folder of them.
pub fn trace_lean(
    options: &Options,
    path: &Path,
    progress: Progress<'_>,
) -> Result<(Vec<Trace>, Tracing)> {
    let mut report = catamount_lean::trace(options, path, |at| progress(at.done, at.total))?;
    Ok((std::mem::take(&mut report.traces), Tracing(report)))
}

/// Traces a corpus; `progress` hears of every file as it is done, with its traces.
pub fn trace_corpus(
    options: &Options,
    corpus: &Corpus,
    progress: impl FnMut(TraceProgress<'_>),
) -> Result<(Vec<Trace>, Tracing)> {
    let mut report = catamount_lean::trace_corpus(options, corpus, progress)?;
    Ok((std::mem::take(&mut report.traces), Tracing(report)))
}

impl Tracing {
    /// The row of a table of corpora, for programs.
    pub fn described(&self, traces: &[Trace]) -> Value {
        let report = &self.0;
        json!({
            "files": report.files,
            "theorems": report.theorems,
            "by_tactics": report.by_tactics,
            "traces": traces.len(),
            "steps": traces.iter().map(|trace| trace.steps.len()).sum::<usize>(),
            "traces_of_2_to_5_steps": short(traces),
            "lost": report.losses(),
            "failed_commands": report.problems.len(),
            "failed_files": report.problems.iter().filter(|p| p.line == 0).count(),
        })
    }
}

/// How many traces have 2 to 5 steps.
fn short(traces: &[Trace]) -> usize {
    traces.iter().filter(|trace| (2..=5).contains(&trace.steps.len())).count()
}

impl fmt::Display for Tracing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.0;
        writeln!(
            f,
            "{} files, {} theorems, {} proved by tactics: {} traces that replay, {} lost",
            report.files,
            report.theorems,
            report.by_tactics,
            report.by_tactics.saturating_sub(report.lost.len()),
            report.lost.len()
        )?;
        for (why, count) in report.losses() {
            writeln!(f, "  lost: {count} x {why}")?;
        }
        if let Some(first) = report.problems.first() {
            writeln!(
                f,
                "{} commands did not elaborate; the first is {}:{}: {}",
                report.problems.len(),
                first.file,
                first.line,
                first.error
            )?;
        }
        Ok(())
    }
}
