//! Hugging Face folders: `config.json`, `model.safetensors` (or its shards), `tokenizer.json`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catamount_base::AtomicFile;
use memmap2::Mmap;
use safetensors::tensor::TensorInfo;
use safetensors::{Dtype, SafeTensors, View};

use crate::names::{Piece, pieces};
use crate::{Backend, Config, Error, Model, Result, Tokenizer};

/// Where a loader finds tensors.
pub(crate) trait Source {
    /// For messages.
    fn path(&self) -> &Path;
    /// What the names of a layer's tensors begin with, up to the layer's number.
    fn layer_prefix(&self) -> &'static str;
    /// The names of all tensors.
    fn names(&self) -> impl Iterator<Item = &String>;
    /// A tensor's shape, or none if there is no such tensor.
    fn shape(&self, name: &str) -> Option<&[usize]>;
    /// The numbers of a tensor whose shape is the piece's.
    fn read(&self, piece: &Piece) -> Result<Vec<f32>>;
    /// The piece's name in this source.
    fn name<'a>(&self, piece: &'a Piece) -> &'a str;
}

/// Refuses a source that is not of this shape, before anything is allocated for it: what a
/// configuration promises, a file must hold.
fn check(source: &impl Source, config: &Config) -> Result<()> {
    let (path, prefix) = (source.path().to_owned(), source.layer_prefix());
    let layer = |name: &String| -> Option<usize> {
        name.strip_prefix(prefix)?.split('.').next()?.parse().ok()
    };
    let held = source.names().filter_map(layer).max().map_or(0, |last| last.saturating_add(1));
    if held < config.layers {
        return Err(Error::MissingTensor { path, name: format!("{prefix}{held}.*") });
    }
    if held > config.layers {
        let reason =
            format!("it holds {held} layers where the configuration says {}", config.layers);
        return Err(Error::format(&path, reason));
    }
    for piece in pieces(config) {
        let name = source.name(&piece).to_string();
        match source.shape(&name) {
            Some(shape) if shape == piece.shape => {}
            Some(shape) => {
                let (expected, got) = (piece.shape, shape.to_vec());
                return Err(Error::Shape { path, name, expected, got });
            }
            None => return Err(Error::MissingTensor { path, name }),
        }
    }
    Ok(())
}

/// Builds a model from a source; `trained` makes the base trainable.
pub(crate) fn load_from<B: Backend>(
    source: &impl Source,
    backend: Arc<B>,
    config: Config,
    trained: bool,
) -> Result<Model<B>> {
    check(source, &config)?;
    let mut model = Model::zeros(backend.clone(), config, trained)?;
    let mut by_parameter: HashMap<String, Vec<Piece>> = HashMap::new();
    for piece in pieces(&model.config) {
        by_parameter.entry(piece.parameter.clone()).or_default().push(piece);
    }
    for parameter in model.base_mut() {
        for piece in by_parameter.remove(&parameter.name).unwrap_or_default() {
            let numbers = source.read(&piece)?;
            backend.upload(&numbers, &mut parameter.value, piece.offset)?;
        }
    }
    Ok(model)
}

/// Loads a Hugging Face folder with its tokenizer. `trained` makes the base trainable (full
/// fine-tuning); pass false for scoring, sampling and LoRA.
pub fn load<B: Backend>(
    folder: &Path,
    backend: Arc<B>,
    trained: bool,
) -> Result<(Model<B>, Tokenizer)> {
    let config = Config::read(&folder.join("config.json"))?;
    let tokenizer = Tokenizer::load(folder)?;
    tokenizer.check(config.vocab)?;
    let source = SafetensorsSource::open(folder)?;
    Ok((load_from(&source, backend, config, trained)?, tokenizer))
}

/// Saves the base as a Hugging Face folder, so that transformers can load it. Each file appears
/// whole or not at all; the weights come last, so that a folder with weights is complete.
pub fn save<B: Backend>(model: &Model<B>, tokenizer: &Tokenizer, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let config =
        serde_json::to_string_pretty(&model.config.to_json()).expect("JSON of plain values");
    write_whole(&folder.join("config.json"), config.as_bytes())?;
    tokenizer.save(folder)?;
    let parameters: HashMap<&str, _> = model.base().map(|p| (p.name.as_str(), p)).collect();
    let mut tensors = BTreeMap::new();
    for piece in pieces(&model.config) {
        let mut numbers = vec![0.0; piece.shape.iter().product()];
        model.backend.download(
            &parameters[piece.parameter.as_str()].value,
            piece.offset,
            &mut numbers,
        )?;
        tensors.insert(piece.hugging_face, Numbers::new(piece.shape, numbers));
    }
    write_safetensors(&folder.join("model.safetensors"), tensors)
}

/// Writes a whole file or nothing.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    catamount_base::write(path, bytes).map_err(Error::file(path))
}

