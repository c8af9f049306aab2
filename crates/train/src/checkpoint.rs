//! Everything a run needs to continue: parameters, moments, position. A checkpoint is a folder that
//! appears whole or not at all, with the hashes of its files: one whose bytes have changed since is
//! passed over for the one before.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use catamount_base::{AtomicFolder, Checksums};
use catamount_model::{Backend, Model};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};

use crate::optimizer::Moments;
use crate::tensors::{Remote, Tensors, write_tensors};
use crate::weights::Table;
use crate::{Dataset, Error, Recipe, Result, Weigh};

const TENSORS: &str = "state.safetensors";
const SCORES: &str = "scores.safetensors";
const POSITION: &str = "position.json";
const SUMS: &str = "checksums.json";

/// Where a run stands. Data order and dropout are functions of the seed and the step, so no
/// generator's state is needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Optimizer steps done.
    pub step: usize,
    /// Those that changed the parameters.
    pub updates: u64,
    /// What was skipped so far.
    pub skipped: usize,
    /// Traces trained on, over all epochs, that were infeasible.
    pub infeasible: usize,
    /// What must not change between interruption and resumption.
    pub identity: Identity,
}

/// What makes two runs the same run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub objective: String,
    pub data: String,
    /// Line by line, as text: numbers are compared as they are written.
    pub recipe: Vec<String>,
    /// What was trained, by content, before the first step.
    #[serde(default)]
    pub model: Option<String>,
}

impl Identity {
    pub fn new(
        data: &Dataset,
        objective: &dyn Weigh,
        recipe: &Recipe,
        model: Option<String>,
    ) -> Self {
        let data = format!(
            "{} traces, {} examples, {:016x}",
            data.len(),
            data.examples(),
            data.fingerprint()
        );
        // How often something is written does not change what is computed.
        let (log_every, validate_every, checkpoints) = (1, 0, Default::default());
        let recipe = Recipe { log_every, validate_every, checkpoints, ..recipe.clone() };
        let text = toml::to_string(&recipe).expect("TOML of plain values");
        Identity {
            objective: objective.describe(),
            data,
            recipe: text.lines().map(str::to_owned).collect(),
            model,
        }
    }

    fn difference(&self, now: &Identity) -> Option<String> {
        if self.objective != now.objective {
            return Some(format!(
                "it was made with the objective {}, not {}",
                self.objective, now.objective
            ));
        }
        if self.data != now.data {
            return Some(format!("it was made with other data ({}, now {})", self.data, now.data));
        }
        // Whoever does not say what a run begins from has it checked by nobody.
        if let (Some(then), Some(now)) = (&self.model, &now.model)
            && then != now
        {
            return Some(format!("it was begun from another model ({then}, now {now})"));
        }
        (self.recipe != now.recipe).then(|| {
            let only = |a: &[String], b: &[String]| {
                let lines: Vec<&str> =
                    a.iter().filter(|l| !b.contains(l)).map(String::as_str).collect();
                if lines.is_empty() { "nothing".to_string() } else { lines.join(", ") }
            };
            let (old, new) = (only(&self.recipe, &now.recipe), only(&now.recipe, &self.recipe));
            format!("it was made with another recipe: it said {old}, where now there is {new}")
        })
    }
}

/// A checkpoint on the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    folder: PathBuf,
    pub(crate) position: Position,
}

impl Checkpoint {
    /// The newest sound checkpoint of a run's `checkpoints` folder; `warn` hears of every newer one
    /// that is damaged.
    pub fn latest(folder: &Path, warn: &mut dyn FnMut(&Error)) -> Result<Option<Self>> {
        for (_, path) in numbered(folder)?.into_iter().rev() {
            match Self::open(&path) {
                Err(error @ Error::Damaged { .. }) => warn(&error),
                opened => return opened.map(Some),
            }
        }
        Ok(None)
    }

