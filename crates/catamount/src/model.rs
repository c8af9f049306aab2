//! Models by name: a folder, a GGUF file, or a name on the Hugging Face hub.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use catamount_model::{Backend, Model, Tokenizer, load, load_adapter, load_gguf};

use crate::device::Device;

#[derive(clap::Args)]
pub struct Arguments {
    /// A Hugging Face folder (config.json, model.safetensors, tokenizer.json) or a GGUF file.
    #[arg(long)]
    pub model: String,
    /// A LoRA adapter in PEFT's format.
    #[arg(long)]
    pub adapter: Option<PathBuf>,
    /// auto, cpu or cuda:0.
    #[arg(long, default_value = "auto")]
    pub device: Device,
}

/// Loads a model with its adapter, if any; neither is trainable.
pub fn open<B: Backend>(
    name: &str,
    adapter: Option<&Path>,
    backend: &Arc<B>,
) -> Result<(Model<B>, Tokenizer)> {
    let (mut model, tokenizer) = by_name(name, backend, false)?;
    if let Some(folder) = adapter {
        let adapter = load_adapter(&**backend, &model.config, folder, false)
            .with_context(|| format!("cannot load the adapter {}", folder.display()))?;
        model.swap_adapter(Some(adapter));
    }
    Ok((model, tokenizer))
}

/// Loads a model by path, or by its name on the hub.
pub fn by_name<B: Backend>(
    name: &str,
    backend: &Arc<B>,
    trained: bool,
) -> Result<(Model<B>, Tokenizer)> {
    let path = Path::new(name);
    if path.is_file() {
        return Ok(load_gguf(path, Arc::clone(backend), trained)?);
    }
    if path.join("adapter_config.json").exists() && !path.join("config.json").exists() {
        bail!(
            "{name} is an adapter; give its base model as --model and the adapter as --adapter \
             {name}"
        );
    }
    if path.is_dir() {
        return Ok(load(path, Arc::clone(backend), trained)?);
    }
    from_hub(name, backend, trained)
}

#[cfg(feature = "hub")]
fn from_hub<B: Backend>(
    name: &str,
    backend: &Arc<B>,
    trained: bool,
) -> Result<(Model<B>, Tokenizer)> {
    let folder = catamount_model::download(name, None)
        .with_context(|| format!("there is no folder {name}, and the hub did not give it"))?;
    Ok(load(&folder, Arc::clone(backend), trained)?)
}

#[cfg(not(feature = "hub"))]
fn from_hub<B: Backend>(
    name: &str,
    _backend: &Arc<B>,
    _trained: bool,
) -> Result<(Model<B>, Tokenizer)> {
    bail!(
        "there is no folder or GGUF file {name}; download the model first, or build with `cargo \
         install --path crates/catamount --features hub` \
         to load models from the Hugging Face hub by name"
    )
}
