//! Adapters in PEFT's own format: `adapter_config.json` and `adapter_model.safetensors`.

use std::collections::BTreeMap;
use std::path::Path;

use catamount_search::Stream;
use serde_json::{Value, json};

use crate::checkpoint::{Numbers, SafetensorsSource, Source, write_safetensors, write_whole};
use crate::names::peft_name;
use crate::{Adapter, Backend, Config, Error, LoraConfig, Result, TARGETS};

/// Saves an adapter so that PEFT can load it; `base` names the base model in its configuration. The
/// weights come last.
pub fn save_adapter<B: Backend>(
    backend: &B,
    adapter: &Adapter<B>,
    base: &str,
    folder: &Path,
) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let c = &adapter.config;
    let config = json!({
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base,
        "inference_mode": true,
        "r": c.rank, "lora_alpha": c.alpha,
        "lora_dropout": f64::from((c.dropout * 1e6).round()) / 1e6,
        "target_modules": c.targets, "bias": "none", "fan_in_fan_out": false, "use_rslora": false,
        "use_dora": false,
        "init_lora_weights": true,
    });
    let config = serde_json::to_string_pretty(&config).expect("JSON of plain values");
    write_whole(&folder.join("adapter_config.json"), config.as_bytes())?;
    let mut tensors = BTreeMap::new();
    for (l, layer) in adapter.layers.iter().enumerate() {
        for lora in layer.iter().flatten() {
            let (a, b) = (lora.a.to_host(backend)?, lora.b.to_host(backend)?);
            let (rank, inputs) = (c.rank, lora.a.shape[1]);
            let mut row = 0;
            for (i, (part, target)) in lora.parts.iter().zip(&lora.targets).enumerate() {
                let a = a[i * rank * inputs..(i + 1) * rank * inputs].to_vec();
                let b = b[row * rank..(row + part.len()) * rank].to_vec();
                tensors.insert(peft_name(l, *target, "A"), Numbers::new(vec![rank, inputs], a));
                tensors.insert(peft_name(l, *target, "B"), Numbers::new(vec![part.len(), rank], b));
                row += part.len();
            }
        }
    }
    write_safetensors(&folder.join("adapter_model.safetensors"), tensors)
}

/// Loads an adapter that PEFT or [`save_adapter`] wrote, for a base of this shape; `trained` makes
/// it trainable.
pub fn load_adapter<B: Backend>(
    backend: &B,
    model: &Config,
    folder: &Path,
    trained: bool,
) -> Result<Adapter<B>> {
    let config = read_config(&folder.join("adapter_config.json"))?;
    let path = folder.join("adapter_model.safetensors");
    let source = SafetensorsSource::open_files(path.clone(), vec![path.clone()])?;
    // Before anything of this rank is allocated, the file must hold something of this rank.
    let first = TARGETS.iter().position(|(name, _)| config.targets.iter().any(|t| t == name));
    if let Some(target) = first {
        let (name, inputs) = (peft_name(0, target, "A"), TARGETS[target].1.shape(model).inputs);
        let expected = vec![config.rank, inputs];
        match source.shape(&name) {
            Some(shape) if shape == expected => {}
            Some(shape) => {
                return Err(Error::Shape { path, name, expected, got: shape.to_vec() });
            }
            None => return Err(Error::MissingTensor { path, name }),
        }
    }
    let mut adapter = Adapter::new(backend, model, config, trained, Stream::new(0))?;
    let rank = adapter.config.rank;
    let mut read = 0;
    let mut numbers = |name: String, expected: Vec<usize>| -> Result<Vec<f32>> {
        let Some((got, numbers)) = source.tensor(&name)? else {
            return Err(Error::MissingTensor { path: path.clone(), name });
        };
        if got != expected {
            return Err(Error::Shape { path: path.clone(), name, expected, got });
        }
        read += 1;
        Ok(numbers)
    };
    for (l, layer) in adapter.layers.iter_mut().enumerate() {
        for lora in layer.iter_mut().flatten() {
            let (inputs, mut row) = (lora.a.shape[1], 0);
            for (i, (part, target)) in lora.parts.iter().zip(&lora.targets).enumerate() {
                let a = numbers(peft_name(l, *target, "A"), vec![rank, inputs])?;
                let b = numbers(peft_name(l, *target, "B"), vec![part.len(), rank])?;
                backend.upload(&a, &mut lora.a.value, i * rank * inputs)?;
                backend.upload(&b, &mut lora.b.value, row * rank)?;
                row += part.len();
            }
        }
    }
    if read < source.names().count() {
        let most = model.layers;
        let reason = format!(
            "it holds more than the LoRA matrices of a model of {most} layers; it belongs to \
             another base"
        );
        return Err(Error::format(&path, reason));
    }
    Ok(adapter)
}

fn read_config(path: &Path) -> Result<LoraConfig> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    let v: Value = serde_json::from_str(&text).map_err(|e| Error::format(path, e.to_string()))?;
    let refuse = |reason: String| Err(Error::format(path, reason));
    if v["peft_type"] != "LORA" {
        return refuse(format!("`peft_type` is {}; only LORA is known here", v["peft_type"]));
    }
    for key in ["use_dora", "use_rslora", "fan_in_fan_out"] {
        if v[key] == true {
            return refuse(format!("`{key}` is not known here"));
        }
    }
    for key in ["modules_to_save", "layers_to_transform", "rank_pattern", "alpha_pattern"] {
        let empty = v[key].is_null() || v[key].as_object().is_some_and(|o| o.is_empty());
        if !empty {
            return refuse(format!("`{key}` is not known here"));
        }
    }
    if v["bias"].as_str().is_some_and(|b| b != "none") {
        return refuse(format!("`bias` is {}; only none is known here", v["bias"]));
    }
    let targets: Vec<String> = match &v["target_modules"] {
        Value::String(s) if s == "all-linear" => {
            TARGETS.iter().map(|(name, _)| name.to_string()).collect()
        }
        Value::Array(list) => {
            let last = |s: &str| s.rsplit('.').next().unwrap_or(s).to_string();
            let mut given: Vec<String> = list.iter().filter_map(|t| t.as_str()).map(last).collect();
            // PEFT writes a set, in any order.
            given.sort_by_key(|t| TARGETS.iter().position(|(name, _)| name == t));
            given
        }
        other => return refuse(format!("`target_modules` is {other}; a list of names is needed")),
    };
    let Some(rank) = v["r"].as_u64().filter(|r| *r > 0) else {
        return refuse("`r` is missing or not a number".into());
    };
    Ok(LoraConfig {
        rank: rank as usize,
        alpha: v["lora_alpha"].as_f64().unwrap_or(8.0) as f32,
        dropout: v["lora_dropout"].as_f64().unwrap_or(0.0) as f32,
        targets,
    })
}
