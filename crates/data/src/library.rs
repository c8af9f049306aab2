//! What theorems are stated in, and the prover that searches them there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catamount_lean::{Corpus, Host, Lean, Options, Recipe, workers_here, write_bundled_library};
use catamount_metamath::{Database, Metamath};
use catamount_search::{Environment, Identity};

use crate::error::{Error, Result};

/// Where Debian's package `metamath-databases` puts its files.
const DEBIAN: &str = "/usr/share/metamath/databases";

/// A prover's library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Library {
    /// A Metamath database: a file, or the name of one of Debian's.
    Metamath {
        /// Which.
        database: PathBuf,
    },
    /// A Lake project, searched with its own toolchain.
    LeanProject {
        /// Its folder.
        project: PathBuf,
    },
    /// The Lean library that comes with the program, searched without a toolchain.
    LeanBundled {
        /// Where its files are written.
        folder: PathBuf,
    },
    /// Libraries of somebody else's, compiled and searched without a toolchain.
    LeanCorpora {
        /// Their recipes, by name or by path.
        recipes: Vec<String>,
        /// Where their checkouts are, and those of what they depend on.
        checkouts: PathBuf,
    },
}

/// What Lean may spend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeanLimits {
    /// Lean's own limit on a tactic.
    pub heartbeats: u64,
    /// Wall-clock limit on a tactic.
    pub tactic: Duration,
    /// Wall-clock limit on the check of a proof.
    pub check: Duration,
}

impl Default for LeanLimits {
    fn default() -> Self {
        let Options { heartbeats, request_limit, check_limit, .. } = Options::default();
        LeanLimits { heartbeats, tactic: request_limit, check: check_limit }
    }
}

impl Library {
    /// Starts the prover on this library: Lean within limits, with so many workers, or with as many
    /// as this machine has room for.
    pub fn open(
        &self,
        workers: Option<usize>,
        limits: &LeanLimits,
    ) -> Result<Arc<dyn Environment>> {
        if let Library::Metamath { database } = self {
            return Ok(Arc::new(Metamath::new(Database::open(database_path(database)?)?)));
        }
        Ok(Arc::new(Lean::new(Options {
            workers: workers.unwrap_or_else(workers_here),
            heartbeats: limits.heartbeats,
            request_limit: limits.tactic,
            check_limit: limits.check,
            ..self.lean()?
        })?))
    }

    /// What the prover on this library is by content, as [`Environment::identity`] says it, without
    /// starting it or writing anything.
    pub fn identity(&self) -> Result<Identity> {
        Ok(match self {
            Library::Metamath { database } => {
                Metamath::identity_of(&Database::content_of(database_path(database)?)?, false)
            }
            Library::LeanBundled { .. } => Options::default().identity_of_bundled()?,
            Library::LeanProject { .. } | Library::LeanCorpora { .. } => self.lean()?.identity()?,
        })
    }

    /// How Lean is set up for this library; Metamath needs none of it.
    pub(crate) fn lean(&self) -> Result<Options> {
        let mut options = Options::default();
        match self {
            Library::Metamath { .. } => {}
            Library::LeanProject { project } => {
                options.host = Host::Native { project: project.clone() };
                options.root = Some(project.clone());
            }
            Library::LeanBundled { folder } => {
                write_bundled_library(folder).map_err(Error::io(folder))?;
                options.root = Some(folder.clone());
            }
            Library::LeanCorpora { recipes, checkouts } => {
                options = find_corpora(recipes, checkouts)?.searched(options);
            }
        }
        Ok(options)
    }
}

/// A corpus whose checkouts are at the commits that its recipes name.
pub fn find_corpus(recipe: &str, checkouts: &Path) -> Result<Corpus> {
    Ok(Recipe::open(recipe)?.find(checkouts)?)
}

/// Several of them as one.
pub fn find_corpora(recipes: &[String], checkouts: &Path) -> Result<Corpus> {
    let found = recipes.iter().map(|recipe| find_corpus(recipe, checkouts));
    let found: Vec<Corpus> = found.collect::<Result<_>>()?;
    Corpus::together(found).ok_or_else(|| Error::Setup { reason: "no corpus is named".into() })
}

/// Where a Metamath database is: a path, or the name of one of Debian's.
pub fn database_path(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        return Ok(path.to_path_buf());
    }
    let installed = Path::new(DEBIAN).join(path);
    if path.components().count() == 1 && installed.exists() {
        return Ok(installed);
    }
    Err(Error::NoDatabase { path: path.to_path_buf(), folder: DEBIAN })
}
