//! What a study begins from that its file only names.

use std::path::Path;

use catamount_model::{identity, locate};

use crate::error::Result;
use crate::experiment::{Experiment, ModelChoice};

/// What a study begins from, by content: other data, or another model, under the same name are
/// another study.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The hash of a database, or of files of traces.
    pub source: String,
    /// The model that training begins with, where it does not begin from nothing.
    pub base: Option<String>,
}

impl Inputs {
    /// What is there now; `folder` is the study's.
    pub fn of(experiment: &Experiment, folder: &Path) -> Result<Self> {
        let source = experiment.making(folder).source.hash()?;
        Ok(Inputs { source, base: Self::base(experiment)? })
    }

    /// The model that training begins with, by content (see [`identity`]).
    pub fn base(experiment: &Experiment) -> Result<Option<String>> {
        let ModelChoice::Pretrained { base } = &experiment.model else { return Ok(None) };
        let identity = identity(&locate(base)?, None)?;
        Ok(identity.get("weights").map(str::to_owned))
    }

    /// What can be told without fetching anything, for a plan that is only looked at: a model that
    /// is not on this machine is not known by content yet.
    pub fn at_hand(experiment: &Experiment, folder: &Path) -> Result<Self> {
        match &experiment.model {
            ModelChoice::Pretrained { base } if !Path::new(base).exists() => {
                Ok(Inputs::named(&experiment.making(folder).source.hash()?))
            }
            _ => Inputs::of(experiment, folder),
        }
    }

    /// Of data known by a name, and no model.
    pub fn named(source: &str) -> Self {
        Inputs { source: source.to_string(), base: None }
    }
}
