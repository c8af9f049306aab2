//! Everything that can go wrong with a model, said so that the reader knows what to do.

use std::path::{Path, PathBuf};

/// A failure of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file does not hold what its name promises.
    #[error("{}: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A checkpoint lacks a tensor.
    #[error("{}: tensor `{name}` is missing; does config.json belong to these \
     weights?", path.display())]
    MissingTensor {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor's name in the checkpoint.
        name: String,
    },
    /// A tensor's shape is not the one the configuration asks for.
    #[error("{}: tensor `{name}` has shape {got:?} where the configuration asks for \
     {expected:?}", path.display())]
    Shape {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor's name in the checkpoint.
        name: String,
        /// What the configuration says.
        expected: Vec<usize>,
        /// What the file holds.
        got: Vec<usize>,
    },
    /// The tokenizer can produce tokens the model has no embedding for.
    #[error(
        "the tokenizer has {tokenizer} tokens but the model only {model}: they do not belong \
         together"
    )]
    Vocabulary {
        /// Tokens of the tokenizer.
        tokenizer: usize,
        /// Rows of the embedding.
        model: usize,
    },
    /// A configuration that no model can have.
    #[error("model configuration: {0}")]
    Config(String),
    /// The tokenizer cannot do what was asked.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// A batch or request that the model cannot run.
    #[error("{0}")]
    Input(String),
    /// The device does not have the memory.
    #[error("out of device memory: {wanted} bytes wanted, {free} free; {advice}")]
    Memory {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes left.
        free: u64,
        /// What would fit.
        advice: String,
    },
    /// The device failed.
    #[error("device: {0}")]
    Device(String),
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error about a file's content.
    pub fn format(path: &Path, reason: impl Into<String>) -> Self {
        Error::Format { path: path.to_owned(), reason: reason.into() }
    }

    /// Ties a system error to its file; for `map_err`.
    pub fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    }
}
