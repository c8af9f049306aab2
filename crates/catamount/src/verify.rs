//! `catamount verify`: every proof in a folder replayed by the prover, every hash compared.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use catamount_base::{Checksums, Progress};
use catamount_data::{Elsewhere, reopen};
use catamount_evaluate::log::Outcome;
use catamount_evaluate::{Log, Theorems, is_sidecar};
use catamount_search::{Checked, Environment, Setup};
use catamount_traces::{Theorem, read_any};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::json;

use crate::{output, stop};

#[derive(clap::Args)]
pub struct Arguments {
    /// A study's folder, or a folder of cells.
    folder: PathBuf,
    /// Where the Metamath database is now, if it is not where the logs say.
    #[arg(long)]
    database: Option<PathBuf>,
    /// Where the Lake project is now, if it is not where the logs say.
    #[arg(long)]
    project: Option<PathBuf>,
    /// Where the files of Lean's theorems are now, if they are not where the logs say.
    #[arg(long)]
    root: Option<PathBuf>,
    /// Look at the hashes and at the logs only, without the prover.
    #[arg(long)]
    hashes_only: bool,
    /// Print the table as JSON, for programs.
    #[arg(long)]
    json: bool,
}

/// What a stamp of a study's step says of the files that it stands for.
#[derive(Deserialize)]
struct Stamp {
    #[serde(default)]
    done: bool,
    #[serde(default)]
    outputs: Checksums,
}

/// What was looked at, and what is wrong with it.
#[derive(Default)]
struct Verdict {
    rows: Vec<Row>,
    failures: Vec<String>,
}

struct Row {
    what: String,
    checked: usize,
    failed: usize,
}

impl Verdict {
    fn add(&mut self, what: impl Into<String>, checked: usize, failures: Vec<String>) {
        self.rows.push(Row { what: what.into(), checked, failed: failures.len() });
        self.failures.extend(failures);
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = &arguments.folder;
    if !folder.is_dir() {
        bail!("{} is not a folder", folder.display());
    }
    let mut verdict = Verdict::default();
    let mut logs = Vec::new();
    walk(folder, &mut verdict, &mut logs)?;
    if logs.is_empty() && verdict.rows.is_empty() {
        bail!("{} holds neither cells nor a study's stamps", folder.display());
    }
    let mut provers = Provers {
        wanted: !arguments.hashes_only,
        elsewhere: Elsewhere {
            database: arguments.database.clone(),
            project: arguments.project.clone(),
            root: arguments.root.clone(),
        },
        open: Vec::new(),
    };
    let stop = stop::on_interrupt();
    for path in &logs {
        if stop.load(std::sync::atomic::Ordering::Relaxed) {
            bail!("interrupted: what is not in the table was not looked at");
        }
        cell(folder, path, &mut provers, &mut verdict);
    }
    match arguments.json {
        true => println!("{}", described(&verdict)),
        false => show(&verdict),
    }
    if verdict.failures.is_empty() {
        return Ok(());
    }
    bail!("{} things in {} are not what they should be", verdict.failures.len(), folder.display())
}

/// Compares the hashes of a study, of the studies below it (one for each seed), and finds the logs.
/// What was moved to `stale/` is nobody's result.
fn walk(folder: &Path, verdict: &mut Verdict, logs: &mut Vec<PathBuf>) -> Result<()> {
    if folder.join("data").join(catamount_traces::MANIFEST).exists()
        || folder.join("steps").exists()
    {
        hashes(folder, verdict)?;
    }
    // A log has a manifest beside it; traces have not.
    let is_log = |path: &PathBuf| {
        !is_sidecar(path) && catamount_evaluate::sibling(path, "manifest.json").exists()
    };
    logs.extend(listing(folder, ".jsonl")?.into_iter().filter(is_log));
    let mut below = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry.with_context(|| folder.display().to_string())?;
        if entry.file_type()?.is_dir() && entry.file_name() != "stale" {
            below.push(entry.path());
        }
    }
    below.sort();
    below.iter().try_for_each(|folder| walk(folder, verdict, logs))
}