/// Writes a safetensors file, whole or not at all.
pub(crate) fn write_safetensors(path: &Path, tensors: BTreeMap<String, Numbers>) -> Result<()> {
    // transformers refuses files without a format.
    let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
    let write = || -> std::io::Result<()> {
        let file = AtomicFile::create(path)?;
        safetensors::serialize_to_file(tensors, Some(metadata), file.unfinished())
            .map_err(std::io::Error::other)?;
        file.commit()
    };
    write().map_err(Error::file(path))
}

/// A tensor about to be written.
pub(crate) struct Numbers {
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Numbers {
    pub fn new(shape: Vec<usize>, numbers: Vec<f32>) -> Self {
        Numbers { shape, bytes: numbers.iter().flat_map(|x| x.to_le_bytes()).collect() }
    }
}

impl View for Numbers {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// One or several safetensors files, mapped.
pub(crate) struct SafetensorsSource {
    path: PathBuf,
    files: Vec<(PathBuf, Mmap)>,
    /// Which file holds a tensor, and where.
    index: HashMap<String, (usize, TensorInfo)>,
}

impl SafetensorsSource {
    /// Opens a folder's `model.safetensors`, or its shards by their index.
    pub fn open(folder: &Path) -> Result<Self> {
        let (path, files) = Self::files(folder)?;
        Self::open_files(path, files)
    }

    /// The weights of a folder: what messages call them, and their files.
    pub fn files(folder: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
        let (single, index) =
            (folder.join("model.safetensors"), folder.join("model.safetensors.index.json"));
        if single.exists() || !index.exists() {
            return Ok((single.clone(), vec![single]));
        }
        let text = std::fs::read_to_string(&index).map_err(Error::file(&index))?;
        let json: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| Error::format(&index, e.to_string()))?;
        let map = json["weight_map"]
            .as_object()
            .ok_or_else(|| Error::format(&index, "`weight_map` is missing"))?;
        let mut names: Vec<&str> = map.values().filter_map(|v| v.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let files = names.iter().map(|name| folder.join(name)).collect();
        Ok((index, files))
    }

    /// Opens these files.
    pub fn open_files(path: PathBuf, paths: Vec<PathBuf>) -> Result<Self> {
        let (mut files, mut index) = (Vec::new(), HashMap::new());
        for (i, path) in paths.into_iter().enumerate() {
            let file = File::open(&path).map_err(Error::file(&path))?;
            // SAFETY: checkpoints are written under another name and moved into place, never
            // changed in place.
            let map = unsafe { Mmap::map(&file) }.map_err(Error::file(&path))?;
            let (header, tensors) = SafeTensors::read_metadata(&map).map_err(|e| {
                let reason =
                    format!("not a whole safetensors file ({e}); was the download cut short?");
                Error::format(&path, reason)
            })?;
            for (name, info) in tensors.tensors() {
                // Offsets count from behind the header and the eight bytes of its length.
                let (from, to) = info.data_offsets;
                let data_offsets = (from + header + 8, to + header + 8);
                index.insert(name, (i, TensorInfo { data_offsets, ..info.clone() }));
            }
            files.push((path, map));
        }
        Ok(SafetensorsSource { path, files, index })
    }

    /// A tensor by name, as f32.
    pub fn tensor(&self, name: &str) -> Result<Option<(Vec<usize>, Vec<f32>)>> {
        let Some((file, info)) = self.index.get(name) else { return Ok(None) };
        let (path, map) = &self.files[*file];
        let (from, to) = info.data_offsets;
        let data = map
            .get(from..to)
            .ok_or_else(|| Error::format(path, format!("tensor `{name}` lies outside the file")))?;
        let numbers = match info.dtype {
            Dtype::F32 => numbers(data, f32::from_le_bytes),
            Dtype::F16 => numbers(data, |b| half::f16::from_le_bytes(b).to_f32()),
            Dtype::BF16 => numbers(data, |b| half::bf16::from_le_bytes(b).to_f32()),
            other => {
                return Err(Error::format(
                    path,
                    format!("tensor `{name}` is {other:?}; f32, f16 and bf16 are known"),
                ));
            }
        };
        Ok(Some((info.shape.clone(), numbers)))
    }
}

fn numbers<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks::<N>().0.iter().map(|b| read(*b)).collect()
}

impl Source for SafetensorsSource {
    fn path(&self) -> &Path {
        &self.path
    }
    fn layer_prefix(&self) -> &'static str {
        "model.layers."
    }
    fn names(&self) -> impl Iterator<Item = &String> {
        self.index.keys()
    }
    fn shape(&self, name: &str) -> Option<&[usize]> {
        self.index.get(name).map(|(_, info)| &info.shape[..])
    }
    fn read(&self, piece: &Piece) -> Result<Vec<f32>> {
        let name = &piece.hugging_face;
        let missing = || Error::MissingTensor { path: self.path.clone(), name: name.clone() };
        Ok(self.tensor(name)?.ok_or_else(missing)?.1)
    }
    fn name<'a>(&self, piece: &'a Piece) -> &'a str {
        &piece.hugging_face
    }
}
