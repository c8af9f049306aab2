//! The prover of a study: in which library, and how many workers Lean has.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catamount_data::Library;
use catamount_evaluate::Remembered;
use catamount_search::Environment as Prover;
use catamount_service::{Addresses, Remote};

use crate::error::Result;
use crate::experiment::{Environment, Experiment};

/// Lean workers of one of several processes, unless the file says otherwise.
const LEAN_WORKERS: usize = 2;

/// A prover that is open, and how many threads talk to it: what steps that are done side by side
/// share.
#[derive(Clone)]
pub struct OpenProver {
    pub(crate) environment: Arc<dyn Prover>,
    pub(crate) threads: usize,
}

impl Experiment {
    /// The library that the theorems live in; `folder` is the study's.
    pub fn library(&self, folder: &Path) -> Library {
        match &self.data.environment {
            Environment::Metamath { database, .. } => {
                Library::Metamath { database: database.clone() }
            }
            Environment::Lean { project: Some(project) } => {
                Library::LeanProject { project: project.clone() }
            }
            Environment::Lean { project: None } => Library::LeanBundled { folder: bundled(folder) },
            Environment::LeanCorpora { recipes, checkouts } => {
                Library::LeanCorpora { recipes: recipes.clone(), checkouts: checkouts.clone() }
            }
        }
    }

    /// Starts the prover, alone on this machine or as one of several processes; `folder` is the
    /// study's.
    pub fn prover(&self, folder: &Path, alone: bool) -> Result<Arc<dyn Prover>> {
        // Several take what they were said to need: nobody has the whole machine.
        let shared = (!alone).then(|| self.lean_workers());
        let workers = self.data.workers.or(shared);
        let prover = self.library(folder).open(workers, &self.data.limits)?;
        Ok(match self.data.environment {
            // Faster than a memory.
            Environment::Metamath { .. } => prover,
            Environment::Lean { .. } | Environment::LeanCorpora { .. } => {
                Arc::new(Remembered::new(prover))
            }
        })
    }

    /// Opens the prover for one of several who do this study's steps; or those that are elsewhere,
    /// which must be the one that this machine has.
    pub fn open_prover(&self, folder: &Path, elsewhere: Option<&Addresses>) -> Result<OpenProver> {
        let environment = self.prover(folder, false)?;
        let Some(addresses) = elsewhere else {
            return Ok(OpenProver { environment, threads: self.prover_threads() });
        };
        let environment = Remote::connect(addresses.clone(), Some(environment.identity()))?;
        // They only wait.
        let threads = self.evaluation.concurrency;
        let environment = Arc::new(Remembered::new(Arc::new(environment)));
        Ok(OpenProver { environment, threads })
    }

    /// Lean's workers in one of several processes.
    pub(crate) fn lean_workers(&self) -> usize {
        self.data.workers.unwrap_or(LEAN_WORKERS)
    }

    /// Threads that talk to the prover: as many as cores; with Lean, whose processes do the work,
    /// one for each search in flight keeps all of them busy.
    pub(crate) fn prover_threads(&self) -> usize {
        match self.data.environment {
            Environment::Metamath { .. } => {
                std::thread::available_parallelism().map_or(1, usize::from)
            }
            Environment::LeanCorpora { .. } | Environment::Lean { .. } => {
                self.evaluation.concurrency
            }
        }
    }
}

/// Where the bundled Lean library is written.
pub(crate) fn bundled(folder: &Path) -> PathBuf {
    folder.join("library")
}
