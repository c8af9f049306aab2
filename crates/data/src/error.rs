//! What keeps data from being made.

use std::io;
use std::path::{Path, PathBuf};

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no data, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder cannot be read or written.
    #[error("{}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such database.
    #[error(
        "there is no database {} here or in {folder}; give its path, or install Debian's package \
         metamath-databases (set.mm, iset.mm, ...)", path.display()
    )]
    NoDatabase {
        /// As it was asked for.
        path: PathBuf,
        /// Where else it was looked for.
        folder: &'static str,
    },
    /// A theorem is both trained on and held out.
    #[error(
        "{} and {} both hold the theorem {name}; parts must share none, or results on it mean \
         nothing", first.display(), second.display()
    )]
    Shared {
        /// The theorem.
        name: String,
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// No trace is left to be written.
    #[error(
        "there is no trace to write to {}: the source has none of these lengths, or no part of the \
         split has a share of them", folder.display()
    )]
    Nothing {
        /// The folder.
        folder: PathBuf,
    },
    /// A prover that was recorded cannot be opened again.
    #[error("{reason}")]
    Setup {
        /// Why, and what to do.
        reason: String,
    },
    /// Another process writes the folder.
    #[error(transparent)]
    Locked(#[from] catamount_base::LockError),
    /// Traces cannot be read, split or written.
    #[error(transparent)]
    Traces(#[from] catamount_traces::Error),
    /// The database cannot be used.
    #[error(transparent)]
    Metamath(#[from] catamount_metamath::Error),
    /// Lean cannot be used.
    #[error(transparent)]
    Lean(#[from] catamount_lean::Error),
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Io { path, source }
    }
}