/// Every file that a stamp or the data's manifest has a hash of.
fn hashes(folder: &Path, verdict: &mut Verdict) -> Result<()> {
    let data = folder.join("data");
    if data.join(catamount_traces::MANIFEST).exists() {
        let manifest = catamount_traces::Manifest::read(&data)?;
        let failures = manifest.verify(&data).err().map(|error| error.to_string());
        verdict.add("data", manifest.files.len(), failures.into_iter().collect());
    }
    for path in listing(&folder.join("steps"), ".json")? {
        let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let stamp: Stamp = match serde_json::from_slice(&text) {
            Ok(stamp) => stamp,
            Err(error) => {
                let failure = format!("{}: not a stamp ({error})", path.display());
                verdict.add(path.display().to_string(), 1, vec![failure]);
                continue;
            }
        };
        if stamp.done {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let damage = stamp.outputs.verify(folder, true);
            let failures = damage.iter().map(ToString::to_string).collect();
            verdict.add(format!("files of {name}"), stamp.outputs.0.len(), failures);
        }
    }
    Ok(())
}

/// A prover, or why it could not be opened.
type Opened = Result<Arc<dyn Environment>, String>;

/// The provers that logs were made with, each opened once.
struct Provers {
    wanted: bool,
    elsewhere: Elsewhere,
    open: Vec<(Setup, Opened)>,
}

impl Provers {
    /// The prover of a log; none if nobody wants one, or why there is none.
    fn of(&mut self, path: &Path, log: &Log) -> Result<Option<Arc<dyn Environment>>, String> {
        if !self.wanted {
            return Ok(None);
        }
        let setup = log.manifest.as_ref().and_then(|manifest| manifest.setup.as_ref());
        let setup = setup.ok_or(
            "its manifest does not say how its prover was set up, so nothing can be replayed; \
             look at the hashes alone with --hashes-only",
        )?;
        let known = self.open.iter().find(|(known, _)| known == setup);
        let opened = match known {
            Some((_, opened)) => opened.clone(),
            None => {
                let near = path.parent().unwrap_or(Path::new("."));
                let opened =
                    reopen(setup, &self.elsewhere, near).map_err(|error| output::causes(&error));
                self.open.push((setup.clone(), opened.clone()));
                opened
            }
        };
        opened.map(Some)
    }
}

fn cell(folder: &Path, path: &Path, provers: &mut Provers, verdict: &mut Verdict) {
    let log = match Log::read(path) {
        Ok(log) => log,
        Err(error) => {
            return verdict.add(path.display().to_string(), 1, vec![error.to_string()]);
        }
    };
    let mut failures: Vec<String> = log.problems.iter().map(ToString::to_string).collect();
    let mut checked = log.records.len() + log.problems.len();
    let wrong = |reason: String| format!("{}: {reason}", path.display());
    match (theorems(folder, path, &log), provers.of(path, &log)) {
        (Ok(theorems), Ok(Some(environment))) => {
            let manifest = log.manifest.as_ref().map(|manifest| &manifest.identity.environment);
            let now = environment.identity();
            for (part, was, is) in manifest.map(|old| old.differences(&now)).unwrap_or_default() {
                failures.push(wrong(format!(
                    "searched with another {part} ({was}) than the prover has now ({is})"
                )));
            }
            let (proofs, refused) = replay(&log, &theorems, environment.as_ref());
            checked += proofs;
            failures.extend(refused.into_iter().map(wrong));
        }
        (Ok(_), Ok(None)) => {}
        (theorems, prover) => {
            let reasons = theorems.err().into_iter().chain(prover.err());
            failures.extend(reasons.map(wrong));
            checked += 1;
        }
    }
    verdict.add(log.label(), checked, failures);
}

