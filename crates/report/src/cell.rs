//! Reading one cell: its log, its manifest, and everything about them a reader should be told.
//!
//! A half-written last line is what an interrupted run leaves, and is set aside with a note; a
//! broken line anywhere else is damage and refused. On resume an errored theorem is tried again, so
//! the last result of a theorem counts and an error never replaces a result.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use catamount_evaluate::log::{Manifest, Outcome, Record};

/// Why a log could not be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is not a record.
    #[error("{path}:{line}: not a cell record ({reason}); only the last line of a log may be \
     unfinished: remove this line, or run the cell again", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What was wrong with it.
        reason: String,
    },
    /// A manifest is not one.
    #[error("{path}: not a cell manifest ({reason}); run the cell again to write it \
     anew", path = path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
    /// The logs are not of the same experiment.
    #[error("cannot compare {a} with {b}: {reason}", a = a.display(), b = b.display())]
    Different {
        /// The first log.
        a: PathBuf,
        /// The second log.
        b: PathBuf,
        /// What differs.
        reason: String,
    },
}

/// One cell as read from its files.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The log's file name without its ending.
    pub name: String,
    /// The log.
    pub path: PathBuf,
    /// What the cell is a function of; `None` when there is no manifest beside the log.
    pub manifest: Option<Manifest>,
    /// The record that counts for each theorem.
    pub records: BTreeMap<String, Record>,
    /// What a reader should know: unfinished lines, duplicates, contradictions.
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

impl Cell {
    /// Reads `NAME.jsonl` and, where it is there, `NAME.manifest.json`.
    pub fn read(path: &Path) -> Result<Self, LogError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| LogError::Read { path: path.into(), source })
        };
        let manifest_path = beside(path, "manifest.json");
        let manifest =
            if manifest_path.exists() {
                let bytes = read(&manifest_path)?;
                Some(serde_json::from_slice::<Manifest>(&bytes).map_err(|e| {
                    LogError::Manifest { path: manifest_path, reason: e.to_string() }
                })?)
            } else {
                None
            };
        let mut cell = Self {
            name: stem(path),
            path: path.into(),
            manifest,
            records: BTreeMap::new(),
            notes: Vec::new(),
        };
        if cell.manifest.is_none() {
            cell.note(
                "there is no manifest beside it, so its pool, seed and budget cannot be checked",
            );
        }
        cell.parse(&read(path)?)?;
        cell.inspect();
        Ok(cell)
    }

    fn note(&mut self, text: impl AsRef<str>) {
        self.notes.push(format!("{}: {}", self.path.display(), text.as_ref()));
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        let mut lines: Vec<(usize, &[u8])> = bytes
            .split(|b| *b == b'\n')
            .enumerate()
            .filter(|(_, l)| !l.trim_ascii().is_empty())
            .map(|(i, l)| (i + 1, l))
            .collect();
        if let Some(&(number, last)) = lines.last()
            && let Err(e) = serde_json::from_slice::<Record>(last)
        {
            self.note(format!(
                "line {number}, the last, is unfinished and was set aside ({})",
                reason(&e)
            ));
            lines.pop();
        }
        let mut place: HashMap<String, usize> = HashMap::new();
        let (mut same, mut contradicted) = (0, Vec::new());
        for (number, line) in lines {
            let record: Record = serde_json::from_slice(line).map_err(|e| LogError::Line {
                path: self.path.clone(),
                line: number,
                reason: reason(&e),
            })?;
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
                        contradicted.push(format!("{name} (lines {} and {number})", place[&name]));
                    }
                }
                _ => {}
            }
            place.insert(name.clone(), number);
            self.records.insert(name, record);
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
        Ok(())
    }

    /// Checks the records against the manifest.
    fn inspect(&mut self) {
        let Some(manifest) = self.manifest.clone() else { return };
        if self.records.len() > manifest.pool.theorems {
            let (found, pool) = (self.records.len(), manifest.pool.theorems);
            self.note(format!("holds {found} theorems although its pool has {pool}"));
        }
        let late: Vec<String> = self
            .records
            .values_mut()
            .filter(|r| r.outcome == Outcome::Proved && r.expansions > manifest.budget)
            .map(|r| {
                r.outcome = Outcome::Budget;
                format!("{} (expansion {})", r.theorem, r.expansions)
            })
            .collect();
        if !late.is_empty() {
            self.note(format!(
                "proofs found beyond the budget of {} count as unproved: {}",
                manifest.budget,
                late.join(", ")
            ));
        }
    }

    /// Whether a theorem was proved, for one that was completed; `None` when it is missing or ended
    /// in an error.
    pub fn solved(&self, theorem: &str) -> Option<bool> {
        self.records
            .get(theorem)
            .filter(|r| r.outcome != Outcome::Error)
            .map(|r| r.outcome == Outcome::Proved)
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
        self.manifest.as_ref().map(|m| m.pool.theorems.saturating_sub(self.tally().completed))
    }

    /// `objective/strategy at N, seed S`, or the file's name.
    pub fn label(&self) -> String {
        match &self.manifest {
            Some(m) => {
                format!("{} under {} at N = {}, seed {}", m.objective, m.strategy, m.budget, m.seed)
            }
            None => self.name.clone(),
        }
    }

    /// Where this cell's trees are, if it kept any.
    pub fn trees(&self) -> Option<PathBuf> {
        Some(beside(&self.path, "trees.jsonl")).filter(|p| p.exists())
    }
}

/// The file `NAME.ENDING` beside `NAME.jsonl`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    path.with_file_name(format!("{}.{ending}", stem(path)))
}

fn stem(path: &Path) -> String {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    name.strip_suffix(".jsonl").map(str::to_owned).unwrap_or(name)
}

/// serde's message without the line number it counts inside one line.
fn reason(e: &serde_json::Error) -> String {
    let text = e.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}
