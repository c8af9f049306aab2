//! What can be wrong with a trace file, said so that the reader can go and fix it.

use std::io;
use std::path::{Path, PathBuf};

/// Why traces could not be read, written or split.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        reason: io::Error,
    },
    /// A line of a text file is wrong.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong and what was expected.
        reason: String,
    },
    /// A record of a file without lines is wrong.
    #[error("{}: record {record}: {reason}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The record, counted from 1.
        record: usize,
        /// What is wrong and what was expected.
        reason: String,
    },
    /// The file as a whole is not what it should be.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong and what was expected.
        reason: String,
    },
    /// The wanted split cannot be made.
    #[error("{0}")]
    Split(String),
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        move |reason| Error::Io { path: path.to_owned(), reason }
    }

    pub(crate) fn file(path: &Path, reason: impl ToString) -> Error {
        Error::File { path: path.to_owned(), reason: reason.to_string() }
    }
}
