//! A source, a split and a seed: what a data folder is a function of.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use catamount_traces::{Manifest, Origin, Skipped, Split, Steps, Trace, text_key};

use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::lean::{Tracing, trace_lean};
use crate::library::Library;
use crate::metamath::{self, Extracting};
use crate::source::{Source, load};

/// Told of how much is done, and of how much in all.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// How a data folder is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Making {
    /// Where traces come from.
    pub source: Source,
    /// The repository behind the source, where the user knows it.
    pub origin: Option<Origin>,
    /// Lengths of the traces that are written, of a library's own proofs.
    pub steps: Steps,
    /// Shares of train, valid and test, where the source has no parts of its own.
    pub split: Split,
    /// Seed of the split.
    pub seed: u64,
}

/// What was made, and what became of the rest.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Traces to train on, to choose settings on and to report results on.
    pub counts: [usize; 3],
    /// The folder.
    pub folder: PathBuf,
    /// Theorems of the source without a usable trace.
    pub skipped: Vec<Skipped>,
    /// Of a Metamath database.
    pub extracting: Option<Extracting>,
    /// Of a Lean library.
    pub tracing: Option<Tracing>,
}

impl Summary {
    pub(crate) fn new(folder: &Path) -> Self {
        Summary {
            counts: [0; 3],
            folder: folder.to_path_buf(),
            skipped: Vec::new(),
            extracting: None,
            tracing: None,
        }
    }
}

impl Making {
    /// Makes the folder.
    pub fn write(&self, out: &Path, progress: Progress<'_>) -> Result<Summary> {
        match &self.source {
            Source::Metamath { database, first } => {
                metamath::write(self, database, *first, out, progress)
            }
            Source::LeanBundled { folder } => {
                let options = Library::LeanBundled { folder: folder.clone() }.lean()?;
                let (traces, tracing) = trace_lean(&options, folder, progress)?;
                let manifest = self.manifest("bundled library");
                let counts = self.split(traces, out, manifest)?;
                Ok(Summary { counts, tracing: Some(tracing), ..Summary::new(out) })
            }
            Source::Traces(file) => {
                let loaded = load(file)?;
                let mut manifest = self.manifest(&file.display().to_string());
                manifest.origins.extend(loaded.origins);
                let counts = self.split(loaded.traces, out, manifest)?;
                Ok(Summary { counts, skipped: loaded.skipped, ..Summary::new(out) })
            }
            Source::Parts { train, valid, test } => self.copy([train, valid, test], out),
        }
    }

    /// The traces to train on, where they can be had without a prover: from files, not from a
    /// library's proofs.
    pub fn training(&self) -> Result<Option<Vec<Trace>>> {
        Ok(match &self.source {
            Source::Metamath { .. } | Source::LeanBundled { .. } => None,
            Source::Traces(file) => {
                Some(self.split.apply(load(file)?.traces, self.seed, text_key)?.train)
            }
            Source::Parts { train, .. } => Some(load(train)?.traces),
        })
    }

    fn manifest(&self, source: &str) -> Manifest {
        let mut manifest = Manifest::new(source, Some(self.seed));
        manifest.origins.extend(self.origin.clone());
        manifest.settings.insert("split".into(), self.split.to_string().into());
        manifest
    }

    fn split(&self, traces: Vec<Trace>, out: &Path, manifest: Manifest) -> Result<[usize; 3]> {
        let parts = self.split.apply(traces, self.seed, text_key)?;
        let mut folder = Folder::create(out)?;
        for (part, traces) in [parts.train, parts.valid, parts.test].iter().enumerate() {
            for trace in traces {
                folder.write(part, trace)?;
            }
        }
        folder.finish(&HashSet::new(), manifest)
    }

    /// Takes a benchmark's parts as they are.
    fn copy(&self, files: [&PathBuf; 3], out: &Path) -> Result<Summary> {
        let sources: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let mut manifest = Manifest::new(sources.join(", "), None);
        manifest.origins.extend(self.origin.clone());
        let mut folder = Folder::create(out)?;
        let (mut seen, mut skipped) = (HashMap::new(), Vec::new());
        for (part, file) in files.into_iter().enumerate() {
            let loaded = load(file)?;
            for trace in &loaded.traces {
                let name = &trace.theorem.name;
                if let Some(first) = seen.insert(name.clone(), part) {
                    return Err(Error::Shared {
                        name: name.clone(),
                        first: files[first].clone(),
                        second: file.clone(),
                    });
                }
                folder.write(part, trace)?;
            }
            manifest.origins.extend(loaded.origins);
            skipped.extend(loaded.skipped);
        }
        let counts = folder.finish(&HashSet::new(), manifest)?;
        Ok(Summary { counts, skipped, ..Summary::new(out) })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tracing) = &self.tracing {
            write!(f, "{tracing}")?;
        }
        if let Some(extracting) = &self.extracting {
            write!(f, "{extracting}")?;
        }
        if let Some(first) = self.skipped.first() {
            writeln!(
                f,
                "left out {} without a usable trace; the first is {}: {}",
                catamount_base::counted(self.skipped.len(), "theorem"),
                first.name,
                first.reason
            )?;
        }
        let [train, valid, test] = self.counts;
        write!(f, "train {train}, valid {valid}, test {test} written to {}", self.folder.display())
    }
}
