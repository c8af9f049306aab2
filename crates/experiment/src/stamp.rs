//! Which steps are done: a stamp a step, with the key it was done under.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::plan::Step;

#[derive(Serialize, Deserialize)]
struct Stamp {
    key: String,
    done: bool,
    seconds: f64,
}

fn path(folder: &Path, step: &Step) -> PathBuf {
    folder.join("steps").join(format!("{}.json", file_name(&step.name)))
}

/// A step's name as part of a file name.
pub(crate) fn file_name(name: &str) -> String {
    name.replace(' ', "-")
}

fn read(folder: &Path, step: &Step) -> Option<Stamp> {
    serde_json::from_slice(&fs::read(path(folder, step)).ok()?).ok()
}

fn write(folder: &Path, step: &Step, done: bool, seconds: f64) -> Result<()> {
    let path = path(folder, step);
    let part = path.with_extension("part");
    let text =
        serde_json::to_string(&Stamp { key: step.key.clone(), done, seconds }).expect("plain data");
    fs::create_dir_all(path.parent().expect("in a folder")).map_err(Error::io(&path))?;
    fs::write(&part, text).map_err(Error::io(&part))?;
    fs::rename(&part, &path).map_err(Error::io(&path))
}

/// Done under this very key.
pub(crate) fn is_done(folder: &Path, step: &Step) -> bool {
    read(folder, step).is_some_and(|stamp| stamp.done && stamp.key == step.key)
}

/// Begins a step, or continues it. If it was begun under another key, its old files (relative to
/// the folder) are moved to `stale/`, where nothing reads them and nothing is lost.
pub(crate) fn begin(folder: &Path, step: &Step, files: &[PathBuf]) -> Result<()> {
    let same = read(folder, step).is_some_and(|stamp| stamp.key == step.key);
    if !same {
        let stale = folder.join("stale").join(&step.key);
        for file in files.iter().filter(|file| folder.join(file).exists()) {
            let (from, to) = (folder.join(file), stale.join(file));
            fs::create_dir_all(to.parent().expect("in a folder")).map_err(Error::io(&to))?;
            if to.is_dir() {
                fs::remove_dir_all(&to).map_err(Error::io(&to))?;
            }
            fs::rename(&from, &to).map_err(Error::io(&from))?;
        }
    }
    write(folder, step, false, 0.0)
}

/// Marks a step as done.
pub(crate) fn finish(folder: &Path, step: &Step, seconds: f64) -> Result<()> {
    write(folder, step, true, seconds)
}

/// How long a step took when it was last done, under whatever key: the estimate for the next time.
pub(crate) fn last_seconds(folder: &Path, step: &Step) -> Option<f64> {
    read(folder, step).filter(|stamp| stamp.done).map(|stamp| stamp.seconds)
}
