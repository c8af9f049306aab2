//! A cell on disk: started once, interrupted anywhere, resumed without repeating or losing a
//! theorem.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::driver::{Finished, Spent};
use crate::log::{Manifest, Outcome, Record};

/// What can go wrong with a cell's files.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// The file system said no.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A line that is no record, other than a half-written last one.
    #[error(
        "{path}:{line}: not a log record ({reason}); the log is damaged: move it away and run the \
         cell again"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What the parser said.
        reason: String,
    },
    /// The log belongs to another run.
    #[error(
        "{path} is the log of another run: {differences}; choose another --out, or move the old \
         log away"
    )]
    Another {
        /// The file.
        path: PathBuf,
        /// What differs.
        differences: String,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> CellError {
    let path = path.to_path_buf();
    move |source| CellError::Io { path, source }
}

/// The files of one cell, open for appending.
#[derive(Debug)]
pub struct Cell {
    path: PathBuf,
    log: File,
    times: File,
    trees: Option<File>,
    /// The last record of every theorem in the log.
    records: HashMap<String, Record>,
}

/// The path of a sibling of `NAME.jsonl`: `NAME.` and the suffix.
pub fn sibling(log: &Path, suffix: &str) -> PathBuf {
    log.with_extension(suffix)
}

impl Cell {
    /// Starts a cell, or resumes it if its log exists. `trees` also keeps search trees.
    pub fn open(path: &Path, manifest: &Manifest, trees: bool) -> Result<Self, CellError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io_error(folder))?;
        }
        let manifest_path = sibling(path, "manifest.json");
        if manifest_path.exists() {
            let old: Manifest = read_json(&manifest_path)?;
            let differences = differences(&old, manifest);
            if !differences.is_empty() {
                return Err(CellError::Another { path: path.to_path_buf(), differences });
            }
        } else {
            if path.exists() && path.metadata().map_err(io_error(path))?.len() > 0 {
                let differences = format!("its manifest {} is missing", manifest_path.display());
                return Err(CellError::Another { path: path.to_path_buf(), differences });
            }
            let text = serde_json::to_string_pretty(manifest).expect("a manifest is plain data");
            write_whole(&manifest_path, text.as_bytes())?;
        }
        let log = append(path)?;
        let records =
            read_log(path)?.into_iter().map(|record| (record.theorem.clone(), record)).collect();
        let trees = if trees { Some(append(&sibling(path, "trees.jsonl"))?) } else { None };
        Ok(Cell {
            path: path.to_path_buf(),
            log,
            times: append(&sibling(path, "times.jsonl"))?,
            trees,
            records,
        })
    }

    /// Theorems that need no further search: everything but errors.
    pub fn completed(&self) -> HashSet<&str> {
        let completed = self.records.values().filter(|record| record.outcome != Outcome::Error);
        completed.map(|record| record.theorem.as_str()).collect()
    }

    /// The last record of every theorem.
    pub fn records(&self) -> &HashMap<String, Record> {
        &self.records
    }

    /// Appends a finished theorem. The tree goes first: a theorem is done once its record is in the
    /// log.
    pub fn append(&mut self, finished: Finished) -> Result<(), CellError> {
        if let (Some(file), Some(tree)) = (&mut self.trees, &finished.tree) {
            write_line(file, tree).map_err(io_error(&sibling(&self.path, "trees.jsonl")))?;
        }
        write_line(&mut self.times, &finished.time)
            .map_err(io_error(&sibling(&self.path, "times.jsonl")))?;
        write_line(&mut self.log, &finished.record).map_err(io_error(&self.path))?;
        self.records.insert(finished.record.theorem.clone(), finished.record);
        Ok(())
    }

    /// Adds the time of a run to `NAME.spent.json`, which tells where the time of all runs of this
    /// cell went.
    pub fn add_spent(&self, spent: Spent) -> Result<(), CellError> {
        let path = sibling(&self.path, "spent.json");
        // Times are only for the curious: what an older version wrote is not worth stopping for.
        let mut all: Spent = read_json(&path).unwrap_or_default();
        all += spent;
        write_whole(&path, serde_json::to_string_pretty(&all).expect("plain data").as_bytes())
    }

    /// Puts a complete log into the pool's order, each theorem once, so that the same seed gives
    /// the same file. The rewrite is atomic: the old log stands until the new one is whole.
    pub fn settle(self, order: &[String]) -> Result<(), CellError> {
        let mut text = Vec::new();
        for record in order.iter().filter_map(|theorem| self.records.get(theorem)) {
            write_line(&mut text, record).expect("writing to memory");
        }
        write_whole(&self.path, &text)
    }
}

