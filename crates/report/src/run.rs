//! A run folder: its cells brought into groups, what was planned, and everything that is missing or
//! odd, by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use catamount_statistics::{self as statistics, Rate, wilson};
use serde::de::DeserializeOwned;

use crate::cell::Cell;
use crate::compare::paired_statistics;
use crate::names::{CONTROL, Objective, strategy_rank};
use crate::reading::Reading;
use crate::study::{OFF_TRACE, OffTrace, PLAN, PlannedCell, SCORES, StudyPlan};
use crate::training::Training;

/// Why a folder could not be reported on.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A folder or file could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Nothing to report on.
    #[error("{path} holds no cell with a manifest{reason}; a run folder has cells/NAME.jsonl with \
     cells/NAME.manifest.json beside it", path = path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// A file is not what its name says.
    #[error("{path}: {reason}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        reason: String,
    },
    /// A figure could not be saved.
    #[error(transparent)]
    Figure(#[from] catamount_figure::SaveError),
    /// A file could not be written.
    #[error("cannot write {path}: {source}; check that the folder is writable and the disk has \
     room", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The seeds of one (objective, strategy, budget).
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) objective: Objective,
    pub(crate) strategy: String,
    pub(crate) budget: u64,
    /// By seed.
    pub(crate) cells: BTreeMap<u64, Cell>,
}

impl Group {
    /// The rate over theorems completed at every seed.
    pub(crate) fn rate(&self) -> Rate {
        let cells: Vec<&Cell> = self.cells.values().collect();
        let Some((first, rest)) = cells.split_first() else { return wilson(0.0, 0) };
        let (mut n, mut solved) = (0, 0.0);
        for name in first.records.keys() {
            let outcomes: Option<Vec<bool>> =
                std::iter::once(first).chain(rest).map(|c| c.solved(name)).collect();
            if let Some(outcomes) = outcomes {
                n += 1;
                solved += outcomes.iter().filter(|s| **s).count() as f64 / outcomes.len() as f64;
            }
        }
        wilson(solved, n)
    }

    /// Theorems of the pool.
    pub(crate) fn pool(&self) -> usize {
        self.cells
            .values()
            .filter_map(|c| c.manifest.as_ref())
            .map(|m| m.pool.theorems)
            .max()
            .unwrap_or(0)
    }

    /// This group against another, on the seeds both have; the gain is this group's.
    pub(crate) fn against(&self, base: &Group) -> Option<statistics::Comparison> {
        let seeds: Vec<u64> =
            self.cells.keys().filter(|s| base.cells.contains_key(s)).copied().collect();
        let a: Vec<&Cell> = seeds.iter().map(|s| &base.cells[s]).collect();
        let b: Vec<&Cell> = seeds.iter().map(|s| &self.cells[s]).collect();
        paired_statistics(&a, &b)
    }

    pub(crate) fn label(&self) -> String {
        format!("{} under {} at N = {}", self.objective.full, self.strategy, self.budget)
    }
}

/// A run folder as read.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) dir: PathBuf,
    pub(crate) groups: Vec<Group>,
    pub(crate) training: Vec<Training>,
    pub(crate) plan: Option<StudyPlan>,
    pub(crate) offtrace: Vec<OffTrace>,
    pub(crate) readings: Vec<Reading>,
    /// Cells that were planned, or that a table has a place for, and that are not there.
    pub(crate) missing: Vec<String>,
    /// Everything else a reader should know.
    pub(crate) notes: Vec<String>,
}

impl Run {
    pub(crate) fn open(dir: &Path) -> Result<Self, ReportError> {
        let mut run = Self {
            dir: dir.into(),
            groups: Vec::new(),
            training: Vec::new(),
            plan: json(&dir.join(PLAN))?,
            offtrace: json(&dir.join(OFF_TRACE))?.unwrap_or_default(),
            readings: Vec::new(),
            missing: Vec::new(),
            notes: Vec::new(),
        };
        run.read_cells(&dir.join("cells"))?;
        let folder = dir.join("training");
        if folder.is_dir() {
            for path in listing(&folder, ".metrics.jsonl")? {
                match Training::read(&path, &mut run.notes) {
                    Ok(training) => run.training.push(training),
                    Err(e) => run.notes.push(format!("left out: {e}")),
                }
            }
        }
        let folder = dir.join(SCORES);
        if folder.is_dir() {
            for path in listing(&folder, ".reading.json")? {
                match Reading::read(&path) {
                    Ok(reading) => run.readings.push(reading),
                    Err(e) => run.notes.push(format!("left out: {e}")),
                }
            }
        }
        run.training.sort_by_key(|t| Objective::parse(&t.objective).rank());
        run.name_missing();
        Ok(run)
    }

