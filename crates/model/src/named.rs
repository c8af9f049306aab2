//! Models by name: a folder, a GGUF file, or a name on the Hugging Face hub.

use std::path::Path;
use std::sync::Arc;

use crate::{Backend, Error, Model, Result, Tokenizer, load, load_gguf};

/// Opens a model by path, or by its name on the hub; `trained` makes every parameter trainable.
pub fn open<B: Backend>(
    name: &str,
    backend: &Arc<B>,
    trained: bool,
) -> Result<(Model<B>, Tokenizer)> {
    let path = Path::new(name);
    if path.is_file() {
        return load_gguf(path, Arc::clone(backend), trained);
    }
    if path.join("adapter_config.json").exists() && !path.join("config.json").exists() {
        return Err(Error::Input(format!(
            "{name} is an adapter; give its base as the model, and the adapter as such (--adapter \
             {name})"
        )));
    }
    if path.is_dir() {
        return load(path, Arc::clone(backend), trained);
    }
    from_hub(name, backend, trained)
}

#[cfg(feature = "hub")]
fn from_hub<B: Backend>(
    name: &str,
    backend: &Arc<B>,
    trained: bool,
) -> Result<(Model<B>, Tokenizer)> {
    load(&crate::download(name, None)?, Arc::clone(backend), trained)
}

#[cfg(not(feature = "hub"))]
fn from_hub<B: Backend>(name: &str, _: &Arc<B>, _: bool) -> Result<(Model<B>, Tokenizer)> {
    Err(Error::Input(format!(
        "there is no folder or GGUF file {name}; download the model first, or build with `cargo \
         install --path crates/catamount --features hub` to load models from the Hugging Face hub \
         by name"
    )))
}
