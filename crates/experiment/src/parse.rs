//! From the file as it is written to an experiment that can be run. Everything that can be refused
//! is refused here, before any work starts, with the file, the line and the key.

mod objectives;
mod policy;

use std::path::Path;
use std::time::Duration;

use catamount_base::nearest;
use catamount_calibration::LEAST_THEOREMS;
use catamount_model::Config;
use catamount_search::{Overrides, SettingError, Value};
use catamount_train::Recipe;

use crate::error::{Error, Result};
use crate::experiment::{
    Data, Environment, Evaluation, Experiment, ModelChoice, PriorChoice, TraceChoice,
};
use crate::file::{DataFile, EvaluationFile, ExperimentFile, ModelFile, ObjectiveName, ProverName};
use crate::locate::Layout;

// The largest sizes that are not taken for a slip of the pen. Memory is asked for by all of them.
pub(crate) const WIDEST: usize = 1 << 14;
pub(crate) const DEEPEST: usize = 256;
pub(crate) const VOCABULARY: usize = 1 << 20;
pub(crate) const POSITIONS: usize = 1 << 18;
pub(crate) const BUDGET: u64 = 1 << 20;
pub(crate) const TACTIC: usize = 1 << 14;
pub(crate) const BATCH: usize = 1 << 14;
pub(crate) const CONCURRENCY: usize = 1 << 17;
pub(crate) const FOLDS: usize = 20;
pub(crate) const REQUESTS: usize = 4096;
/// Parameters of a new model.
const LARGEST: f64 = 2e10;
/// Tokens being decoded at once.
const DECODED: usize = 1 << 23;
/// Ten years, in seconds: longer is no limit at all.
const LONGEST: f64 = 3.2e8;

/// Settings of a deployment that have a place of their own in the file.
pub(crate) const ELSEWHERE: [&str; 4] = ["budget", "temperature", "max_tokens", "distinct"];

/// A setting that cannot be followed.
struct Refusal {
    key: String,
    reason: String,
}

type Checked<T> = std::result::Result<T, Refusal>;

