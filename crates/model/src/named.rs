//! Models by name: a folder, a GGUF file, or a name on the Hugging Face hub.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::gguf::gguf_tokenizer;
use crate::{Backend, Error, Model, Result, Tokenizer, load, load_gguf};

/// Opens a model by path, or by its name on the hub; `trained` makes every parameter trainable.
pub fn open<B: Backend>(
    name: &str,
    backend: &Arc<B>,
    trained: bool,
) -> Result<(Model<B>, Tokenizer)> {
    let path = locate(name)?;
    if path.is_file() {
        return load_gguf(&path, Arc::clone(backend), trained);
    }
    if path.join("adapter_config.json").exists() && !path.join("config.json").exists() {
        return Err(Error::Input(format!(
            "{name} is an adapter; give its base as the model, and the adapter as such (--adapter \
             {name})"
        )));
    }
    load(&path, Arc::clone(backend), trained)
}

/// The tokenizer of a model on this machine: of a folder, or inside a GGUF file.
pub fn tokenizer_of(path: &Path) -> Result<Tokenizer> {
    if path.is_file() { gguf_tokenizer(path) } else { Tokenizer::load(path) }
}

/// Where a model's files are: at a path, or where the hub's client keeps what it has fetched.
pub fn locate(name: &str) -> Result<PathBuf> {
    let path = Path::new(name);
    if path.exists() { Ok(path.to_path_buf()) } else { from_hub(name) }
}

/// Refuses a model that [`locate`] would not find, without fetching anything: by name it can only
/// be fetched by a build that knows the hub.
pub fn obtainable(name: &str) -> Result<()> {
    if Path::new(name).exists() || cfg!(feature = "hub") { Ok(()) } else { locate(name).map(drop) }
}

#[cfg(feature = "hub")]
fn from_hub(name: &str) -> Result<PathBuf> {
    crate::download(name, None)
}

#[cfg(not(feature = "hub"))]
fn from_hub(name: &str) -> Result<PathBuf> {
    Err(Error::Input(format!(
        "there is no folder or GGUF file {name}; download the model first, or build with `cargo \
         install --path crates/catamount --features hub` to load models from the Hugging Face hub \
         by name"
    )))
}
