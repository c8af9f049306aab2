//! A run folder: its cells brought into groups, what was planned, and everything that is missing or
//! odd, by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use catamount_base::Content;
use catamount_evaluate::{Log, is_sidecar};
use serde::de::DeserializeOwned;

use crate::calibration::{CALIBRATIONS, Calibrated, UNFITTED, Unfitted};
use crate::group::Group;
use crate::names::{CONTROL, Objective, strategy_rank};
use crate::reading::Reading;
use crate::study::{PLAN, PlannedCell, SCORES, StudyPlan};
use crate::training::Training;
use crate::utilisation::{PROVERS, ProverUse};

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
    /// The folder could not be taken for writing.
    #[error(transparent)]
    Lock(#[from] catamount_base::LockError),
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

/// A run folder as read.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) dir: PathBuf,
    pub(crate) groups: Vec<Group>,
    pub(crate) training: Vec<Training>,
    pub(crate) plan: Option<StudyPlan>,
    pub(crate) calibrations: Vec<Calibrated>,
    pub(crate) readings: Vec<Reading>,
    /// Prover workers that had places of their own.
    pub(crate) provers: Vec<ProverUse>,
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
            plan: None,
            calibrations: Vec::new(),
            readings: Vec::new(),
            provers: json(&dir.join(PROVERS))?.unwrap_or_default(),
            missing: Vec::new(),
            notes: Vec::new(),
        };
        let seeds = seed_folders(dir)?;
        for folder in &seeds {
            let plan: Option<StudyPlan> = json(&folder.join(PLAN))?;
            match (&mut run.plan, plan) {
                (Some(whole), Some(plan)) => whole.cells.extend(plan.cells),
                (whole, plan) => *whole = whole.take().or(plan),
            }
            let found: Option<Vec<Calibrated>> = json(&folder.join(CALIBRATIONS))?;
            run.calibrations.extend(found.unwrap_or_default());
            let unfitted: Option<Vec<Unfitted>> = json(&folder.join(UNFITTED))?;
            run.notes.extend(unfitted.unwrap_or_default().iter().map(Unfitted::note));
        }
        run.read_cells(&seeds)?;
        // Curves and distributions are drawn for one model of each objective.
        let dir = seeds.first().map_or(dir, PathBuf::as_path);
        if seeds.len() > 1 {
            run.notes.push(format!(
                "training curves and probabilities are those of {}",
                dir.file_name().unwrap_or_default().to_string_lossy()
            ));
        }
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

    /// Reads the cells of every folder.
    fn read_cells(&mut self, folders: &[PathBuf]) -> Result<(), ReportError> {
        let mut cells = Vec::new();
        for folder in folders {
            let folder = folder.join("cells");
            if !folder.is_dir() {
                continue;
            }
            for path in listing(&folder, ".jsonl")? {
                if is_sidecar(&path) {
                    continue;
                }
                match Log::read(&path) {
                    Ok(cell) => cells.push(cell),
                    Err(e) => self.notes.push(format!("left out: {e}")),
                }
            }
        }
        // One report, one pool at every seed: the one most cells have. Cells of another are named,
        // not mixed in.
        let mut pools: BTreeMap<u64, BTreeMap<Content, usize>> = BTreeMap::new();
        for m in cells.iter().filter_map(|c| c.manifest.as_ref()) {
            let of_seed = pools.entry(m.seed()).or_default();
            *of_seed.entry(m.identity.pool.clone()).or_default() += 1;
        }
        let usual = |hashes: BTreeMap<Content, usize>| {
            hashes.into_iter().max_by_key(|(_, cells)| *cells).map(|(hash, _)| hash)
        };
        let pools: BTreeMap<u64, Option<Content>> =
            pools.into_iter().map(|(seed, hashes)| (seed, usual(hashes))).collect();
        for cell in cells {
            let Some(m) = cell.manifest.clone() else {
                self.notes.push(format!(
                    "left out: {} has no manifest beside it, so its place is unknown",
                    cell.path.display()
                ));
                continue;
            };
            if pools[&m.seed()].as_ref() != Some(&m.identity.pool) {
                self.notes.push(format!(
                    "left out: {} ({}) was run on another pool ({}, hash {}) than most cells here",
                    cell.path.display(),
                    cell.label(),
                    m.pool.file,
                    m.identity.pool.short()
                ));
                continue;
            }
            let at = |g: &Group| {
                g.objective.full == m.objective
                    && g.strategy == m.strategy().name()
                    && g.budget == m.budget()
            };
            let index = self.groups.iter().position(at).unwrap_or_else(|| {
                self.groups.push(Group {
                    objective: Objective::parse(&m.objective),
                    strategy: m.strategy().to_string(),
                    budget: m.budget(),
                    cells: BTreeMap::new(),
                });
                self.groups.len() - 1
            });
            if let Some(before) = self.groups[index].cells.get(&m.seed()) {
                self.notes.push(format!(
                    "left out: {} says it is {}, as {} does; remove one of them",
                    cell.path.display(),
                    cell.label(),
                    before.path.display()
                ));
                continue;
            }
            self.notes.extend(cell.notes.iter().cloned());
            self.groups[index].cells.insert(m.seed(), cell);
        }
        if self.groups.is_empty() {
            let reason = if self.notes.is_empty() {
                String::new()
            } else {
                format!(" ({})", self.notes.join("; "))
            };
            return Err(ReportError::Empty { path: self.dir.clone(), reason });
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
        let promised = |group: &&Group| {
            planned.iter().any(|cell| {
                cell.objective == group.objective.full
                    && cell.strategy == group.strategy
                    && cell.budget == group.budget
            })
        };
        let others: Vec<String> = self
            .groups
            .iter()
            .filter(|group| !planned.is_empty() && !promised(group))
            .map(|g| format!("{} under {} at N = {}", g.objective.full, g.strategy, g.budget))
            .collect();
        if !others.is_empty() {
            self.notes.push(format!(
                "counted in tables and corrections, though the experiment does not plan it: {}; \
                 what is moved out of cells/ is left out",
                others.join(", ")
            ));
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

    pub(crate) fn cells(&self) -> impl Iterator<Item = (&Group, u64, &Log)> {
        self.groups.iter().flat_map(|g| g.cells.iter().map(move |(seed, cell)| (g, *seed, cell)))
    }
}

/// The folders of a study of several seeds, `seed-42` and so on, by number; otherwise the folder
/// itself.
pub(crate) fn seed_folders(dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let fail = |source| ReportError::Read { path: dir.into(), source };
    let mut seeds = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let seed = path.file_name().and_then(|name| name.to_str()?.strip_prefix("seed-"));
        if let Some(seed) = seed.and_then(|seed| seed.parse::<u64>().ok())
            && path.join("cells").is_dir()
        {
            seeds.insert(seed, path);
        }
    }
    if seeds.is_empty() || dir.join("cells").is_dir() {
        return Ok(vec![dir.to_path_buf()]);
    }
    Ok(seeds.into_values().collect())
}

/// A JSON file, if it is there.
pub(crate) fn json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ReportError> {
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
pub(crate) fn listing(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, ReportError> {
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
