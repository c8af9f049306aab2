//! Everything that is wrong with a file of traces, not only the first thing.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::jsonl::{self, Lines};
use crate::{Error, Format, Skipped, Statistics, Trace, detect, input, read_any};

/// What validation found out about a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The file's format.
    pub format: Format,
    /// What makes the file unusable.
    pub errors: Vec<Problem>,
    /// What is odd but can be used.
    pub warnings: Vec<Problem>,
    /// Theorems of other projects' files that are no traces.
    pub skipped: Vec<Skipped>,
    /// The traces that are sound.
    pub statistics: Statistics,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The line, or the record where the format has no lines, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl Report {
    /// Whether the file can be used.
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty() && self.statistics.traces > 0
    }
}

/// Reads a whole file and reports on it. An error means that it could not be read at all.
pub fn validate(path: &Path) -> Result<Report, Error> {
    let format = detect(path)?;
    let mut errors = Vec::new();
    let mut skipped = Vec::new();
    let numbered: Vec<(usize, Trace)> = match format {
        Format::Jsonl => lines(path, &mut errors)?,
        _ => {
            let loaded = read_any(path)?;
            skipped = loaded.skipped;
            (1..).zip(loaded.traces).collect()
        }
    };
    let mut warnings = Vec::new();
    for (line, trace) in &numbered {
        warnings
            .extend(oddities(trace).into_iter().map(|message| Problem { line: *line, message }));
    }
    let statistics = Statistics::of(numbered.iter().map(|(_, trace)| trace));
    Ok(Report { format, errors, warnings, skipped, statistics })
}

fn lines(path: &Path, errors: &mut Vec<Problem>) -> Result<Vec<(usize, Trace)>, Error> {
    let mut lines = Lines::new(input::open(path)?, path.to_owned());
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut traces = Vec::new();
    while let Some((line, bytes)) = lines.next_line()? {
        match jsonl::parse(bytes) {
            Err(message) => errors.push(Problem { line, message }),
            Ok(trace) => match seen.get(&trace.theorem.name) {
                Some(first) => {
                    let message =
                        format!("the name {:?} occurs on line {first} already", trace.theorem.name);
                    errors.push(Problem { line, message });
                }
                None => {
                    seen.insert(trace.theorem.name.clone(), line);
                    traces.push((line, trace));
                }
            },
        }
    }
    Ok(traces)
}

/// A linear proof's states hang together: each step starts where the last one ended, and the last
/// ends with nothing to prove.
fn oddities(trace: &Trace) -> Vec<String> {
    let name = &trace.theorem.name;
    let mut odd = Vec::new();
    for (at, step) in trace.steps.iter().enumerate() {
        let number = at + 1;
        if step.state.trim().is_empty() {
            odd.push(format!("step {number} of {name:?} has an empty state"));
        }
        match (&step.next, trace.steps.get(number)) {
            (Some(next), Some(following)) if *next != following.state => {
                odd.push(format!(
                    "step {number} of {name:?} does not lead to the state of step {}",
                    number + 1
                ));
            }
            (Some(next), None) if !next.is_empty() => {
                odd.push(format!("the last step of {name:?} leaves goals open"))
            }
            _ => {}
        }
    }
    odd
}

/// Problems shown before the rest is only counted.
const SHOWN: usize = 20;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "format: {}", self.format)?;
        for (kind, problems) in [("error", &self.errors), ("warning", &self.warnings)] {
            for problem in problems.iter().take(SHOWN) {
                writeln!(
                    f,
                    "{kind}: {} {}: {}",
                    self.format.unit(),
                    problem.line,
                    problem.message
                )?;
            }
            if problems.len() > SHOWN {
                writeln!(f, "{kind}: and {} more", problems.len() - SHOWN)?;
            }
        }
        if !self.skipped.is_empty() {
            writeln!(
                f,
                "{} theorems left out, the first because {}",
                self.skipped.len(),
                self.skipped[0].reason
            )?;
        }
        write!(f, "{}", self.statistics)
    }
}