    fn read_cells(&mut self, folder: &Path) -> Result<(), ReportError> {
        let mut cells = Vec::new();
        for path in listing(folder, ".jsonl")? {
            if is_sidecar(&path) {
                continue;
            }
            match Cell::read(&path) {
                Ok(cell) => cells.push(cell),
                Err(e) => self.notes.push(format!("left out: {e}")),
            }
        }
        // One report, one pool: the one most cells have. Cells of another are named, not mixed in.
        let mut pools: BTreeMap<String, usize> = BTreeMap::new();
        for m in cells.iter().filter_map(|c| c.manifest.as_ref()) {
            *pools.entry(m.pool.hash.clone()).or_default() += 1;
        }
        let pool = pools.iter().max_by_key(|(_, n)| **n).map(|(hash, _)| hash.clone());
        for cell in cells {
            let Some(m) = cell.manifest.clone() else {
                self.notes.push(format!(
                    "left out: {} has no manifest beside it, so its place is unknown",
                    cell.path.display()
                ));
                continue;
            };
            if pool.as_ref() != Some(&m.pool.hash) {
                self.notes.push(format!(
                    "left out: {} ({}) was run on another pool ({}, hash {}) than most cells here",
                    cell.path.display(),
                    cell.label(),
                    m.pool.file,
                    m.pool.hash
                ));
                continue;
            }
            let at = |g: &Group| {
                g.objective.full == m.objective && g.strategy == m.strategy && g.budget == m.budget
            };
            let index = self.groups.iter().position(at).unwrap_or_else(|| {
                self.groups.push(Group {
                    objective: Objective::parse(&m.objective),
                    strategy: m.strategy.clone(),
                    budget: m.budget,
                    cells: BTreeMap::new(),
                });
                self.groups.len() - 1
            });
            if let Some(before) = self.groups[index].cells.get(&m.seed) {
                self.notes.push(format!(
                    "left out: {} says it is {}, as {} does; remove one of them",
                    cell.path.display(),
                    cell.label(),
                    before.path.display()
                ));
                continue;
            }
            self.notes.extend(cell.notes.iter().cloned());
            self.groups[index].cells.insert(m.seed, cell);
        }
        if self.groups.is_empty() {
            let reason = if self.notes.is_empty() {
                String::new()
            } else {
                format!(" ({})", self.notes.join("; "))
            };
            return Err(ReportError::Empty { path: folder.into(), reason });
        }
        self.groups.sort_by_key(|g| (g.budget, g.objective.rank(), strategy_rank(&g.strategy)));
        Ok(())
    }

    fn name_missing(&mut self) {
        let mut missing = Vec::new();
        // What the plan promised.
        let planned = self.plan.as_ref().map(|plan| plan.cells.clone()).unwrap_or_default();
        for PlannedCell { objective, strategy, budget, seed, .. } in &planned {
            let there = self
                .group(objective, strategy, *budget)
                .is_some_and(|group| seed.is_none_or(|seed| group.cells.contains_key(&seed)));
            if !there {
                let seed = seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
                missing.push(format!(
                    "{objective} under {strategy} at N = {budget}{seed}: planned, never run"
                ));
            }
        }
        // Holes in the tables, where the plan does not say what was meant to be there.
        if planned.is_empty() {
            for budget in self.budgets() {
                for objective in self.objectives() {
                    let (there, holes): (Vec<String>, Vec<String>) = self
                        .strategies()
                        .into_iter()
                        .partition(|s| self.group(&objective.full, s, budget).is_some());
                    if !there.is_empty() && !holes.is_empty() {
                        missing.push(format!(
                            "{} at N = {budget}: not in this folder under {}",
                            objective.full,
                            holes.join(", ")
                        ));
                    }
                }
            }
        }
        for group in &self.groups {
            if group.objective.full != CONTROL && self.control(group).is_none() {
                let text = format!(
                    "{CONTROL} under {} at N = {}: not in this folder, so no gain can be given \
                     there",
                    group.strategy, group.budget
                );
                if !missing.contains(&text) {
                    missing.push(text);
                }
            }
            if let Some(control) = self.control(group)
                && !group.cells.keys().eq(control.cells.keys())
            {
                let list =
                    |g: &Group| g.cells.keys().map(u64::to_string).collect::<Vec<_>>().join(", ");
                self.notes.push(format!(
                    "{}: seeds {} against seeds {} of {CONTROL}; compared on the seeds both have",
                    group.label(),
                    list(group),
                    list(control)
                ));
            }
            for (seed, cell) in &group.cells {
                let tally = cell.tally();
                let absent = cell.missing().unwrap_or(0);
                if absent > 0 {
                    self.notes.push(format!(
                        "{}, seed {seed}: {} of {} theorems completed ({} errors, {} never run)",
                        group.label(),
                        tally.completed,
                        group.pool(),
                        tally.errors,
                        absent.saturating_sub(tally.errors)
                    ));
                }
                if tally.capped > 0 {
                    self.notes.push(format!(
                        "{}, seed {seed}: {} theorems cut off by a wall-clock cap count as \
                         unproved",
                        group.label(),
                        tally.capped
                    ));
                }
            }
        }
        self.missing = missing;
    }

