//! A folder, perhaps of others, looked at: every hash compared, every proof replayed by a prover.
//! Nothing is believed because it is not there: what was planned and is not done, and what looks
//! like a result and is none, is named.

mod cells;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use catamount_base::causes;
use catamount_data::{Elsewhere, Trust};
use catamount_evaluate::log::Record;
use catamount_evaluate::{is_sidecar, sibling};
use catamount_report::{PLAN, StudyPlan};
use catamount_train::Checkpoint;
use serde::Serialize;

use self::cells::Provers;
use crate::error::{Error, Result};
use crate::stamp::{STALE, STEPS, Stamp};
use crate::step::cell_id;

/// How a folder is looked at.
pub struct Verification<'a> {
    /// Where libraries are now.
    pub elsewhere: Elsewhere,
    /// What a verdict rests on, which nothing in the folder can say.
    pub trust: Trust,
    /// Whether proofs are replayed.
    pub replay: bool,
    /// Set to stop.
    pub stop: &'a AtomicBool,
}

/// What was looked at, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// One row for each cell, and for each set of files.
    pub rows: Vec<VerifiedRow>,
    /// What is not what it should be, in words.
    pub failures: Vec<String>,
    /// The provers that proofs were replayed with.
    pub provers: Vec<String>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifiedRow {
    /// What it is about.
    pub what: String,
    /// How many files, records and proofs were looked at.
    pub checked: usize,
    /// How many things are wrong with them.
    pub failed: usize,
}

impl Verified {
    fn add(&mut self, what: impl Into<String>, checked: usize, failures: Vec<String>) {
        let failed = failures.len();
        self.rows.push(VerifiedRow { what: what.into(), checked, failed });
        self.failures.extend(failures);
    }

    /// One thing, and what is wrong with it.
    fn fault(&mut self, what: impl Into<String>, reason: impl Into<String>) {
        self.add(what, 1, vec![reason.into()]);
    }
}

impl Verification<'_> {
    /// Looks at a study, at the studies below it, or at a folder of cells.
    pub fn of(&self, folder: &Path) -> Result<Verified> {
        let mut verified = Verified::default();
        let mut logs = Vec::new();
        walk(folder, &mut verified, &mut logs)?;
        if logs.is_empty() && verified.rows.is_empty() {
            let reason = "it holds neither cells nor a study's stamps".into();
            return Err(Error::File { path: folder.to_path_buf(), reason });
        }
        let mut provers = Provers::new(self);
        for log in &logs {
            provers.verify(folder, log, &mut verified);
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
        }
        verified.provers = provers.described();
        Ok(verified)
    }
}

/// Compares the hashes of a study, of the studies below it (one for each seed), and finds the logs.
/// What was moved to `stale/` is nobody's result.
fn walk(folder: &Path, verified: &mut Verified, logs: &mut Vec<PathBuf>) -> Result<()> {
    data(folder, verified)?;
    stamps(folder, verified)?;
    planned(folder, verified);
    checkpoints(folder, verified)?;
    results(folder, verified, logs)?;
    for below in entries(folder)? {
        let is_folder = fs::symlink_metadata(&below).is_ok_and(|it| it.is_dir());
        if is_folder && below.file_name().is_some_and(|name| name != STALE) {
            walk(&below, verified, logs)?;
        }
    }
    Ok(())
}

/// The files that the data's manifest has a hash of.
fn data(folder: &Path, verified: &mut Verified) -> Result<()> {
    let data = folder.join("data");
    if !data.join(catamount_traces::MANIFEST).exists() {
        return Ok(());
    }
    match catamount_traces::Manifest::read(&data) {
        Ok(manifest) => {
            let failures = manifest.verify(&data).err().map(|error| causes(&error));
            verified.add("data", manifest.files.len(), failures.into_iter().collect());
        }
        Err(error) => verified.fault("data", causes(&error)),
    }
    Ok(())
}

