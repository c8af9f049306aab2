//! How far a study has come: every cell that was planned, filled in as its log grows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use catamount_evaluate::Log;
use serde::{Deserialize, Serialize};

use crate::names::{Objective, strategy_label};
use crate::outcomes::key;
use crate::run::{ReportError, json, listing, seed_folders};
use crate::study::{PLAN, PlannedCell, StudyPlan};

/// A study as it stands.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Live {
    /// Changes when there is more to report on.
    pub(crate) version: u64,
    pub(crate) training: Vec<LiveTraining>,
    pub(crate) cells: Vec<LiveCell>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct LiveTraining {
    name: String,
    step: u64,
    steps: u64,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct LiveCell {
    key: String,
    objective: String,
    /// Strategy and budget: the column of the cell.
    column: String,
    done: usize,
    proved: usize,
    /// Theorems of the pool, once the cell has begun.
    theorems: Option<usize>,
}

/// Counts of logs that have not grown since they were read.
#[derive(Default)]
pub(crate) struct Seen(HashMap<PathBuf, (u64, Counts)>);

#[derive(Clone, Copy, Default)]
struct Counts {
    done: usize,
    proved: usize,
    theorems: Option<usize>,
}

impl Live {
    /// Looks at a study's folder. What is half-written now is read whole the next time.
    pub(crate) fn read(dir: &Path, seen: &mut Seen) -> Result<Self, ReportError> {
        let mut live = Live::default();
        let seeds = seed_folders(dir)?;
        for folder in &seeds {
            let plan: Option<StudyPlan> = json(&folder.join(PLAN))?;
            for cell in plan.map(|plan| plan.cells).unwrap_or_default() {
                let counts = seen.counts(&folder.join(cell.log.clone().unwrap_or_default()));
                live.version += counts.done as u64 + u64::from(counts.theorems.is_some());
                live.cells.push(shown(&cell, counts, seeds.len() > 1));
            }
            let training = folder.join("training");
            if training.is_dir() {
                for path in listing(&training, ".metrics.jsonl")? {
                    live.training.extend(last_step(&path));
                }
            }
        }
        live.version += live.training.len() as u64;
        Ok(live)
    }
}

fn shown(cell: &PlannedCell, counts: Counts, several: bool) -> LiveCell {
    let seed = cell.seed.filter(|_| several);
    let suffix = seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
    LiveCell {
        key: key(&cell.objective, &cell.strategy, cell.budget, seed),
        objective: Objective::parse(&cell.objective).label(),
        column: format!("{}, N = {}{suffix}", strategy_label(&cell.strategy), cell.budget),
        done: counts.done,
        proved: counts.proved,
        theorems: counts.theorems,
    }
}

impl Seen {
    fn counts(&mut self, log: &Path) -> Counts {
        let Ok(size) = std::fs::metadata(log).map(|file| file.len()) else {
            return Counts::default();
        };
        if let Some((before, counts)) = self.0.get(log)
            && *before == size
        {
            return *counts;
        }
        let Ok(read) = Log::read(log) else { return Counts::default() };
        let tally = read.tally();
        let counts = Counts {
            done: tally.completed + tally.errors,
            proved: tally.proved,
            theorems: read.manifest.map(|manifest| manifest.pool.theorems),
        };
        self.0.insert(log.into(), (size, counts));
        counts
    }
}

/// What is read of a line of metrics while a study runs.
#[derive(Deserialize)]
struct Step {
    step: u64,
    steps: u64,
}

/// How far one model's training has come, by its last whole measurement.
fn last_step(path: &Path) -> Option<LiveTraining> {
    let text = std::fs::read_to_string(path).ok()?;
    let lines = text.lines().rev();
    let Step { step, steps } = lines.flat_map(serde_json::from_str).next()?;
    let name = path.file_name()?.to_string_lossy();
    let name = name.strip_suffix(".metrics.jsonl").unwrap_or(&name).to_owned();
    Some(LiveTraining { name, step, steps })
}
