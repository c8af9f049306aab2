//! The one reader of logs: `NAME.jsonl` with its manifest, and everything about them that a reader
//! should be told.
//!
//! A half-written last line is what an interrupted run leaves, and is set aside with a note; a
//! broken line anywhere else is damage. On resume an errored theorem is tried again, so the last
//! result of a theorem counts and an error never replaces a result. A record that this cell cannot
//! have made is a [`Problem`]: it counts nowhere, and nobody deletes it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use catamount_base::{Lines, LinesError};
use serde::de::DeserializeOwned;

use crate::log::{Manifest, Outcome, Record};

/// Why a log could not be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line is not a record.
    #[error(
        "{}:{line}: not a cell record ({reason}); only the last line of a log may be unfinished: \
         remove this line, or run the cell again",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What was wrong with it.
        reason: String,
    },
    /// A manifest is not one.
    #[error(
        "{}: not a cell's manifest ({source}); another version of Catamount may have written it: \
         run the cell again, or read it with that version",
        path.display()
    )]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        source: serde_json::Error,
    },
}

impl LogError {
    fn lines(error: LinesError) -> Self {
        match error {
            LinesError::Io { path, source } => LogError::Read { path, source },
            LinesError::Damaged { path, line, reason } => LogError::Line { path, line, reason },
        }
    }
}

/// A record that the cell cannot have made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {theorem}: {reason}; it counts nowhere: remove the line, or run the cell again",
    path.display())]
pub struct Problem {
    /// The log.
    pub path: PathBuf,
    /// Counted from 1.
    pub line: usize,
    /// The record's theorem.
    pub theorem: String,
    /// What is wrong.
    pub reason: String,
}

/// One cell as read from its files.
#[derive(Clone, Debug)]
pub struct Log {
    /// The log's file name without its ending.
    pub name: String,
    /// The log.
    pub path: PathBuf,
    /// What the cell is a function of; `None` when there is no manifest beside the log.
    pub manifest: Option<Manifest>,
    /// The record that counts for each theorem.
    pub records: BTreeMap<String, Record>,
    /// The theorems, in the order of the log.
    pub order: Vec<String>,
    /// Records that count nowhere.
    pub problems: Vec<Problem>,
    /// What a reader should know: problems, unfinished lines, duplicates, contradictions.
    pub notes: Vec<String>,
}

/// How many theorems of a cell ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Proved within the budget.
    pub proved: usize,
    /// Completed: everything but errors.
    pub completed: usize,
    /// Cut off by a wall-clock cap; counted as unproved.
    pub capped: usize,
    /// Errors: in no rate and in no pair.
    pub errors: usize,
}

impl Log {
    /// Reads `NAME.jsonl` and, where it is there, `NAME.manifest.json`.
    pub fn read(path: &Path) -> Result<Self, LogError> {
        let beside = sibling(path, "manifest.json");
        let manifest = if beside.exists() { Some(read_json::<Manifest>(&beside)?) } else { None };
        let mut log = Log {
            name: stem(path),
            path: path.to_path_buf(),
            manifest,
            records: BTreeMap::new(),
            order: Vec::new(),
            problems: Vec::new(),
            notes: Vec::new(),
        };
        if log.manifest.is_none() {
            log.note(
                "there is no manifest beside it, so its pool, seed and budget cannot be checked",
            );
        }
        log.read_records()?;
        Ok(log)
    }

    fn note(&mut self, text: impl AsRef<str>) {
        self.notes.push(format!("{}: {}", self.path.display(), text.as_ref()));
    }

    fn read_records(&mut self) -> Result<(), LogError> {
        let judge = Judge::new(self.manifest.as_ref());
        let mut lines = Lines::<Record>::open(&self.path).map_err(LogError::lines)?;
        let mut place: HashMap<String, usize> = HashMap::new();
        let (mut same, mut contradicted) = (0, Vec::new());
        for item in lines.by_ref() {
            let (line, mut record) = item.map_err(LogError::lines)?;
            if let Err(reason) = judge.record(&record) {
                let (path, theorem) = (self.path.clone(), record.theorem);
                self.problems.push(Problem { path, line, theorem, reason });
                continue;
            }
            record.cell.clear();
            let name = record.theorem.clone();
            match self.records.get(&name) {
                Some(before)
                    if before.outcome != Outcome::Error && record.outcome == Outcome::Error =>
                {
                    continue;
                }
                Some(before) if before.outcome != Outcome::Error => {
                    let agrees = (before.outcome, before.expansions, &before.tactics)
                        == (record.outcome, record.expansions, &record.tactics);
                    if agrees {
                        same += 1;
                    } else {
                        contradicted.push(format!("{name} (lines {} and {line})", place[&name]));
                    }
                }
                _ => {}
            }
            if place.insert(name.clone(), line).is_none() {
                self.order.push(name.clone());
            }
            self.records.insert(name, record);
        }
        if let Some(line) = lines.unfinished() {
            self.note(format!("line {line}, the last, is unfinished and was set aside"));
        }
        if same > 0 {
            self.note(format!("{same} theorem(s) logged twice with the same result; counted once"));
        }
        if !contradicted.is_empty() {
            self.note(format!(
                "differing results for the same theorem, the last one counts: {}",
                contradicted.join(", ")
            ));
        }
        self.notes.extend(self.problems.iter().map(ToString::to_string));
        Ok(())
    }