    /// Opens one checkpoint, after comparing every byte with what was written.
    pub fn open(folder: &Path) -> Result<Self> {
        let damaged = |reason: String| Error::Damaged { path: folder.to_owned(), reason };
        let path = folder.join(SUMS);
        let sums: Checksums = fs::read(&path)
            .map_err(|error| error.to_string())
            .and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()))
            .map_err(|error| damaged(format!("{SUMS}: {error}")))?;
        if [TENSORS, POSITION].iter().any(|name| !sums.0.contains_key(Path::new(name))) {
            return Err(damaged(format!("{SUMS} does not name all files")));
        }
        if let Some(damage) = sums.verify(folder, true).first() {
            return Err(damaged(damage.to_string()));
        }
        let path = folder.join(POSITION);
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let position = serde_json::from_str(&text)
            .map_err(|e| Error::checkpoint(&path, format!("cannot be understood: {e}")))?;
        Ok(Checkpoint { folder: folder.to_owned(), position })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Optimizer steps done.
    pub fn step(&self) -> usize {
        self.position.step
    }

    /// Refuses to continue a different run.
    pub(crate) fn check(&self, now: &Identity) -> Result<()> {
        match self.position.identity.difference(now) {
            None => Ok(()),
            Some(what) => Err(Error::checkpoint(
                &self.folder,
                format!("{what}; start over in another folder, or undo the change"),
            )),
        }
    }

    /// Puts the checkpoint's parameters into a model with the same trained parameters.
    pub fn restore_parameters<B: Backend>(&self, model: &mut Model<B>) -> Result<()> {
        let tensors = Tensors::open(&self.folder.join(TENSORS))?;
        let backend = model.backend.clone();
        for p in model.trained_mut() {
            let numbers = tensors.f32(&format!("value.{}", p.name), p.len())?;
            backend.upload(&numbers, &mut p.value, 0)?;
        }
        Ok(())
    }

    /// Puts the checkpoint's moments back.
    pub(crate) fn restore_moments<B: Backend>(
        &self,
        model: &Model<B>,
        moments: &mut Moments<B>,
    ) -> Result<()> {
        let tensors = Tensors::open(&self.folder.join(TENSORS))?;
        for (p, pair) in model.trained().zip(&mut moments.tensors) {
            for (moment, tensor) in ["m", "v"].iter().zip(pair) {
                let numbers = tensors.f32(&format!("{moment}.{}", p.name), p.len())?;
                model.backend.upload(&numbers, tensor, 0)?;
            }
        }
        moments.updates = self.position.updates;
        Ok(())
    }

    /// The scores that weights are computed from, if the run keeps any.
    pub(crate) fn scores(&self, examples: usize) -> Result<Option<Table>> {
        let path = self.folder.join(SCORES);
        if !path.exists() {
            return Ok(None);
        }
        let tensors = Tensors::open(&path)?;
        let bytes = tensors.bytes("log_p", Dtype::F64, examples)?;
        Ok(Some(Table(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect())))
    }

    /// Writes a checkpoint and then removes all but the newest `keep`. If anything fails, those
    /// that were there are untouched.
    pub(crate) fn write<B: Backend>(
        folder: &Path,
        model: &Model<B>,
        moments: &Moments<B>,
        scores: Option<&Table>,
        position: Position,
        keep: usize,
    ) -> Result<Self> {
        let target = folder.join(format!("step-{:08}", position.step));
        if target.exists() {
            match Self::open(&target) {
                // A damaged one is worth nothing, and its place is needed.
                Err(Error::Damaged { .. }) => {
                    fs::remove_dir_all(&target).map_err(Error::file(&target))?;
                }
                opened => return opened,
            }
        }
        let written = AtomicFolder::create(&target).map_err(Error::file(&target))?;
        let failed = Mutex::new(None);
        let mut tensors = Vec::new();
        for (p, [m, v]) in model.trained().zip(&moments.tensors) {
            for (kind, tensor) in [("value", &p.value), ("m", m), ("v", v)] {
                let remote =
                    Remote { backend: &*model.backend, tensor, shape: p.shape, failed: &failed };
                tensors.push((format!("{kind}.{}", p.name), remote));
            }
        }
        let path = written.path().join(TENSORS);
        write_tensors(&path, tensors)?;
        if let Some(error) = failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
            return Err(Error::Model(error));
        }
        if let Some(Table(log_p)) = scores {
            let path = written.path().join(SCORES);
            let bytes: Vec<u8> = log_p.iter().flat_map(|l| l.to_le_bytes()).collect();
            let view = TensorView::new(Dtype::F64, vec![log_p.len()], &bytes)
                .map_err(|e| Error::checkpoint(&path, e.to_string()))?;
            write_tensors(&path, [("log_p", view)])?;
        }
        let path = written.path().join(POSITION);
        let text = serde_json::to_string_pretty(&position).expect("JSON of plain values");
        catamount_base::write(&path, text).map_err(Error::file(&path))?;
        let sums = Checksums::of(written.path(), [TENSORS, SCORES, POSITION])
            .map_err(Error::file(written.path()))?;
        let path = written.path().join(SUMS);
        let text = serde_json::to_string_pretty(&sums).expect("JSON of plain values");
        catamount_base::write(&path, text).map_err(Error::file(&path))?;
        written.commit().map_err(Error::file(&target))?;
        let mut all = numbered(folder)?;
        let old = all.len().saturating_sub(keep);
        for (_, path) in all.drain(..old) {
            fs::remove_dir_all(&path).map_err(Error::file(&path))?;
        }
        Ok(Checkpoint { folder: target, position })
    }
}

/// The checkpoints of a folder, by step.
fn numbered(folder: &Path) -> Result<Vec<(usize, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::file(folder)(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::file(folder))?.path();
        let step = path
            .file_name()
            .and_then(|n| n.to_str())
            .and_then(|n| n.strip_prefix("step-"))
            .and_then(|n| n.parse().ok());
        found.extend(step.map(|step| (step, path)));
    }
    found.sort_unstable();
    Ok(found)
}