/// The files that a step's stamp has a hash of, and the steps that were begun and not done.
fn stamps(folder: &Path, verified: &mut Verified) -> Result<()> {
    for path in files(&folder.join(STEPS), ".json")? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match Stamp::read(&path) {
            Some(stamp) if stamp.is_done() => {
                let damage = stamp.outputs.verify(folder, true);
                let failures = damage.iter().map(ToString::to_string).collect();
                verified.add(format!("files of {name}"), stamp.outputs.0.len(), failures);
            }
            Some(_) => verified.fault(&name, format!("{name}: was begun and is not done")),
            None => verified.fault(&name, format!("{}: not a stamp", path.display())),
        }
    }
    Ok(())
}

/// The cells that were planned and not begun: a row that is not there proves nothing.
fn planned(folder: &Path, verified: &mut Verified) {
    let path = folder.join(PLAN);
    if !path.exists() {
        return;
    }
    let read = fs::read(&path).map_err(|error| error.to_string());
    let plan = read.and_then(|text| {
        serde_json::from_slice::<StudyPlan>(&text).map_err(|error| error.to_string())
    });
    match plan {
        Ok(plan) => {
            for log in plan.cells.iter().filter_map(|cell| cell.log.as_ref()) {
                let id = cell_id(log);
                if !folder.join(STEPS).join(format!("{id}.json")).exists() {
                    verified.fault(&id, format!("{id}: was planned and is not done"));
                }
            }
        }
        Err(reason) => verified.fault(PLAN, format!("{}: {reason}", path.display())),
    }
}

/// What a run that is interrupted would go on from.
fn checkpoints(folder: &Path, verified: &mut Verified) -> Result<()> {
    let folder = folder.join("checkpoints");
    let (mut opened, mut failures) = (0, Vec::new());
    for path in entries(&folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name.starts_with("step-") {
            opened += 1;
            failures.extend(Checkpoint::open(&path).err().map(|error| causes(&error)));
        }
    }
    if opened > 0 {
        let run = folder.parent().and_then(Path::file_name).unwrap_or_default();
        verified.add(format!("checkpoints of {}", run.to_string_lossy()), opened, failures);
    }
    Ok(())
}

/// The logs of a folder. One without its manifest is a result of nobody knows what, and a manifest
/// without its log is a result that was taken away.
fn results(folder: &Path, verified: &mut Verified, logs: &mut Vec<PathBuf>) -> Result<()> {
    for path in files(folder, ".jsonl")? {
        if !is_sidecar(&path) && sibling(&path, "manifest.json").exists() {
            logs.push(path);
        } else if holds_records(&path) {
            let shown = path.display();
            let reason = format!("{shown}: results without a manifest, which nobody can check");
            verified.fault(shown.to_string(), reason);
        }
    }
    for path in files(folder, ".manifest.json")? {
        let log = path.with_extension("").with_extension("jsonl");
        if !log.exists() {
            let shown = log.display();
            verified.fault(shown.to_string(), format!("{shown}: missing; its manifest is there"));
        }
    }
    Ok(())
}

/// Whether the first line of a file is a cell's record.
fn holds_records(path: &Path) -> bool {
    let Ok(file) = fs::File::open(path) else { return false };
    let lines = BufReader::new(file).split(b'\n').map_while(std::io::Result::ok);
    let first = lines.into_iter().find(|line| !line.trim_ascii().is_empty());
    first.is_some_and(|line| serde_json::from_slice::<Record>(&line).is_ok())
}

/// The files of a folder with an ending, by name.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let wanted = |path: &PathBuf| path.is_file() && path.to_string_lossy().ends_with(ending);
    Ok(entries(folder)?.into_iter().filter(wanted).collect())
}

/// What is in a folder, by name; nothing if there is no such folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(folder)(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(Error::io(folder))?.path());
    }
    paths.sort();
    Ok(paths)
}
