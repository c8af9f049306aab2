//! Opens the prover that a log was made with, from what its manifest says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catamount_lean::{Host, Lean, Options};
use catamount_metamath::{Database, Metamath};
use catamount_search::{Environment, Setup};
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::library::database_path;

/// Where a library is now, if it is not where it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Metamath's database.
    pub database: Option<PathBuf>,
    /// Lean's Lake project.
    pub project: Option<PathBuf>,
    /// The folder that Lean's theorems' files are relative to.
    pub root: Option<PathBuf>,
}

/// Opens a prover as it was set up. What is no longer where it was is looked for by its name in
/// `near`, the folder that the log is in. Whether it is still the same is for the caller to
/// compare, by content.
pub fn reopen(setup: &Setup, elsewhere: &Elsewhere, near: &Path) -> Result<Arc<dyn Environment>> {
    match setup.prover.as_str() {
        catamount_metamath::PROVER => {
            let settings: catamount_metamath::Settings = settings(setup)?;
            let recorded = found(settings.database, near);
            let path = match &elsewhere.database {
                Some(given) => database_path(given)?,
                None => database_path(&recorded).map_err(|_| gone(&recorded, "--database"))?,
            };
            let database = Database::open(path)?.allowing_unproved(settings.allow_unproved);
            Ok(Arc::new(Metamath::new(database)))
        }
        catamount_lean::PROVER => {
            let mut options: Options = settings(setup)?;
            if let Some(project) = &elsewhere.project {
                options.host = Host::Native { project: project.clone() };
                options.root = Some(project.clone());
            }
            options.root = elsewhere.root.clone().or(options.root.map(|root| found(root, near)));
            if let Host::Native { project } = &options.host
                && !project.is_dir()
            {
                return Err(gone(project, "--project"));
            }
            if let Some(root) = options.root.as_ref().filter(|root| !root.is_dir()) {
                return Err(gone(root, "--root"));
            }
            Ok(Arc::new(Lean::new(options)?))
        }
        other => Err(Error::Setup {
            reason: format!("there is no prover `{other}`; was this made by a newer version?"),
        }),
    }
}

fn settings<T: DeserializeOwned>(setup: &Setup) -> Result<T> {
    serde_json::from_value(setup.settings.clone()).map_err(|error| Error::Setup {
        reason: format!(
            "the settings of {} cannot be understood ({error}); was this made by another version?",
            setup.prover
        ),
    })
}

/// A path, or where its name is found: beside the log, or above it.
fn found(recorded: PathBuf, near: &Path) -> PathBuf {
    if recorded.exists() {
        return recorded;
    }
    let Some(name) = recorded.file_name() else { return recorded };
    let beside = near.ancestors().map(|folder| folder.join(name)).find(|path| path.exists());
    beside.unwrap_or_else(|| PathBuf::from(name))
}

fn gone(path: &Path, flag: &str) -> Error {
    Error::Setup {
        reason: format!("{} is not there any more; say where it is with {flag}", path.display()),
    }
}
