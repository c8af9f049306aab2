//! What stops an experiment.

use std::path::{Path, PathBuf};

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// An experiment that cannot go on, and what to do about it. The cause, where there is one, is the
/// error's source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting of the experiment's file cannot be followed.
    #[error("{file}{}: {key}: {reason}", line.map(|line| format!(":{line}")).unwrap_or_default())]
    Setting {
        /// The file.
        file: String,
        /// The line, counted from 1, where the key or a part of it stands.
        line: Option<usize>,
        /// The key, such as `evaluation.budgets[1]`.
        key: String,
        /// What is wrong, and what may stand there.
        reason: String,
    },
    /// There is no such preset.
    #[error("there is no file and no preset `{name}`; {hint}the presets are {known}")]
    Preset {
        /// As it was asked for.
        name: String,
        /// The one that was probably meant.
        hint: String,
        /// Those there are.
        known: String,
    },
    /// Another process writes this study.
    #[error(transparent)]
    Locked(#[from] catamount_base::LockError),
    /// The source of the data cannot be used.
    #[error(transparent)]
    Data(#[from] catamount_data::Error),
    /// The model that training begins with cannot be used.
    #[error(transparent)]
    Model(#[from] catamount_model::Error),
    /// A deployment that cannot be.
    #[error(transparent)]
    Deployment(#[from] catamount_search::SettingError),
    /// No prover elsewhere can be asked.
    #[error(transparent)]
    Provers(#[from] catamount_service::ConnectError),
    /// The file system said no.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// A file that a step left is not what it left.
    #[error("{}: not what this version left there; delete it and run again", path.display())]
    Left {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A file of the study is not what it should be.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// No theorem or trace has the lengths asked for.
    #[error("no {what} has {steps} steps; `catamount data stats {}` shows what there is",
        path.display())]
    Empty {
        /// Theorems or traces.
        what: &'static str,
        /// The lengths.
        steps: catamount_traces::Steps,
        /// Where they were looked for.
        path: PathBuf,
    },
    /// Searches that ended in errors, which nothing may rest on.
    #[error("{count} searches ended in errors; run the same command again to retry them")]
    Unfinished {
        /// How many.
        count: usize,
    },
    /// A step that was asked for alone needs another.
    #[error("{step} needs {needed}, which is {why}; do that first, or run the whole study")]
    Unready {
        /// The step.
        step: String,
        /// What it needs.
        needed: String,
        /// What is the matter with that.
        why: String,
    },
    /// There is no such step.
    #[error(
        "there is no step `{id}`; {hint}`catamount run EXPERIMENT --dry-run --json` lists them"
    )]
    NoStep {
        /// As it was asked for.
        id: String,
        /// The one that was probably meant.
        hint: String,
    },
    /// A step failed.
    #[error("step {step}")]
    Step {
        /// The step's name.
        step: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
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

    /// Ties an error to the step it stopped; an interruption is nobody's fault.
    pub(crate) fn in_step(self, step: &str) -> Error {
        match self {
            Error::Interrupted => Error::Interrupted,
            source => Error::Step { step: step.to_string(), source: Box::new(source) },
        }
    }
}

/// Errors of the crates that do the work.
macro_rules! caused {
    ($($cause:ty),+ $(,)?) => {
        $(impl From<$cause> for Failure {
            fn from(cause: $cause) -> Self {
                Failure::Cause(Box::new(cause))
            }
        })+
    };
}

/// What went wrong inside a step, before it is known which step that was.
pub(crate) enum Failure {
    Own(Error),
    Cause(Box<dyn std::error::Error + Send + Sync>),
}

caused!(
    catamount_model::Error,
    catamount_train::Error,
    catamount_traces::Error,
    catamount_objective::ObjectiveError,
    catamount_report::ReportError,
    catamount_evaluate::CellError,
    catamount_base::LinesError,
    catamount_data::Error,
    catamount_calibration::CalibrationError,
    catamount_calibration::HalvingError,
    catamount_evaluate::LogError,
    catamount_policies::HttpError,
);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Own(error)
    }
}

impl Failure {
    /// As the error of a step.
    pub fn in_step(self, step: &str) -> Error {
        match self {
            Failure::Own(error) => error.in_step(step),
            Failure::Cause(source) => Error::Step { step: step.to_string(), source },
        }
    }
}

/// The result of what a step does.
pub(crate) type Work<T> = std::result::Result<T, Failure>;
