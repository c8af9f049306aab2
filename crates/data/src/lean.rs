//! Traces of a Lean library.

use std::fmt;
use std::path::Path;

use catamount_lean::{Corpus, Options, TraceReport};
use catamount_traces::Trace;

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

/// Traces a corpus.
pub fn trace_corpus(
    options: &Options,
    corpus: &Corpus,
    progress: Progress<'_>,
) -> Result<(Vec<Trace>, Tracing)> {
    let mut report =
        catamount_lean::trace_corpus(options, corpus, |at| progress(at.done, at.total))?;
    Ok((std::mem::take(&mut report.traces), Tracing(report)))
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
