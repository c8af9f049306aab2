//! Which of the formats a file is in, and reading and writing without having to know.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::io::{BufRead, Read};
use std::path::Path;

use serde::Serialize;

use crate::leandojo::Entry;
use crate::parquet::Shape;
use crate::{Error, Origin, Trace, input, jsonl, leandojo, parquet, shards};

/// The formats traces come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The project's own JSON lines.
    Jsonl,
    /// LeanDojo Benchmark 4 JSON.
    LeanDojo,
    /// Parquet in any of its shapes.
    Parquet,
}

impl Format {
    /// What its parts are numbered by.
    pub(crate) fn unit(self) -> &'static str {
        if self == Format::Jsonl { "line" } else { "trace" }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Jsonl => "JSON lines",
            Format::LeanDojo => "LeanDojo JSON",
            Format::Parquet => "Parquet",
        })
    }
}

/// The traces of a file, and what of it are none.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// What the file turned out to be.
    pub format: Format,
    /// The traces, in the file's order.
    pub traces: Vec<Trace>,
    /// Theorems that were left out; only files of other projects have any.
    pub skipped: Vec<Skipped>,
    /// The repositories that the file says its theorems were traced in.
    pub origins: BTreeSet<Origin>,
}

/// A theorem that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Finds out a file's format, from what it holds first and from its name where that does not
/// decide.
pub fn detect(path: &Path) -> Result<Format, Error> {
    if path.is_dir() {
        return Err(Error::file(
            path,
            "is a folder; name a file of traces in it, such as train.jsonl, or several by a \
             pattern, such as 'FOLDER/train-*.jsonl'",
        ));
    }
    let mut file = input::open(path)?;
    let mut start = Vec::new();
    file.by_ref().take(4).read_to_end(&mut start).map_err(Error::io(path))?;
    if start == b"PAR1" {
        return Ok(Format::Parquet);
    }
    // The first line decides between kinds of JSON; one trace may be long, a megabyte is plenty.
    file.by_ref().take(1 << 20).read_until(b'\n', &mut start).map_err(Error::io(path))?;
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start).trim_ascii();
    let extension = input::extension(path);
    let contains = |word: &[u8]| start.windows(word.len()).any(|window| window == word);
    match (extension.as_str(), start.first()) {
        ("parquet", Some(_)) => Err(Error::file(
            path,
            "is called .parquet but does not begin as one; is the download complete?",
        )),
        (_, Some(b'[')) => Ok(Format::LeanDojo),
        (_, Some(b'{')) if contains(b"\"traced_tactics\"") => Ok(Format::LeanDojo),
        ("json", Some(b'{')) if !contains(b"\"steps\"") => Err(Error::file(path, UNKNOWN)),
        (_, Some(b'{')) | ("jsonl" | "ndjson", _) => Ok(Format::Jsonl),
        _ => Err(Error::file(path, UNKNOWN)),
    }
}

const UNKNOWN: &str = "not a format we know; expected traces as JSON lines (.jsonl), LeanDojo's \
 JSON list (.json), either also compressed (.gz), or Parquet (.parquet)";

/// Reads a file, or the shards of one (`train-*.parquet`), in whichever format it is. Our own
/// format is held to its rules; in files of other projects, theorems without tactics and repeated
/// names are left out and reported.
pub fn read_any(path: &Path) -> Result<Loaded, Error> {
    read_shards(path, false)
}

/// The same for theorems that are to be proved: one without steps is as good as any.
pub fn read_theorems(path: &Path) -> Result<Loaded, Error> {
    read_shards(path, true)
}

fn read_shards(path: &Path, undemonstrated: bool) -> Result<Loaded, Error> {
    let mut names = HashSet::new();
    let mut all: Option<Loaded> = None;
    for shard in shards(path)? {
        let one = read_one(&shard, &mut names, undemonstrated)?;
        match &mut all {
            None => all = Some(one),
            Some(all) => {
                all.traces.extend(one.traces);
                all.skipped.extend(one.skipped);
                all.origins.extend(one.origins);
            }
        }
    }
    all.ok_or_else(|| Error::file(path, "matches no file"))
}

/// Reads one file; `names` are those of the shards before it.
fn read_one(
    path: &Path,
    names: &mut HashSet<String>,
    undemonstrated: bool,
) -> Result<Loaded, Error> {
    let format = detect(path)?;
    let found: Vec<Trace> = match format {
        Format::Jsonl if undemonstrated => {
            jsonl::Reader::open(path)?.with_undemonstrated().collect::<Result<_, _>>()?
        }
        Format::Jsonl => jsonl::read(path)?,
        Format::LeanDojo => leandojo::read(path)?.iter().map(Entry::trace).collect(),
        Format::Parquet => parquet::read(path)?,
    };
    let mut skipped = Vec::new();
    let mut traces = Vec::with_capacity(found.len());
    for trace in found {
        let name = trace.theorem.name.clone();
        let checked = match undemonstrated {
            true => jsonl::check_theorem(&trace),
            false => jsonl::check(&trace),
        };
        let reason = match checked {
            Err(_) if trace.steps.is_empty() => Some("its proof has no tactics".to_owned()),
            Err(reason) => Some(reason),
            Ok(()) if !names.insert(name.clone()) => Some("its name occurred before".to_owned()),
            Ok(()) => None,
        };
        match reason {
            // Within a file of ours the reader has seen to it; across shards it is a mistake too.
            Some(reason) if format == Format::Jsonl => {
                return Err(Error::file(path, format!("{name:?}: {reason}")));
            }
            Some(reason) => skipped.push(Skipped { name, reason }),
            None => traces.push(trace),
        }
    }
    let origins = traces.iter().filter_map(|trace| trace.theorem.origin()).collect();
    Ok(Loaded { format, traces, skipped, origins })
}

/// Writes a file in the format that its name's ending says: `.jsonl`, `.json` (LeanDojo), either
/// also compressed (`.gz`), or `.parquet` (nested).
pub fn write_any(path: &Path, traces: &[Trace]) -> Result<Format, Error> {
    match input::extension(path).as_str() {
        "parquet" if input::is_compressed(path) => {
            Err(Error::file(path, "Parquet is compressed inside: name the file .parquet"))
        }
        "jsonl" | "ndjson" => jsonl::write(path, traces).map(|()| Format::Jsonl),
        "json" => {
            let entries: Vec<Entry> = traces.iter().map(Entry::new).collect();
            leandojo::write(path, &entries).map(|()| Format::LeanDojo)
        }
        "parquet" => parquet::write(path, traces, Shape::Nested).map(|()| Format::Parquet),
        _ => Err(Error::file(
            path,
            "name the file .jsonl, .json (LeanDojo), either with .gz after it, or .parquet to say \
             which format to write",
        )),
    }
}
