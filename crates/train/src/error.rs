//! What can go wrong while training, said so that the reader knows what to do.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A recipe that cannot be followed.
    #[error("recipe: {0}")]
    Recipe(String),
    /// A setting of a recipe that is out of range.
    #[error("recipe: `{key} = {value}` is out of range; it must be {wanted}")]
    Setting {
        /// The setting, such as `optimizer.lr`.
        key: String,
        /// Its value.
        value: String,
        /// What it may be.
        wanted: String,
    },
    /// Data that cannot be trained on.
    #[error("{0}")]
    Data(String),
    /// A file cannot be read or written.
    #[error("{}: {source}{}", path.display(), advice(source))]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A checkpoint that cannot be continued from.
    #[error("{}: {reason}", path.display())]
    Checkpoint {
        /// The checkpoint.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A checkpoint whose bytes are not those that were written.
    #[error("the checkpoint {} is damaged ({reason})", path.display())]
    Damaged {
        /// The checkpoint.
        path: PathBuf,
        /// Which file, and how.
        reason: String,
    },
    /// The model failed.
    #[error(transparent)]
    Model(#[from] catamount_model::Error),
    /// The objective cannot be computed.
    #[error(transparent)]
    Objective(#[from] catamount_objective::ObjectiveError),
    /// The traces cannot be read or written.
    #[error(transparent)]
    Traces(#[from] catamount_traces::Error),
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Ties a system error to its file; for `map_err`.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    }

    pub(crate) fn checkpoint(path: &Path, reason: impl Into<String>) -> Self {
        Error::Checkpoint { path: path.to_owned(), reason: reason.into() }
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "; make room and resume: the last checkpoint is intact"
        }
        _ => "",
    }
}
