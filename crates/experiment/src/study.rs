//! A study that is open: what its steps work with.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use catamount_base::{AtomicFolder, Lock};
use catamount_evaluate::log::Provenance;
use catamount_model::{Backend, Model, Tokenizer, identity, load, load_adapter, locate, open};
use catamount_search::{Environment, Identity};
use catamount_traces::{Trace, read_any};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result, Work};
use crate::experiment::{Experiment, ModelChoice};
use crate::planned::Planned;
use crate::prover::OpenProver;
use crate::step::{Trained, part};

/// A study's folder, open for writing.
pub struct Study<'a, B: Backend> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) folder: &'a Path,
    pub(crate) backend: Arc<B>,
    pub(crate) environment: Arc<dyn Environment>,
    /// Threads that talk to the prover.
    pub(crate) threads: usize,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) provenance: Provenance,
    /// Of the folder; of single steps, where it is shared.
    _locks: Vec<Lock>,
}

impl<'a, B: Backend> Study<'a, B> {
    /// Opens a folder, which has one writer at a time, and starts the prover.
    pub fn open(
        experiment: &'a Experiment,
        folder: &'a Path,
        backend: Arc<B>,
        stop: &'a AtomicBool,
        provenance: Provenance,
    ) -> Result<Self> {
        check(experiment, &*backend)?;
        let lock = Lock::take(folder)?;
        sweep(folder)?;
        let environment = experiment.prover(folder, true)?;
        let threads = experiment.prover_threads();
        let _locks = vec![lock];
        Ok(Study { experiment, folder, backend, environment, threads, stop, provenance, _locks })
    }

    /// Opens a folder that others write to as well, each their own steps: these are ours.
    pub fn join(
        experiment: &'a Experiment,
        folder: &'a Path,
        backend: Arc<B>,
        stop: &'a AtomicBool,
        provenance: Provenance,
        steps: &[&Planned],
        prover: OpenProver,
    ) -> Result<Self> {
        check(experiment, &*backend)?;
        let mut locks = vec![Lock::share(folder)?];
        let stamps = folder.join("steps");
        fs::create_dir_all(&stamps).map_err(Error::io(&stamps))?;
        for planned in steps {
            let id = planned.step.id();
            locks.push(Lock::at(&stamps.join(format!(".{id}.lock")), &folder.join(&id))?);
        }
        let OpenProver { environment, threads } = prover;
        let _locks = locks;
        Ok(Study { experiment, folder, backend, environment, threads, stop, provenance, _locks })
    }

    /// A folder that is only read from, whoever writes to it.
    pub(crate) fn to_read(
        experiment: &'a Experiment,
        folder: &'a Path,
        backend: Arc<B>,
        environment: Arc<dyn Environment>,
        stop: &'a AtomicBool,
    ) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_string();
        let provenance = Provenance { version, commit: None, command: String::new() };
        let (threads, _locks) = (experiment.prover_threads(), Vec::new());
        Study { experiment, folder, backend, environment, threads, stop, provenance, _locks }
    }

    /// A file of the study.
    pub(crate) fn path(&self, inside: impl AsRef<Path>) -> PathBuf {
        self.folder.join(inside)
    }

    /// The traces of one part of the data.
    pub(crate) fn traces(&self, name: &str) -> Work<Vec<Trace>> {
        Ok(read_any(&self.path(part(name)))?.traces)
    }

    /// What a step left in a file of the study.
    pub(crate) fn read_json<T: DeserializeOwned>(&self, inside: impl AsRef<Path>) -> Work<T> {
        let path = self.path(inside);
        let text = std::fs::read(&path).map_err(Error::io(&path))?;
        let found = serde_json::from_slice(&text);
        Ok(found.map_err(|source| Error::Left { path, source })?)
    }

    /// Leaves something in a file of the study, whole or not at all.
    pub(crate) fn write_json(&self, inside: impl AsRef<Path>, value: &impl Serialize) -> Work<()> {
        let path = self.path(inside);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        let text = serde_json::to_vec_pretty(value).unwrap_or_default();
        Ok(catamount_base::write(&path, text).map_err(Error::io(&path))?)
    }

    /// A model of this study: a whole one, or the pretrained base under its adapter.
    pub(crate) fn model(&self, which: &Trained, trained: bool) -> Work<(Model<B>, Tokenizer)> {
        let folder = self.path(which.model());
        if let Some(base) = self.adapted() {
            let (mut model, tokenizer) = self.frozen(base)?;
            let adapter = load_adapter(&*self.backend, &model.config, &folder, trained)?;
            model.swap_adapter(Some(adapter));
            return Ok((model, tokenizer));
        }
        Ok(load(&folder, Arc::clone(&self.backend), trained)?)
    }

    /// The base that adapters are trained on, as the study computes with it.
    pub(crate) fn frozen(&self, base: &str) -> Work<(Model<B>, Tokenizer)> {
        let (mut model, tokenizer) = open(base, &self.backend, false)?;
        if self.experiment.is_fp8() {
            model.use_fp8()?;
        }
        Ok((model, tokenizer))
    }

    /// What a model of this study is, by content.
    pub(crate) fn identity(&self, which: &Trained) -> Work<Identity> {
        let folder = self.path(which.model());
        Ok(match self.adapted() {
            Some(base) => identity(&locate(base)?, Some(&folder))?,
            None => identity(&folder, None)?,
        })
    }

    /// The base that all models of the study are adapters of, if they are.
    pub(crate) fn adapted(&self) -> Option<&str> {
        match (&self.experiment.model, &self.experiment.branch.lora) {
            (ModelChoice::Pretrained { base }, Some(_)) => Some(base),
            _ => None,
        }
    }
}

/// Refuses a device that cannot compute as the experiment says.
fn check(experiment: &Experiment, backend: &impl Backend) -> Result<()> {
    if experiment.is_fp8() { Ok(backend.check_fp8()?) } else { Ok(()) }
}

/// Clears away what killed processes left unfinished in a folder that is ours alone.
pub(crate) fn sweep(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(Error::io(folder))?.flatten() {
        let part = entry.path();
        if !part.is_dir() || part.ends_with("stale") {
            continue;
        }
        AtomicFolder::sweep(&part).map_err(Error::io(&part))?;
    }
    Ok(())
}

/// Speaks to the user between progress bars.
pub(crate) fn say(text: impl AsRef<str>) {
    catamount_base::say(text);
}