    pub(crate) fn group(&self, objective: &str, strategy: &str, budget: u64) -> Option<&Group> {
        self.groups
            .iter()
            .find(|g| g.objective.full == objective && g.strategy == strategy && g.budget == budget)
    }

    /// The best fit among groups under a strategy at a budget: trained for that very budget, else
    /// for none in particular.
    fn pick(
        &self,
        strategy: &str,
        budget: u64,
        test: impl Fn(&Objective) -> bool,
    ) -> Option<&Group> {
        let fits = self
            .groups
            .iter()
            .filter(|g| g.strategy == strategy && g.budget == budget && test(&g.objective));
        fits.min_by_key(|g| (g.objective.trained != Some(budget), g.objective.trained.is_some()))
    }

    /// The search-aware objective that models the deployed strategy: its own before the one that
    /// shares its recurrence.
    pub(crate) fn matched(&self, strategy: &str, budget: u64) -> Option<&Group> {
        self.pick(strategy, budget, |o| o.is_search_aware() && o.base == strategy)
            .or_else(|| self.pick(strategy, budget, |o| o.is_search_aware() && o.matches(strategy)))
    }

    /// The same objective without its prior.
    pub(crate) fn without_prior(&self, group: &Group) -> Option<&Group> {
        self.pick(&group.strategy, group.budget, |o| {
            !o.has_prior() && o.base == group.objective.base
        })
    }

    /// The control under the same strategy and budget.
    pub(crate) fn control(&self, group: &Group) -> Option<&Group> {
        self.group(CONTROL, &group.strategy, group.budget)
    }

    pub(crate) fn budgets(&self) -> Vec<u64> {
        let mut budgets: Vec<u64> = self.groups.iter().map(|g| g.budget).collect();
        budgets.sort_unstable();
        budgets.dedup();
        budgets
    }

    pub(crate) fn strategies(&self) -> Vec<String> {
        let mut names: Vec<String> = self.groups.iter().map(|g| g.strategy.clone()).collect();
        names.sort_by_key(|s| strategy_rank(s));
        names.dedup();
        names
    }

    pub(crate) fn objectives(&self) -> Vec<Objective> {
        let mut objectives: Vec<Objective> =
            self.groups.iter().map(|g| g.objective.clone()).collect();
        objectives.sort_by_key(Objective::rank);
        objectives.dedup();
        objectives
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = (&Group, u64, &Cell)> {
        self.groups.iter().flat_map(|g| g.cells.iter().map(move |(seed, cell)| (g, *seed, cell)))
    }
}

/// Whether a file is `NAME.KIND.jsonl` beside a log `NAME.jsonl`: trees, times, whatever a cell
/// keeps besides its results.
fn is_sidecar(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let inner = name.strip_suffix(".jsonl").unwrap_or(&name);
    inner
        .rsplit_once('.')
        .is_some_and(|(cell, _)| path.with_file_name(format!("{cell}.jsonl")).is_file())
}

/// A JSON file, if it is there.
fn json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ReportError> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes =
        std::fs::read(path).map_err(|source| ReportError::Read { path: path.into(), source })?;
    serde_json::from_slice(&bytes).map(Some).map_err(|e| ReportError::Content {
        path: path.into(),
        reason: format!("not what a study writes there: {e}"),
    })
}

/// The files of a folder with an ending, by name.
fn listing(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, ReportError> {
    let fail = |source| ReportError::Read { path: folder.into(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_file() && path.to_string_lossy().ends_with(ending) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
