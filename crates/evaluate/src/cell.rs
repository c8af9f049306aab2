//! A cell on disk: started once, interrupted anywhere, resumed without repeating or losing a
//! theorem. It has one writer at a time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use catamount_base::{Appender, Lock, LockError};

use crate::driver::Finished;
use crate::log::{Manifest, Outcome, Record};
use crate::reader::{Log, LogError, Problem, read_json, sibling};
use crate::timing::Timing;

/// What can go wrong with a cell's files.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// The file system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// What is there cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log holds what this cell cannot have made.
    #[error("{0}")]
    Problem(Problem),
    /// Somebody else is writing it.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The log belongs to another experiment.
    #[error(
        "{} is the log of another experiment: {differences}; choose another place for this one, or \
         move the old log with its manifest away",
        path.display()
    )]
    Another {
        /// The file.
        path: PathBuf,
        /// What differs.
        differences: String,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> CellError + use<> {
    let path = path.to_path_buf();
    move |source| CellError::Io { path, source }
}

/// The files of one cell, open for appending.
#[derive(Debug)]
pub struct Cell {
    path: PathBuf,
    /// What every record carries.
    hash: String,
    log: Appender,
    times: Appender,
    trees: Option<Appender>,
    /// The record that counts for each theorem.
    records: BTreeMap<String, Record>,
    _lock: Lock,
}

impl Cell {
    /// Starts a cell, or resumes it if its log exists and has the same identity. `trees` also keeps
    /// search trees.
    pub fn open(path: &Path, manifest: &Manifest, trees: bool) -> Result<Self, CellError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io_error(folder))?;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let lock = Lock::at(&path.with_file_name(format!(".{name}.lock")), path)?;
        let beside = sibling(path, "manifest.json");
        let another =
            |differences: String| Err(CellError::Another { path: path.to_path_buf(), differences });
        let old = if beside.exists() { Some(read_json::<Manifest>(&beside)?) } else { None };
        if let Some(old) = &old {
            let differences = old.identity.differences(&manifest.identity);
            if !differences.is_empty() {
                return another(differences.join("; "));
            }
        } else if path.exists() && path.metadata().map_err(io_error(path))?.len() > 0 {
            return another(format!("its manifest {} is missing", beside.display()));
        }
        if old.as_ref() != Some(manifest) {
            let text = serde_json::to_string_pretty(manifest).expect("a manifest is plain data");
            catamount_base::write(&beside, text).map_err(io_error(&beside))?;
        }
        let append = |path: &Path| Appender::open(path).map_err(io_error(path));
        let log = append(path)?;
        let read = Log::read(path)?;
        if let Some(problem) = read.problems.into_iter().next() {
            return Err(CellError::Problem(problem));
        }
        Ok(Cell {
            path: path.to_path_buf(),
            hash: manifest.identity.hash(),
            log,
            times: append(&sibling(path, "times.jsonl"))?,
            trees: trees.then(|| append(&sibling(path, "trees.jsonl"))).transpose()?,
            records: read.records,
            _lock: lock,
        })
    }

    /// Theorems that need no further search: everything but errors.
    pub fn completed(&self) -> HashSet<&str> {
        let completed = self.records.values().filter(|record| record.outcome != Outcome::Error);
        completed.map(|record| record.theorem.as_str()).collect()
    }

    /// The record that counts for each theorem.
    pub fn records(&self) -> &BTreeMap<String, Record> {
        &self.records
    }

    /// Appends a finished theorem. The tree goes first: a theorem is done once its record is in the
    /// log.
    pub fn append(&mut self, finished: Finished) -> Result<(), CellError> {
        let beside = |ending: &str| io_error(&sibling(&self.path, ending));
        if let (Some(file), Some(tree)) = (&mut self.trees, &finished.tree) {
            file.append(tree).map_err(beside("trees.jsonl"))?;
        }
        self.times.append(&finished.time).map_err(beside("times.jsonl"))?;
        let record = self.stamped(&finished.record);
        self.log.append(&record).map_err(io_error(&self.path))?;
        self.records.insert(finished.record.theorem.clone(), finished.record);
        Ok(())
    }

    fn stamped(&self, record: &Record) -> Record {
        Record { cell: self.hash.clone(), ..record.clone() }
    }

    /// Adds the time of a run to `NAME.timing.json`, which tells where the time of all runs of this
    /// cell went.
    pub fn add_timing(&self, timing: Timing) -> Result<(), CellError> {
        let path = sibling(&self.path, "timing.json");
        let mut all = read_timing(&self.path).unwrap_or_default();
        all += timing;
        let text = serde_json::to_string_pretty(&all).expect("plain data");
        catamount_base::write(&path, text).map_err(io_error(&path))
    }

    /// Puts a complete log and its trees into the pool's order, each theorem once, so that the same
    /// seed gives the same files. The rewrites are atomic: an old file stands until the new one is
    /// whole.
    pub fn settle(self, order: &[String]) -> Result<(), CellError> {
        settle_trees(&sibling(&self.path, "trees.jsonl"), order)?;
        let mut text = Vec::new();
        for record in order.iter().filter_map(|theorem| self.records.get(theorem)) {
            serde_json::to_writer(&mut text, &self.stamped(record)).expect("plain data");
            text.push(b'\n');
        }
        catamount_base::write(&self.path, text).map_err(io_error(&self.path))
    }
}

/// Puts trees into the pool's order, the last of each theorem: whoever was killed between a tree
/// and its record left one more.
fn settle_trees(path: &Path, order: &[String]) -> Result<(), CellError> {
    #[derive(serde::Deserialize)]
    struct Tree {
        theorem: String,
    }
    let old = match std::fs::read(path) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error(path)(error)),
    };
    // Lines stay as they are, byte for byte.
    let mut trees: HashMap<String, &[u8]> = HashMap::new();
    for (number, line) in old.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let tree: Tree = serde_json::from_slice(line).map_err(|error| {
            let reason = format!("line {}: {error}", number + 1);
            io_error(path)(io::Error::new(io::ErrorKind::InvalidData, reason))
        })?;
        trees.insert(tree.theorem, line);
    }
    let settled: Vec<&[u8]> = order.iter().filter_map(|theorem| trees.remove(theorem)).collect();
    let settled = settled.concat();
    if settled == old {
        return Ok(());
    }
    catamount_base::write(path, settled).map_err(io_error(path))
}

/// Where the time of a cell went, over all its runs; none if it was never run here. Times are only
/// for the curious: what an older version wrote is not worth stopping for.
pub fn read_timing(log: &Path) -> Option<Timing> {
    read_json(&sibling(log, "timing.json")).ok()
}