/// Replays the proofs of a log: how many there are, and what is wrong with those that are none.
fn replay(
    log: &Log,
    theorems: &HashMap<String, Theorem>,
    environment: &dyn Environment,
) -> (usize, Vec<String>) {
    let proofs: Vec<_> =
        log.records.values().filter(|record| record.outcome == Outcome::Proved).collect();
    let progress = Progress::new(proofs.len() as u64, "proofs").named(&log.name);
    let judge = |record: &&catamount_evaluate::log::Record| {
        let wrong = |reason: String| Some(format!("{}: {reason}", record.theorem));
        let Some(theorem) = theorems.get(&record.theorem) else {
            return wrong("is not in its pool, so it cannot be replayed".into());
        };
        let verdict = environment.check(theorem, &record.tactics);
        progress.advance(1);
        match verdict {
            Ok(Checked::Proved { .. }) => None,
            Ok(Checked::Refused { reason }) => wrong(format!("no proof: {reason}")),
            Err(fault) => wrong(format!("the prover failed: {fault}")),
        }
    };
    let refused = proofs.par_iter().filter_map(judge).collect();
    progress.finish();
    (proofs.len(), refused)
}

/// The theorems of a cell, from its pool's file, which must still hold what was searched.
fn theorems(folder: &Path, path: &Path, log: &Log) -> Result<HashMap<String, Theorem>, String> {
    let manifest = log.manifest.as_ref().ok_or("there is no manifest")?;
    // A study names its pool by the path in its folder, which is above the log; a pool that is gone
    // from where it was may have been moved along with the logs.
    let given = Path::new(&manifest.pool.file);
    let above = path.ancestors().skip(1).take_while(|above| above.starts_with(folder));
    let file = above
        .map(|above| above.join(given))
        .chain([given.to_path_buf()])
        .find(|path| path.is_file())
        .ok_or_else(|| format!("the pool's file {} is gone", given.display()))?;
    let traces = read_any(&file).map_err(|error| error.to_string())?.traces;
    let by_name: BTreeMap<&str, _> =
        traces.iter().map(|trace| (trace.theorem.name.as_str(), trace)).collect();
    let mut pool = Vec::new();
    for name in &manifest.pool.names {
        let trace = by_name.get(name.as_str());
        pool.push((*trace.ok_or_else(|| format!("{} has no {name}", file.display()))?).clone());
    }
    let selected = Theorems::select(pool, &manifest.pool.file, None, None)
        .ok_or_else(|| "the pool is empty".to_string())?;
    if selected.content != manifest.identity.pool {
        return Err(format!("{} is not what was searched: its theorems differ", file.display()));
    }
    let named = |job: catamount_evaluate::driver::Job| (job.theorem.name.clone(), job.theorem);
    Ok(selected.jobs.into_iter().map(named).collect())
}

/// The verdict, for programs.
fn described(verdict: &Verdict) -> serde_json::Value {
    let row = |row: &Row| json!({ "what": row.what, "checked": row.checked, "failed": row.failed });
    json!({
        "rows": verdict.rows.iter().map(row).collect::<Vec<_>>(),
        "failures": verdict.failures,
    })
}

fn show(verdict: &Verdict) {
    for failure in &verdict.failures {
        eprintln!("{failure}");
    }
    let width = verdict.rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0).max(4);
    println!("{:<width$}  {:>8}  {:>6}", "what", "checked", "failed");
    for row in &verdict.rows {
        println!("{:<width$}  {:>8}  {:>6}", row.what, row.checked, row.failed);
    }
    let sum = |of: fn(&Row) -> usize| verdict.rows.iter().map(of).sum::<usize>();
    println!("{:<width$}  {:>8}  {:>6}", "all", sum(|row| row.checked), sum(|row| row.failed));
}

/// The files of a folder with an ending, by name; none if there is no such folder.
fn listing(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        if path.is_file() && path.to_string_lossy().ends_with(ending) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