fn append(path: &Path) -> Result<File, CellError> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .open(path)
        .map_err(io_error(path))?;
    // A crash may have left half a line: cut it off, or the next record would be glued to it.
    let length = whole_lines(&mut file).map_err(io_error(path))?;
    file.set_len(length).map_err(io_error(path))?;
    Ok(file)
}

/// Bytes up to and including the last newline.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let (mut length, mut line, mut reader) = (0, Vec::new(), BufReader::new(&mut *file));
    while reader.read_until(b'\n', &mut line)? > 0 {
        if line.ends_with(b"\n") {
            length += line.len() as u64;
        }
        line.clear();
    }
    Ok(length)
}

fn write_line(file: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    // One write a line: a reader, or a crash, sees whole lines or a single broken last one.
    file.write_all(&line)
}

fn write_whole(path: &Path, text: &[u8]) -> Result<(), CellError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let write = || {
        let mut file = File::create(&part)?;
        file.write_all(text)?;
        file.sync_all()?;
        std::fs::rename(&part, path)
    };
    write().map_err(io_error(path))
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, CellError> {
    let text = std::fs::read_to_string(path).map_err(io_error(path))?;
    serde_json::from_str(&text).map_err(|error| CellError::Damaged {
        path: path.to_path_buf(),
        line: error.line(),
        reason: error.to_string(),
    })
}

/// Every record of a log, in order. A half-written last line is passed over.
pub fn read_log(path: &Path) -> Result<Vec<Record>, CellError> {
    let text = std::fs::read(path).map_err(io_error(path))?;
    let mut records = Vec::new();
    let mut lines = text.split_inclusive(|&byte| byte == b'\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(record) => records.push(record),
            Err(_) if lines.peek().is_none() && !line.ends_with(b"\n") => {}
            Err(error) => {
                return Err(CellError::Damaged {
                    path: path.to_path_buf(),
                    line: index + 1,
                    reason: error.to_string(),
                });
            }
        }
    }
    Ok(records)
}

/// Where the time of a cell went, over all its runs; none if it was never run here.
pub fn read_spent(log: &Path) -> Option<Spent> {
    read_json(&sibling(log, "spent.json")).ok()
}

/// The manifest beside a log.
pub fn read_manifest(log: &Path) -> Result<Manifest, CellError> {
    read_json(&sibling(log, "manifest.json"))
}

/// What makes two cells different. How and by which build they were made does not.
fn differences(old: &Manifest, new: &Manifest) -> String {
    let mut differences = Vec::new();
    let mut compare = |what: &str, old: String, new: String| {
        if old != new {
            differences.push(format!("{what} was {old} and is now {new}"));
        }
    };
    compare("format", old.format.to_string(), new.format.to_string());
    compare("objective", old.objective.clone(), new.objective.clone());
    compare("strategy", old.strategy.clone(), new.strategy.clone());
    compare("settings", old.settings.to_string(), new.settings.to_string());
    compare("budget", old.budget.to_string(), new.budget.to_string());
    compare("seed", old.seed.to_string(), new.seed.to_string());
    compare("policy", old.policy.clone(), new.policy.clone());
    compare("environment", old.environment.clone(), new.environment.clone());
    compare("pool", old.pool.hash.clone(), new.pool.hash.clone());
    differences.join("; ")
}
