//! What a model needs before training, and what is left of it afterwards.

use std::path::Path;

use catamount_base::AtomicFolder;
use catamount_model::{Adapter, Backend, LoraConfig, Model, Tokenizer, save, save_adapter};
use catamount_search::Stream;

use crate::{Card, Error, Recipe, Result};

/// Makes a model trainable as the recipe says. With LoRA the base is frozen and a fresh adapter is
/// put in force, unless one of this shape already is (the warm-up's, for a branch), which is kept;
/// one of another shape is refused. Without LoRA, the base must have been loaded as trained.
pub fn prepare<B: Backend>(model: &mut Model<B>, recipe: &Recipe) -> Result<()> {
    recipe.check()?;
    let refuse = |reason: String| Err(Error::Recipe(reason));
    let Some(lora) = &recipe.lora else {
        if model.adapter.is_some() {
            return refuse(
                "the model carries an adapter but there is no [lora] table; add one, or \
             remove the adapter"
                    .into(),
            );
        }
        if model.base().any(|p| p.grad.is_none()) {
            return refuse(
                "without a [lora] table every parameter is trained, but the base was \
             loaded as frozen"
                    .into(),
            );
        }
        return Ok(());
    };
    let config = LoraConfig::from(lora.clone());
    let Some(adapter) = &mut model.adapter else {
        let seed = Stream::new(recipe.seed).named("adapter");
        let adapter = Adapter::new(&*model.backend, &model.config, config, true, seed)?;
        model.base_mut().for_each(|p| p.grad = None);
        model.swap_adapter(Some(adapter));
        return Ok(());
    };
    let shape = |c: &LoraConfig| {
        let mut targets = c.targets.clone();
        targets.sort_unstable();
        format!("rank {}, alpha {}, targets {}", c.rank, c.alpha, targets.join(" "))
    };
    let (there, wanted) = (shape(&adapter.config), shape(&config));
    if there != wanted {
        return refuse(format!(
            "the model carries an adapter of {there}, but the [lora] table says {wanted}"
        ));
    }
    if adapter.parameters().any(|p| p.grad.is_none()) {
        return refuse("the adapter was loaded as frozen; load it as trained".into());
    }
    adapter.config.dropout = config.dropout;
    model.base_mut().for_each(|p| p.grad = None);
    Ok(())
}

/// Writes what was trained as others read it: the adapter in PEFT's format where there is one
/// (of the card's base model), else the whole model as a Hugging Face folder; and the card beside
/// it. The folder appears whole; one that was there is replaced only then.
pub fn export<B: Backend>(
    model: &Model<B>,
    tokenizer: &Tokenizer,
    card: &Card,
    folder: &Path,
) -> Result<()> {
    let exported = AtomicFolder::create(folder).map_err(Error::file(folder))?;
    match &model.adapter {
        Some(adapter) => {
            let base = card.base.as_deref().unwrap_or_default();
            save_adapter(&*model.backend, adapter, base, exported.path())?;
        }
        None => save(model, tokenizer, exported.path())?,
    }
    let card = Card { adapter: model.adapter.is_some(), ..card.clone() };
    let path = exported.path().join("README.md");
    catamount_base::write(&path, card.to_string()).map_err(Error::file(&path))?;
    exported.commit().map_err(Error::file(folder))
}
