//! The project's own trace format: UTF-8 JSON lines, one trace a line.
//!
//! ```json
//! {"name": "id", "statement": "|- x", "steps": [{"state": "|- x", "tactic": "a", "next": "|- y"}]}
//! ```
//!
//! `name` (unique in the file) and `steps` (at least one, in order, each with `state` and a
//! non-empty `tactic`) are required. `statement`, `header`, `file`, `line` and a step's `next`
//! (empty once nothing is left to prove) are optional, `state_before` and `state_after` are read as
//! `state` and `next`, other fields are ignored, and blank lines are skipped.

use std::collections::HashSet;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Input, Trace, input};

/// Reads a stream of traces, one at a time, in constant memory but for the names seen.
pub struct Reader<R> {
    lines: Lines<R>,
    names: HashSet<String>,
    undemonstrated: bool,
    stopped: bool,
}

impl Reader<Input> {
    /// Opens a trace file, compressed with gzip or not.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Reader::new(input::open(path)?, path))
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads from anything; `path` is what errors name.
    pub fn new(source: R, path: impl Into<PathBuf>) -> Self {
        let (lines, names) = (Lines::new(source, path.into()), HashSet::new());
        Reader { lines, names, undemonstrated: false, stopped: false }
    }

    /// The same, for theorems that need no demonstrated proof.
    pub fn with_undemonstrated(self) -> Self {
        Reader { undemonstrated: true, ..self }
    }

    fn read(&mut self) -> Result<Option<Trace>, Error> {
        let Some((line, bytes)) = self.lines.next_line()? else { return Ok(None) };
        let undemonstrated = self.undemonstrated;
        let checked = parse_theorem(bytes)
            .and_then(|trace| check_steps(&trace, undemonstrated).map(|()| trace))
            .and_then(|trace| match self.names.insert(trace.theorem.name.clone()) {
                true => Ok(trace),
                false => Err(format!(
                    "the name {:?} occurs twice; names must be unique in a file",
                    trace.theorem.name
                )),
            });
        checked.map(Some).map_err(|reason| Error::Line {
            path: self.lines.path.clone(),
            line,
            reason,
        })
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Trace, Error>;

    /// The next trace. After an error the iterator ends: nothing after a broken line is to be
    /// trusted unseen.
    fn next(&mut self) -> Option<Self::Item> {
        if self.stopped {
            return None;
        }
        let item = self.read().transpose();
        self.stopped = !matches!(item, Some(Ok(_)));
        item
    }
}

/// Reads a whole file.
pub fn read(path: &Path) -> Result<Vec<Trace>, Error> {
    Reader::open(path)?.collect()
}

/// Writes a whole file; the old one stays until the new one is complete.
pub fn write<'a>(path: &Path, traces: impl IntoIterator<Item = &'a Trace>) -> Result<(), Error> {
    input::write(path, |file| write_to(file, traces))
}

/// Writes traces to anything, one a line.
pub fn write_to<'a>(
    out: &mut (impl Write + ?Sized),
    traces: impl IntoIterator<Item = &'a Trace>,
) -> io::Result<()> {
    for trace in traces {
        serde_json::to_writer(&mut *out, trace)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// One line as a trace, or what is wrong with it.
pub(crate) fn parse(line: &[u8]) -> Result<Trace, String> {
    let trace = parse_theorem(line)?;
    check_steps(&trace, false).map(|()| trace)
}

/// The same, whether the theorem has steps or not.
fn parse_theorem(line: &[u8]) -> Result<Trace, String> {
    let trace: Trace = serde_json::from_slice(line).map_err(|e| {
        // The parser counts lines within this line; the reader counts those of the file.
        let text = e.to_string();
        format!(
            "not a trace: {} (column {})",
            text.split(" at line ").next().unwrap_or(&text),
            e.column()
        )
    })?;
    check_theorem(&trace)?;
    Ok(trace)
}

/// What every trace must satisfy, whatever file it came from.
pub(crate) fn check(trace: &Trace) -> Result<(), String> {
    check_theorem(trace)?;
    check_steps(trace, false)
}

fn check_steps(trace: &Trace, undemonstrated: bool) -> Result<(), String> {
    if trace.steps.is_empty() && !undemonstrated {
        let name = &trace.theorem.name;
        return Err(format!("{name:?} has no steps; a trace needs at least one"));
    }
    Ok(())
}

/// What every theorem must satisfy, demonstrated or not.
pub(crate) fn check_theorem(trace: &Trace) -> Result<(), String> {
    let name = &trace.theorem.name;
    if name.trim().is_empty() {
        return Err("the theorem has an empty name".into());
    }
    match trace.steps.iter().position(|step| step.tactic.trim().is_empty()) {
        Some(at) => Err(format!("step {} of {name:?} has an empty tactic", at + 1)),
        None => Ok(()),
    }
}

/// Numbered, non-blank lines of bytes: a line that is no UTF-8 is one broken line, not the end of
/// the file.
pub(crate) struct Lines<R> {
    source: R,
    pub(crate) path: PathBuf,
    line: usize,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R, path: PathBuf) -> Self {
        Lines { source, path, line: 0, buffer: Vec::new() }
    }

    pub(crate) fn next_line(&mut self) -> Result<Option<(usize, &[u8])>, Error> {
        loop {
            self.buffer.clear();
            if self.source.read_until(b'\n', &mut self.buffer).map_err(Error::io(&self.path))? == 0
            {
                return Ok(None);
            }
            self.line += 1;
            if self.line == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(Some((self.line, &self.buffer)));
            }
        }
    }
}
