//! What stops an experiment.

use std::path::{Path, PathBuf};

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// An experiment that cannot go on, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The experiment's file is wrong.
    #[error("{0}")]
    Config(String),
    /// The file system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// A step failed.
    #[error("step {step}: {reason}")]
    Step {
        /// The step's name.
        step: String,
        /// Why.
        reason: String,
    },
    /// The user asked to stop; running the same command again goes on.
    #[error("interrupted; run the same command again to go on")]
    Interrupted,
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Io { path, source }
    }

    pub(crate) fn step(step: &str) -> impl Fn(String) -> Error {
        let step = step.to_string();
        move |reason| Error::Step { step: step.clone(), reason }
    }
}
