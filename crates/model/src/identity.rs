//! What a model is, wherever its files lie: the hashes of what is loaded from them.

use std::path::{Path, PathBuf};

use catamount_base::Content;
use catamount_search::Identity;

use crate::checkpoint::SafetensorsSource;
use crate::{Error, Result};

/// A model by the content of its files: a Hugging Face folder or a GGUF file, and an adapter in
/// PEFT's format. Large files are hashed once (see [`Content::of_file`]).
pub fn identity(model: &Path, adapter: Option<&Path>) -> Result<Identity> {
    let base = if model.is_file() { content(&[model.to_path_buf()])? } else { folder(model)? };
    let adapter = match adapter {
        Some(adapter) => {
            let files = ["adapter_config.json", "adapter_model.safetensors"];
            content(&files.map(|name| adapter.join(name)))?
        }
        None => "none".to_string(),
    };
    Ok(Identity::new("model").with("weights", base).with("adapter", adapter))
}

fn folder(folder: &Path) -> Result<String> {
    let mut files: Vec<PathBuf> = ["config.json", "tokenizer.json", "tokenizer_config.json"]
        .into_iter()
        .map(|name| folder.join(name))
        .filter(|path| path.exists())
        .collect();
    files.extend(SafetensorsSource::files(folder)?.1);
    content(&files)
}

/// Names and contents, in order.
fn content(files: &[PathBuf]) -> Result<String> {
    let mut parts = Vec::new();
    for file in files {
        // A single file's name is only where it lies.
        if files.len() > 1 {
            parts.push(file.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
        parts.push(Content::of_file(file).map_err(Error::file(file))?.to_string());
    }
    Ok(Content::of_texts(parts).to_string())
}
