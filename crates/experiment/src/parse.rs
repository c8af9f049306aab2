//! From the file as it is written to an experiment that can be run. Everything that can be refused
//! is refused here, before any work starts, with the file, the line and the key.

mod checks;
mod data;
mod evaluation;
mod model;
mod objectives;
mod policy;

use std::path::Path;

use catamount_base::nearest;

use self::checks::{Checked, Refusal, between, once, refuse};
use crate::error::{Error, Result};
use crate::experiment::{Experiment, ModelChoice, PriorChoice};
use crate::file::{ExperimentFile, ObjectiveName};
use crate::limits::FOLDS;
use crate::locate::Layout;

impl Experiment {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        Experiment::parse(&text, &path.display().to_string())
    }

    /// Parses the text of a file; `source` names it in errors.
    pub fn parse(text: &str, source: &str) -> Result<Self> {
        let layout = Layout::of(text);
        let fail = |line: Option<usize>, key: String, reason: String| Error::Setting {
            file: source.to_string(),
            line,
            key,
            reason,
        };
        let file: ExperimentFile = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| layout.line_at(span.start));
            let (key, reason) = explain(&layout, &error);
            fail(line, key, reason)
        })?;
        experiment(file).map_err(|Refusal { key, reason }| fail(layout.line(&key), key, reason))
    }

    /// An experiment whose file was read elsewhere; `source` names it in errors.
    pub(crate) fn of(file: ExperimentFile, source: &str) -> Result<Self> {
        experiment(file).map_err(|Refusal { key, reason }| Error::Setting {
            file: source.to_string(),
            line: None,
            key,
            reason,
        })
    }
}

/// The key that a parser's error is about, and what to do.
fn explain(layout: &Layout<'_>, error: &toml::de::Error) -> (String, String) {
    let message = error.message().trim();
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let inner = error.span().and_then(|span| layout.key(&span));
    let below = |name: &str| inner.as_ref().map_or(name.to_string(), |key| format!("{key}.{name}"));
    match quoted.split_first() {
        Some((missing, _)) if message.starts_with("missing field") => {
            (below(missing), "is missing".to_string())
        }
        Some((unknown, known)) if message.starts_with("unknown field") => {
            let near = nearest(unknown, known.iter().copied());
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            (inner.unwrap_or_else(|| (*unknown).to_string()), format!("{message}{hint}"))
        }
        _ => (inner.unwrap_or_else(|| "the file".to_string()), message.to_string()),
    }
}

fn experiment(file: ExperimentFile) -> Checked<Experiment> {
    let data = data::data(&file.data)?;
    let model = model::model(&file.model)?;
    model::recipe("warm_up", &file.warm_up)?;
    model::recipe("branch", &file.branch)?;
    if matches!(model, ModelChoice::Scratch { .. }) && file.warm_up.lora.is_some() {
        return refuse("warm_up.lora", "adapts a model that is there (`base`), not a new one");
    }
    if file.warm_up.lora.is_some() != file.branch.lora.is_some() {
        let (key, other) =
            if file.branch.lora.is_some() { ("branch", "warm_up") } else { ("warm_up", "branch") };
        return refuse(
            format!("{key}.lora"),
            format!("{other} has no such table; a branch goes on with what the warm-up trained"),
        );
    }
    if file.model.arithmetic.is_some() && file.warm_up.lora.is_none() {
        return refuse(
            "model.arithmetic",
            "is for a frozen base that adapters are trained on; give both recipes a `lora` table, \
             or leave it out",
        );
    }
    let evaluation = evaluation::evaluation(&file.evaluation)?;
    between("folds", file.folds, 2, FOLDS)?;
    let objectives = objectives::objectives(&file, &data, &evaluation)?;
    let auto = file.objectives.iter().position(|o| o.objective == ObjectiveName::Auto);
    let tune = objectives::tune(&file.tune, &file)?;
    if let Some(index) = auto {
        objectives::candidates(index, &objectives)?;
        objectives::probabilities("tune.probabilities", tune.probabilities, &file, &data)?;
    }
    let fitted = objectives.iter().any(|choice| choice.prior == PriorChoice::Fitted);
    if auto.is_some() || fitted {
        objectives::validation(&file.data, fitted || tune.fitted)?;
    }
    once("seeds", &file.seeds)?;
    let policy = policy::policy(&file, &model)?;
    Ok(Experiment {
        name: file.name.clone(),
        seed: file.seed,
        seeds: file.seeds.clone(),
        split_seed: file.split_seed,
        data,
        model,
        warm_up: file.warm_up.clone(),
        branch: file.branch.clone(),
        folds: file.folds,
        objectives,
        evaluation,
        auto: auto.is_some(),
        tune,
        policy,
        file,
    })
}

#[cfg(test)]
#[path = "parse/tests.rs"]
mod tests;