fn refuse<T>(key: impl Into<String>, reason: impl Into<String>) -> Checked<T> {
    Err(Refusal { key: key.into(), reason: reason.into() })
}

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
    let data = data(&file.data)?;
    let model = model(&file.model)?;
    recipe("warm_up", &file.warm_up)?;
    recipe("branch", &file.branch)?;
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
    let evaluation = evaluation(&file.evaluation)?;
    between("folds", file.folds, 2, FOLDS)?;
    let objectives = objectives::objectives(&file, &data, &evaluation)?;
    let auto = file.objectives.iter().position(|o| o.objective == ObjectiveName::Auto);
    let tune = objectives::tune(&file.tune, &file.branch)?;
    if let Some(index) = auto {
        objectives::candidates(index, &objectives)?;
        objectives::probabilities("probabilities", file.probabilities, &file, &data)?;
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

fn data(file: &DataFile) -> Checked<Data> {
    let only = |key: &str, given: bool, prover: &str| {
        if given {
            refuse(format!("data.{key}"), format!("is for {prover}, not for this environment"))
        } else {
            Ok(())
        }
    };
    let environment = match file.environment {
        ProverName::Metamath => {
            only("project", file.project.is_some(), "Lean")?;
            let Some(database) = file.database.clone() else {
                return refuse(
                    "data.database",
                    "is missing: the Metamath database, such as \"set.mm\"",
                );
            };
            Environment::Metamath { database, first: file.first }
        }
        ProverName::Lean => {
            only("database", file.database.is_some(), "Metamath")?;
            only("first", file.first.is_some(), "Metamath")?;
            Environment::Lean { project: file.project.clone() }
        }
    };
    let traces = match (&file.traces, &file.train, &file.valid, &file.test) {
        (None, None, None, None) => TraceChoice::Own,
        (Some(traces), None, None, None) => TraceChoice::File(traces.clone()),
        (None, Some(train), Some(valid), Some(test)) => {
            TraceChoice::Parts { train: train.clone(), valid: valid.clone(), test: test.clone() }
        }
        (Some(_), ..) => {
            return refuse(
                "data.traces",
                "stands beside a part; give either one file to be split, or train, valid and test",
            );
        }
        _ => {
            let missing = [("train", &file.train), ("valid", &file.valid), ("test", &file.test)];
            let missing = missing.iter().find(|(_, path)| path.is_none());
            let key = missing.map_or("train", |(key, _)| key);
            return refuse(
                format!("data.{key}"),
                "is missing: a benchmark's parts are train, valid and test",
            );
        }
    };
    if traces == TraceChoice::Own
        && let Environment::Lean { project: Some(project) } = &environment
    {
        return refuse(
            "data.traces",
            format!(
                "is missing: trace the project first, with `catamount data trace-lean PATH \
                 --project {} --out traces.jsonl`",
                project.display()
            ),
        );
    }
    if traces != TraceChoice::Own && file.first.is_some() {
        return refuse("data.first", "is for the database's own proofs, not for a file of traces");
    }
    positive("data.first", file.first)?;
    positive("data.limit", file.limit)?;
    Ok(Data {
        environment,
        traces,
        origin: file.source.clone(),
        steps: file.steps,
        split: file.split,
        limit: file.limit,
    })
}

fn model(file: &ModelFile) -> Checked<ModelChoice> {
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

fn recipe(table: &str, recipe: &Recipe) -> Checked<()> {
    match recipe.check() {
        Ok(()) => Ok(()),
        Err(catamount_train::Error::Setting { key, value, wanted }) => {
            refuse(format!("{table}.{key}"), format!("is {value}; it must be {wanted}"))
        }
        Err(other) => refuse(table, other.to_string()),
    }
}

fn evaluation(file: &EvaluationFile) -> Checked<Evaluation> {
    let mut overrides = Overrides::default();
    for (key, value) in &file.search {
        let path = format!("evaluation.search.{key}");
        if ELSEWHERE.contains(&key.as_str()) {
            return refuse(path, "is not a parameter of a strategy; it belongs in [evaluation]");
        }
        overrides.set(key, value.clone()).map_err(|error| setting(&path, error))?;
    }
    between("evaluation.max_tokens", file.max_tokens, 1, TACTIC)?;
    for (key, value) in [
        ("temperature", Value::Real(file.temperature)),
        ("distinct", Value::Flag(file.distinct)),
        ("max_tokens", Value::Whole(file.max_tokens as u64)),
    ] {
        let path = format!("evaluation.{key}");
        overrides.set(key, value).map_err(|error| setting(&path, error))?;
    }
    if file.strategies.is_empty() {
        return refuse("evaluation.strategies", "is empty; at least one strategy is needed");
    }
    once("evaluation.strategies", &file.strategies)?;
    if file.budgets.is_empty() {
        return refuse("evaluation.budgets", "is empty; at least one budget is needed");
    }
    for (index, &budget) in file.budgets.iter().enumerate() {
        between(&format!("evaluation.budgets[{index}]"), budget, 1, BUDGET)?;
    }
    once("evaluation.budgets", &file.budgets)?;
    between("evaluation.concurrency", file.concurrency, 1, CONCURRENCY)?;
    between("evaluation.batch", file.batch, 1, BATCH)?;
    if file.batch * file.max_tokens > DECODED {
        return refuse(
            "evaluation.batch",
            format!(
                "is {}, which with max_tokens = {} decodes {} tokens at once; at most {DECODED} \
                 are allowed",
                file.batch,
                file.max_tokens,
                file.batch * file.max_tokens
            ),
        );
    }
    positive("evaluation.limit", file.limit)?;
    between("evaluation.trials", file.trials, LEAST_THEOREMS, 1_000_000)?;
    Ok(Evaluation {
        strategies: file.strategies.clone(),
        budgets: file.budgets.clone(),
        overrides,
        cells: file.cells,
        steps: file.steps,
        limit: file.limit,
        concurrency: file.concurrency,
        batch: file.batch,
        trees: file.trees,
        trials: file.trials,
        time_limit: seconds("evaluation.time_limit", file.time_limit)?,
        theorem_time_limit: seconds("evaluation.theorem_time_limit", file.theorem_time_limit)?,
    })
}

/// What a deployment has against a setting, by the name it has in the file.
fn setting(path: &str, error: SettingError) -> Refusal {
    let reason = match &error {
        SettingError::Refused { value, allowed, .. } => {
            format!("is {value}; it must be {allowed}")
        }
        other => other.to_string(),
    };
    Refusal { key: path.to_string(), reason }
}

fn between<T: PartialOrd + std::fmt::Display>(
    key: &str,
    value: T,
    least: T,
    most: T,
) -> Checked<()> {
    if value < least || value > most {
        return refuse(key, format!("is {value}; it must be from {least} to {most}"));
    }
    Ok(())
}

fn positive(key: &str, value: Option<usize>) -> Checked<()> {
    match value {
        Some(0) => refuse(key, "is 0; it must be at least 1, or be left out for no limit"),
        _ => Ok(()),
    }
}

fn seconds(key: &str, value: Option<f64>) -> Checked<Option<Duration>> {
    let Some(seconds) = value else { return Ok(None) };
    if !(seconds > 0.0 && seconds <= LONGEST) {
        return refuse(
            key,
            format!("is {seconds}; it must be a positive number of seconds, or be left out"),
        );
    }
    Ok(Some(Duration::from_secs_f64(seconds)))
}

/// Every value at most once.
fn once<T: PartialEq + std::fmt::Display>(key: &str, values: &[T]) -> Checked<()> {
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            return refuse(format!("{key}[{index}]"), format!("{value} stands there twice"));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "parse/tests.rs"]
mod tests;
