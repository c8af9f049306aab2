//! The proofs of a Metamath database as a data folder.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;

use catamount_base::counted;
use catamount_metamath::{Database, Extracted, Extraction};
use catamount_traces::{Manifest, Steps, Theorem, Trace};

use crate::error::Result;
use crate::folder::Folder;
use crate::library::database_path;
use crate::making::{Making, Progress, Summary};

/// What extraction found, beyond what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracting {
    /// What became of the theorems.
    pub extracted: Extracted,
    /// Lengths of all traces.
    pub lengths: Vec<usize>,
    /// Traces of other lengths than asked for, which were not written.
    pub filtered: usize,
    /// The lengths asked for.
    pub steps: Steps,
}

/// Extracts a database's proofs into a folder.
pub(crate) fn write(
    making: &Making,
    database: &Path,
    first: Option<usize>,
    out: &Path,
    progress: Progress<'_>,
) -> Result<Summary> {
    let path = database_path(database)?;
    let database = Database::open(&path)?;
    let ids: HashMap<String, _> = database
        .theorems()
        .take(first.unwrap_or(usize::MAX))
        .map(|id| (database.assertion(id).label().to_string(), id))
        .collect();
    // Parts are decided from the statements alone, so that traces can be written as they are made.
    let stub = |id| Trace {
        theorem: Theorem { name: database.assertion(id).label().to_string(), ..Theorem::default() },
        steps: Vec::new(),
    };
    let stubs = database.theorems().take(ids.len()).map(stub).collect();
    let key = |trace: &Trace| database.key(ids[&trace.theorem.name]).to_string();
    let parts = making.split.apply(stubs, making.seed, key)?;
    let mut part_of: HashMap<String, usize> = HashMap::new();
    for (part, traces) in [parts.train, parts.valid, parts.test].into_iter().enumerate() {
        part_of.extend(traces.into_iter().map(|trace| (trace.theorem.name, part)));
    }

    let mut folder = Folder::create(out)?;
    let (mut lengths, mut filtered, mut failure) = (Vec::new(), 0, None);
    let extraction = Extraction { first, ..Extraction::default() };
    let extracted = database.extract(&extraction, |trace, done| {
        progress(done, ids.len());
        lengths.push(trace.steps.len());
        let Some(&part) = part_of.get(&trace.theorem.name) else { return };
        if !making.steps.contains(trace.steps.len()) {
            filtered += 1;
        } else if let Err(error) = folder.write(part, &trace) {
            failure.get_or_insert(error);
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let mut manifest = Manifest::new(path.display().to_string(), Some(making.seed));
    manifest.origins.extend(making.origin.clone());
    manifest.settings.insert("split".into(), making.split.to_string().into());
    manifest.settings.insert("steps".into(), making.steps.to_string().into());
    if let Some(first) = first {
        manifest.settings.insert("first".into(), first.into());
    }
    if !extracted.refused.is_empty() {
        manifest.settings.insert("refused".into(), extracted.refused.len().into());
    }
    let refused: HashSet<&str> = extracted.refused.iter().map(|(name, _)| name.as_str()).collect();
    let counts = folder.finish(&refused, manifest)?;
    let extracting = Extracting { extracted, lengths, filtered, steps: making.steps };
    Ok(Summary { counts, extracting: Some(extracting), ..Summary::new(out) })
}

/// Reasons shown of each kind; the rest is counted.
const SHOWN: usize = 20;

impl fmt::Display for Extracting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Extracted { theorems, traces, steps, trivial, remainder, refused } = &self.extracted;
        let count = |low: usize, high: usize| {
            self.lengths.iter().filter(|&&length| (low..=high).contains(&length)).count()
        };
        writeln!(
            f,
            "{}: {} with {} (1 / 2-5 / 6-10 / more: {} / {} / {} / {}), {trivial} trivial, {} \
             without a trace",
            counted(*theorems, "theorem"),
            counted(*traces, "trace"),
            counted(*steps, "step"),
            count(1, 1),
            count(2, 5),
            count(6, 10),
            count(11, usize::MAX),
            remainder.len(),
        )?;
        for (label, reason) in remainder.iter().take(SHOWN) {
            writeln!(f, "  no trace: {label}: {reason}")?;
        }
        if !refused.is_empty() {
            let refused = counted(refused.len(), "trace");
            writeln!(f, "skipped {refused} that metamath-rs refuses")?;
        }
        for (label, reason) in refused.iter().take(SHOWN) {
            writeln!(f, "  refused: {label}: {reason}")?;
        }
        if self.filtered > 0 {
            let filtered = counted(self.filtered, "trace");
            writeln!(f, "skipped {filtered} outside {} steps", self.steps)?;
        }
        Ok(())
    }
}
