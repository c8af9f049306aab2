//! The cells of a folder: their records looked at, their proofs replayed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use catamount_base::{Progress, causes};
use catamount_data::{Reopened, reopen};
use catamount_evaluate::driver::Job;
use catamount_evaluate::log::{Outcome, Record};
use catamount_evaluate::{Log, Theorems};
use catamount_search::{Checked, Setup};
use catamount_traces::{Theorem, read_any};
use rayon::prelude::*;

use super::{Verification, Verified};

/// A prover, or why it could not be opened.
type Opened = Result<Arc<Prover>, String>;

/// The axioms that a proof rests on, by theorem and tactics.
type Proofs = HashMap<(Theorem, Vec<String>), Vec<String>>;

/// A prover that logs were made with.
struct Prover {
    reopened: Reopened,
    /// What it let stand: cells of one study find most proofs more than once.
    proved: Mutex<Proofs>,
}

/// The provers that logs were made with, each opened once.
pub(super) struct Provers<'a> {
    how: &'a Verification<'a>,
    open: Vec<(Setup, Opened)>,
}

impl<'a> Provers<'a> {
    pub fn new(how: &'a Verification<'a>) -> Self {
        Provers { how, open: Vec::new() }
    }

    /// Those that were opened, in words.
    pub fn described(&self) -> Vec<String> {
        let opened = self.open.iter().filter_map(|(_, opened)| opened.as_ref().ok());
        opened.map(|prover| prover.reopened.environment.describe()).collect()
    }

    /// The prover of a log; none if nobody wants one, or why there is none.
    fn of(&mut self, log: &Log) -> Result<Option<Arc<Prover>>, String> {
        if !self.how.replay {
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
                let near = log.path.parent().unwrap_or(Path::new("."));
                let opened = reopen(setup, &self.how.elsewhere, &self.how.trust, near)
                    .map(|reopened| Arc::new(Prover { reopened, proved: Mutex::default() }))
                    .map_err(|error| causes(&error));
                self.open.push((setup.clone(), opened.clone()));
                opened
            }
        };
        opened.map(Some)
    }

    /// Looks at one cell of a folder.
    pub fn verify(&mut self, folder: &Path, path: &Path, verified: &mut Verified) {
        let log = match Log::read(path) {
            Ok(log) => log,
            Err(error) => return verified.fault(path.display().to_string(), error.to_string()),
        };
        let mut failures: Vec<String> = log.problems.iter().map(ToString::to_string).collect();
        let mut checked = log.records.len() + log.problems.len();
        let wrong = |reason: String| format!("{}: {reason}", path.display());
        let names = log.manifest.iter().flat_map(|manifest| &manifest.pool.names);
        let missing: Vec<&String> = names.filter(|name| log.solved(name).is_none()).collect();
        if let Some(first) = missing.first() {
            let count = missing.len();
            failures.push(wrong(format!("no result for {count} of its theorems, such as {first}")));
        }
        match (theorems(folder, path, &log), self.of(&log)) {
            (Ok(theorems), Ok(Some(prover))) => {
                let manifest = log.manifest.as_ref().map(|manifest| &manifest.identity.environment);
                let now = &prover.reopened.identity;
                for (part, was, is) in manifest.map(|old| old.differences(now)).unwrap_or_default()
                {
                    failures.push(wrong(format!(
                        "searched with another {part} ({was}) than the prover has now ({is})"
                    )));
                }
                let (proofs, refused) = self.replay(&log, &theorems, &prover);
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
        verified.add(log.label(), checked, failures);
    }

    /// Replays the proofs of a log: how many there are, and what is wrong with those that are none.
    fn replay(
        &self,
        log: &Log,
        theorems: &HashMap<String, Theorem>,
        prover: &Prover,
    ) -> (usize, Vec<String>) {
        let mut proofs: Vec<&Record> =
            log.records.values().filter(|record| record.outcome == Outcome::Proved).collect();
        // A prover that has a file loaded is done with its theorems one after another.
        let file = |record: &Record| theorems.get(&record.theorem).and_then(|t| t.file.as_deref());
        proofs.sort_by_key(|record| (file(record), record.theorem.as_str()));
        let progress = Progress::new(proofs.len() as u64, "proofs").named(&log.name);
        let judge = |record: &&Record| {
            // Whoever stopped gets no table.
            if self.how.stop.load(Ordering::Relaxed) {
                return None;
            }
            let reason = match theorems.get(&record.theorem) {
                Some(theorem) => prover.judge(theorem, record).err(),
                None => Some("is not in its pool, so it cannot be replayed".into()),
            };
            progress.advance(1);
            reason.map(|reason| format!("{}: {reason}", record.theorem))
        };
        let refused = proofs.par_iter().filter_map(judge).collect();
        progress.finish();
        (proofs.len(), refused)
    }
}

impl Prover {
    /// The axioms that a proof rests on, or why it is none.
    fn axioms(&self, theorem: &Theorem, tactics: &[String]) -> Result<Vec<String>, String> {
        let key = (theorem.clone(), tactics.to_vec());
        let proved = || self.proved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(axioms) = proved().get(&key) {
            return Ok(axioms.clone());
        }
        match self.reopened.environment.check(theorem, tactics) {
            Ok(Checked::Proved { axioms, .. }) => {
                proved().insert(key, axioms.clone());
                Ok(axioms)
            }
            Ok(Checked::Refused { reason }) => Err(format!("no proof: {reason}")),
            Err(fault) => Err(format!("the prover failed: {fault}")),
        }
    }

    /// Judges a proof, which must rest on what its record says.
    fn judge(&self, theorem: &Theorem, record: &Record) -> Result<(), String> {
        let axioms = self.axioms(theorem, &record.tactics)?;
        agree(&axioms, &record.axioms)
    }
}

/// Whether a proof rests on the axioms that its log says.
fn agree(found: &[String], said: &[String]) -> Result<(), String> {
    let set = |axioms: &[String]| axioms.iter().cloned().collect::<BTreeSet<_>>();
    let (found, said) = (set(found), set(said));
    if found == said {
        return Ok(());
    }
    let listed = |axioms: BTreeSet<String>| match axioms.is_empty() {
        true => "none".to_string(),
        false => axioms.into_iter().collect::<Vec<_>>().join(", "),
    };
    Err(format!("rests on the axioms {}, where its log says {}", listed(found), listed(said)))
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
    let named = |job: Job| (job.theorem.name.clone(), job.theorem);
    Ok(selected.jobs.into_iter().map(named).collect())
}
