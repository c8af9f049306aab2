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
    #[command(flatten)]
    pub arithmetic: Arithmetic,
    /// auto, cpu or cuda:0.
    #[arg(long, default_value = "auto")]
    pub device: Device,
}

/// What a model's products multiply.
#[derive(clap::Args)]
pub struct Arithmetic {
    /// What the products of the base multiply: fp8 (numbers of eight bits with a scale for each
    /// row), on NVIDIA GPUs of compute capability 8.9 or newer; the device's own numbers if not
    /// given.
    #[arg(long, value_name = "NAME")]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(["fp8"]))]
    arithmetic: Option<String>,
}

impl Arithmetic {
    /// What it is called, where it is not the device's own.
    pub fn name(&self) -> Option<&str> {
        self.arithmetic.as_deref()
    }
}

/// Loads a model with its adapter, if any; neither is trainable.
pub fn open<B: Backend>(
    name: &str,
    adapter: Option<&Path>,
    arithmetic: &Arithmetic,
    backend: &Arc<B>,
) -> Result<(Model<B>, Tokenizer)> {
    let fp8 = arithmetic.name().is_some();
    if fp8 {
        backend.check_fp8().context("--arithmetic fp8")?;
    }
    let (mut model, tokenizer) = catamount_model::open(name, backend, false)?;
    if fp8 {
        model.use_fp8().context("--arithmetic fp8")?;
    }
    if let Some(folder) = adapter {
        let adapter = load_adapter(&**backend, &model.config, folder, false)
            .with_context(|| format!("cannot load the adapter {}", folder.display()))?;
        model.swap_adapter(Some(adapter));
    }
    Ok((model, tokenizer))
}
