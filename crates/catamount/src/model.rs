//! Models by name: a folder, a GGUF file, or a name on the Hugging Face hub.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use catamount_model::{Backend, Model, Tokenizer, load_adapter};

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
    let (mut model, tokenizer) = catamount_model::open(name, backend, false)?;
    if let Some(folder) = adapter {
        let adapter = load_adapter(&**backend, &model.config, folder, false)
            .with_context(|| format!("cannot load the adapter {}", folder.display()))?;
        model.swap_adapter(Some(adapter));
    }
    Ok((model, tokenizer))
}
