//! Where traces come from.

use std::path::{Path, PathBuf};

use catamount_traces::{Loaded, Manifest, read_any, shards};

use crate::error::{Error, Result};
use crate::library::database_path;

/// Where the traces of a study come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The proofs of a Metamath database.
    Metamath {
        /// A file, or the name of one of Debian's.
        database: PathBuf,
        /// Only its first so many theorems.
        first: Option<usize>,
    },
    /// The Lean library that comes with the program, traced.
    LeanBundled {
        /// Where its files are written.
        folder: PathBuf,
    },
    /// One file of traces in any known format, to be split.
    Traces(PathBuf),
    /// The official parts of a benchmark, each a file in any known format.
    Parts {
        /// To train on.
        train: PathBuf,
        /// To choose settings on.
        valid: PathBuf,
        /// To report results on.
        test: PathBuf,
    },
}

impl Source {
    /// A hash of what the source holds now: another database, or other traces under the same name,
    /// are another study.
    pub fn hash(&self) -> Result<String> {
        match self {
            Source::Metamath { database, .. } => hash(&[&database_path(database)?]),
            Source::LeanBundled { .. } => {
                Ok(format!("bundled library {}", env!("CARGO_PKG_VERSION")))
            }
            Source::Traces(file) => hash(&[file]),
            Source::Parts { train, valid, test } => hash(&[train, valid, test]),
        }
    }

    /// Compares files of traces with what the manifests beside them say of them.
    pub fn verify(&self) -> Result<()> {
        match self {
            Source::Metamath { .. } | Source::LeanBundled { .. } => {}
            Source::Traces(_) | Source::Parts { .. } => {
                for file in self.files() {
                    Manifest::verify_file(file)?;
                }
            }
        }
        Ok(())
    }

    /// The files that must be there before the source can be used.
    pub fn files(&self) -> Vec<&Path> {
        match self {
            Source::Metamath { database, .. } => vec![database],
            Source::LeanBundled { .. } => Vec::new(),
            Source::Traces(file) => vec![file],
            Source::Parts { train, valid, test } => vec![train, valid, test],
        }
    }
}

fn hash(files: &[&PathBuf]) -> Result<String> {
    let mut all = blake3::Hasher::new();
    for file in files {
        for shard in shards(file)? {
            let mut one = blake3::Hasher::new();
            one.update_mmap_rayon(&shard).map_err(Error::io(&shard))?;
            all.update(one.finalize().as_bytes());
        }
    }
    Ok(all.finalize().to_hex().to_string())
}

/// Reads a file of traces in whichever format it is.
pub fn load(path: &Path) -> Result<Loaded> {
    Ok(read_any(path)?)
}