    /// The record that counts for each theorem, in the order of the log.
    pub fn in_order(&self) -> impl Iterator<Item = &Record> {
        self.order.iter().filter_map(|theorem| self.records.get(theorem))
    }

    /// Whether a theorem was proved, for one that was completed; `None` when it is missing or ended
    /// in an error.
    pub fn solved(&self, theorem: &str) -> Option<bool> {
        self.records
            .get(theorem)
            .filter(|record| record.outcome != Outcome::Error)
            .map(|record| record.outcome == Outcome::Proved)
    }

    /// How the theorems ended.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for record in self.records.values() {
            match record.outcome {
                Outcome::Error => tally.errors += 1,
                outcome => {
                    tally.completed += 1;
                    tally.proved += usize::from(outcome == Outcome::Proved);
                    tally.capped += usize::from(outcome == Outcome::Time);
                }
            }
        }
        tally
    }

    /// Theorems of the pool that were not completed: never run, or errored. `None` without a
    /// manifest.
    pub fn missing(&self) -> Option<usize> {
        let pool = self.manifest.as_ref()?.pool.theorems;
        Some(pool.saturating_sub(self.tally().completed))
    }

    /// `objective/strategy at N, seed S`, or the file's name.
    pub fn label(&self) -> String {
        let Some(manifest) = &self.manifest else { return self.name.clone() };
        format!(
            "{} under {} at N = {}, seed {}",
            manifest.objective,
            manifest.strategy(),
            manifest.budget(),
            manifest.seed()
        )
    }

    /// Where this cell's trees are, if it kept any.
    pub fn trees(&self) -> Option<PathBuf> {
        Some(sibling(&self.path, "trees.jsonl")).filter(|path| path.exists())
    }
}

/// Tells the records that a cell can have made from others.
struct Judge<'a> {
    cell: Option<String>,
    names: Option<HashSet<&'a str>>,
    budget: u64,
    max_depth: usize,
}

impl<'a> Judge<'a> {
    fn new(manifest: Option<&'a Manifest>) -> Self {
        let deployment = manifest.map(|manifest| &manifest.identity.deployment);
        Judge {
            cell: manifest.map(|manifest| manifest.identity.hash()),
            names: manifest
                .map(|manifest| manifest.pool.names.iter().map(String::as_str).collect()),
            budget: deployment.map_or(u64::MAX, catamount_search::Deployment::budget),
            max_depth: deployment.map_or(usize::MAX, |d| d.max_depth() as usize),
        }
    }

    fn record(&self, record: &Record) -> Result<(), String> {
        if let Some(cell) = self.cell.as_ref().filter(|cell| **cell != record.cell) {
            let other = if record.cell.is_empty() { "no cell" } else { &record.cell };
            return Err(format!("a record of {other} in the log of {cell}"));
        }
        if self.names.as_ref().is_some_and(|names| !names.contains(record.theorem.as_str())) {
            return Err("not a theorem of this cell's pool".into());
        }
        let (proved, steps) = (record.outcome == Outcome::Proved, record.tactics.len());
        if proved && steps == 0 {
            return Err("said to be proved, without a proof".into());
        }
        if !proved && steps > 0 {
            return Err(format!("a proof with the outcome {}", record.outcome.name()));
        }
        if steps > self.max_depth || steps as u64 > record.expansions {
            return Err(format!(
                "a proof of {steps} steps, found after {} expansions, at most {} deep",
                record.expansions, self.max_depth
            ));
        }
        if record.expansions > self.budget {
            return Err(format!(
                "{} expansions within a budget of {}",
                record.expansions, self.budget
            ));
        }
        Ok(())
    }
}

/// The path of a sibling of `NAME.jsonl`: `NAME.` and the ending.
pub fn sibling(log: &Path, ending: &str) -> PathBuf {
    log.with_file_name(format!("{}.{ending}", stem(log)))
}

/// Whether a file is `NAME.KIND.jsonl` beside a log `NAME.jsonl`: trees, times, whatever a cell
/// keeps besides its results.
pub fn is_sidecar(path: &Path) -> bool {
    let stem = stem(path);
    stem.rsplit_once('.')
        .is_some_and(|(cell, _)| path.with_file_name(format!("{cell}.jsonl")).is_file())
}

fn stem(path: &Path) -> String {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    name.strip_suffix(".jsonl").map(str::to_owned).unwrap_or(name)
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, LogError> {
    let text =
        fs::read(path).map_err(|source| LogError::Read { path: path.to_path_buf(), source })?;
    serde_json::from_slice(&text)
        .map_err(|source| LogError::Manifest { path: path.to_path_buf(), source })
}
