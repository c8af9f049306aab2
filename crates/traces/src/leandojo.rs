//! LeanDojo Benchmark 4: a JSON list of theorems with their traced tactics, the format most Lean
//! users have.
//!
//! An [`Entry`] keeps everything a file says, known to us or not, so that reading and writing it
//! back loses nothing; [`Entry::trace`] is the part the rest of the project works with. States with
//! several goals stay text.

use std::io::{Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Annotated, Error, Step, Theorem, Trace, input};

/// What Lean prints once nothing is left to prove.
const NO_GOALS: &str = "no goals";
/// Where a tactic's premises are.
const ANNOTATED: &str = "annotated_tactic";

/// One theorem of a LeanDojo file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The repository the theorem was traced in.
    #[serde(default)]
    pub url: String,
    /// The commit of that repository.
    #[serde(default)]
    pub commit: String,
    /// The source file, relative to the repository's root.
    pub file_path: String,
    /// The theorem's full name.
    pub full_name: String,
    /// Line and column of the first character, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<[u32; 2]>,
    /// Line and column after the last character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<[u32; 2]>,
    /// The proof's tactics; empty for a proof that is a term.
    pub traced_tactics: Vec<TracedTactic>,
    /// Whatever else the file says of the theorem.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One tactic of a LeanDojo file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TracedTactic {
    /// The tactic's text.
    pub tactic: String,
    /// The goals before it.
    pub state_before: String,
    /// The goals after it; `no goals` at the end.
    pub state_after: String,
    /// Whatever else the file says of the tactic, such as `annotated_tactic`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Entry {
    /// An entry for a trace that came from elsewhere. Missing states after a tactic are the next
    /// step's state; a column that is not known is the first, an end that is not known the start.
    pub fn new(trace: &Trace) -> Self {
        let after = |at: usize| match (&trace.steps[at].next, trace.steps.get(at + 1)) {
            (Some(next), _) if !next.is_empty() => next.clone(),
            (None, Some(following)) => following.state.clone(),
            _ => NO_GOALS.to_owned(),
        };
        let traced = trace.steps.iter().enumerate().map(|(at, step)| TracedTactic {
            tactic: step.tactic.clone(),
            state_before: step.state.clone(),
            state_after: after(at),
            extra: step.annotated.iter().map(|it| (ANNOTATED.to_owned(), json!(it))).collect(),
        });
        let theorem = &trace.theorem;
        let statement = (!theorem.statement.is_empty())
            .then(|| ("theorem_statement".to_owned(), theorem.statement.clone().into()));
        let header = theorem.header.clone().map(|header| ("header".to_owned(), header.into()));
        let place = |line: Option<u32>, column: Option<u32>| Some([line?, column.unwrap_or(1)]);
        let start = place(theorem.line, theorem.column);
        Entry {
            url: theorem.url.clone().unwrap_or_default(),
            commit: theorem.commit.clone().unwrap_or_default(),
            file_path: theorem.file.clone().unwrap_or_default(),
            full_name: theorem.name.clone(),
            start,
            end: place(theorem.end_line, theorem.end_column).or(start),
            traced_tactics: traced.collect(),
            extra: statement.into_iter().chain(header).collect(),
        }
    }

    /// The entry as a trace; it has no steps where the proof is a term.
    pub fn trace(&self) -> Trace {
        let text = |key: &str| self.extra.get(key).and_then(Value::as_str).map(str::to_owned);
        let said = |text: &String| (!text.is_empty()).then(|| text.clone());
        let step = |traced: &TracedTactic| Step {
            state: traced.state_before.clone(),
            tactic: traced.tactic.clone(),
            next: Some(if traced.state_after.trim() == NO_GOALS {
                String::new()
            } else {
                traced.state_after.clone()
            }),
            // What some mirrors put there instead is not for us to judge.
            annotated: traced.extra.get(ANNOTATED).and_then(|it| Annotated::deserialize(it).ok()),
        };
        // A theorem that ends where it begins is one of which we wrote the line alone.
        let known = |place: Option<[u32; 2]>| place.filter(|_| self.start != self.end);
        Trace {
            theorem: Theorem {
                name: self.full_name.clone(),
                statement: text("theorem_statement").unwrap_or_default(),
                header: text("header"),
                file: said(&self.file_path),
                line: self.start.map(|[line, _]| line),
                column: known(self.start).map(|[_, column]| column),
                end_line: known(self.end).map(|[line, _]| line),
                end_column: known(self.end).map(|[_, column]| column),
                url: said(&self.url),
                commit: said(&self.commit),
            },
            steps: self.traced_tactics.iter().map(step).collect(),
        }
    }
}

/// Reads a file: the benchmark's JSON list, or one entry a line as some mirrors have it.
pub fn read(path: &Path) -> Result<Vec<Entry>, Error> {
    let mut bytes = Vec::new();
    input::open(path)?.read_to_end(&mut bytes).map_err(Error::io(path))?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let broken = |e: serde_json::Error| Error::Line {
        path: path.to_owned(),
        line: e.line(),
        reason: format!("not a LeanDojo theorem list: {e}"),
    };
    if bytes.trim_ascii_start().starts_with(b"[") {
        serde_json::from_slice(bytes).map_err(broken)
    } else {
        serde_json::Deserializer::from_slice(bytes)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(broken)
    }
}

/// Writes a file as the benchmark does, a JSON list; the old file stays until the new one is
/// complete.
pub fn write<'a>(path: &Path, entries: impl IntoIterator<Item = &'a Entry>) -> Result<(), Error> {
    input::write(path, |file| write_to(file, entries))
}

fn write_to<'a>(
    out: &mut (impl Write + ?Sized),
    entries: impl IntoIterator<Item = &'a Entry>,
) -> std::io::Result<()> {
    // One entry at a time: the benchmark has over a hundred thousand.
    out.write_all(b"[")?;
    for (at, entry) in entries.into_iter().enumerate() {
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, entry)?;
    }
    out.write_all(b"\n]\n")
}
