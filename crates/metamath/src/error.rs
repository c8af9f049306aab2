//! What can go wrong with a database.

use std::path::PathBuf;

/// A database could not be used, or something was asked of it that it does not hold.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the Metamath database {path}: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        reason: std::io::Error,
    },
    /// The file is not a consistent Metamath database: truncated, malformed, or with a proof that
    /// does not hold.
    #[error(
        "{path} is not a consistent Metamath database ({errors} error(s)); the first:\n{first}"
    )]
    Inconsistent {
        /// The file.
        path: PathBuf,
        /// How many errors metamath-rs reports.
        errors: usize,
        /// The first of them with its file, line and column.
        first: String,
    },
    /// There is no theorem of this name.
    #[error("no theorem named `{label}` in {path}{hint}")]
    UnknownTheorem {
        /// The name asked for.
        label: String,
        /// The database.
        path: PathBuf,
        /// What else the name might be.
        hint: String,
    },
    /// A proof to be exported is not a proof.
    #[error("the proof of `{label}` cannot be exported: {reason}")]
    NotAProof {
        /// The theorem.
        label: String,
        /// Why.
        reason: String,
    },
    /// The export itself failed.
    #[error("cannot export {path}: {reason}")]
    Export {
        /// The database.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}
