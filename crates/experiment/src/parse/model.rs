//! `[model]`, and the recipes that it is trained with.

use catamount_model::Config;
use catamount_train::Recipe;

use super::checks::{Checked, between, refuse};
use crate::experiment::ModelChoice;
use crate::file::ModelFile;
use crate::limits::{DEEPEST, POSITIONS, VOCABULARY, WIDEST};

/// Parameters of a new model.
const LARGEST: f64 = 2e10;

pub(super) fn model(file: &ModelFile) -> Checked<ModelChoice> {
    let shape = [
        ("hidden", file.hidden, 1, WIDEST),
        ("layers", file.layers, 1, DEEPEST),
        ("vocab", file.vocab, 1, VOCABULARY),
        ("positions", file.positions, 2, POSITIONS),
    ];
    if let Some(base) = &file.base {
        if let Some((key, ..)) = shape.iter().find(|(_, value, ..)| value.is_some()) {
            return refuse(
                format!("model.{key}"),
                "is for a new model; one that is there (`base`) has its own",
            );
        }
        if file.tokenizer.is_some() {
            return refuse("model.tokenizer", "is for a new model; one that is there has its own");
        }
        if base.trim().is_empty() {
            return refuse("model.base", "is empty: a folder, a GGUF file or a name on the hub");
        }
        return Ok(ModelChoice::Pretrained { base: base.clone() });
    }
    if file.arithmetic.is_some() {
        return refuse("model.arithmetic", "is for a model that is there (`base`), not a new one");
    }
    let mut sizes = [0; 4];
    for (size, (key, value, least, most)) in sizes.iter_mut().zip(shape) {
        let key = format!("model.{key}");
        let Some(value) = value else {
            return refuse(
                key,
                "is missing: give `base` for a model that is there, or hidden, layers, vocab, \
                 positions and tokenizer for a new one",
            );
        };
        between(&key, value, least, most)?;
        *size = value;
    }
    let [hidden, layers, vocab, positions] = sizes;
    let Some(tokenizer) = file.tokenizer else {
        return refuse("model.tokenizer", "is missing: symbols or bpe");
    };
    // In f64, which cannot overflow here.
    let config = Config::small(vocab, hidden, layers, positions);
    let width = hidden as f64;
    let block = width * (4.0 * width + 3.0 * config.intermediate as f64);
    let parameters = vocab as f64 * width + layers as f64 * block;
    if parameters > LARGEST {
        return refuse(
            "model.hidden",
            format!(
                "makes a new model of {:.0} billion parameters with these layers and vocabulary; \
                 at most {:.0} are allowed",
                parameters / 1e9,
                LARGEST / 1e9
            ),
        );
    }
    Ok(ModelChoice::Scratch { hidden, layers, vocab, positions, tokenizer })
}

pub(super) fn recipe(table: &str, recipe: &Recipe) -> Checked<()> {
    match recipe.check() {
        Ok(()) => Ok(()),
        Err(catamount_train::Error::Setting { key, value, wanted }) => {
            refuse(format!("{table}.{key}"), format!("is {value}; it must be {wanted}"))
        }
        Err(other) => refuse(table, other.to_string()),
    }
}
