//! An experiment's file as it is written: every key, its type, its default. The JSON Schema that
//! editors read is generated from these types; what the values mean together is decided once, in
//! [`crate::parse`].

mod objectives;
mod policy;

use std::collections::BTreeMap;
use std::path::PathBuf;

use catamount_calibration::LEAST_THEOREMS;
use catamount_evaluate::Workload;
use catamount_search::{Allowed, Deployment, ParameterHelp, StrategyKind, Value};
use catamount_traces::{Origin, Share, Split, Steps};
use catamount_train::{Probabilities, Recipe};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub(crate) use self::objectives::AUTO;
pub use self::objectives::{
    DeployedTemperature, ObjectiveFile, ObjectiveName, PriorFile, SamplingFile, TemperatureFile,
    TuneFile,
};
pub use self::policy::PolicyFile;

/// Settings of a deployment that have a place of their own in the file.
pub(crate) const ELSEWHERE: [&str; 4] = ["budget", "temperature", "max_tokens", "distinct"];

/// One study: data, a warm-up, one branch for each objective, and the searches that compare them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A Catamount experiment")]
pub struct ExperimentFile {
    /// For titles.
    pub name: String,
    /// Seed of the split, of initialisation and of every search; recipes have their own.
    #[serde(default = "seed")]
    pub seed: u64,
    /// Several seeds as one study: everything is done at each of them, recipes included, and the
    /// report pools them, the theorem being the unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(range(min = 0)))]
    pub seeds: Vec<u64>,
    /// Seed of the split alone, so that seeds share their data; each has a split of its own if it
    /// is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_seed: Option<u64>,
    /// Where traces come from.
    pub data: DataFile,
    /// What is trained: a model that is there (`base`), or a new one (everything else).
    pub model: ModelFile,
    /// The common ancestor: cross-entropy.
    #[serde(default)]
    pub warm_up: Recipe,
    /// Every branch: the same recipe, another weight.
    #[serde(default)]
    pub branch: Recipe,
    /// Which probabilities of demonstrated tactics weights are computed from, unless an objective
    /// says otherwise; if not given, mapped ones where the surrogate is fitted, and elsewhere the
    /// training ones, the paper's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probabilities: Option<Probabilities>,
    /// Cross-fitted probabilities: parts of the training traces, each of which is judged by a model
    /// trained on the others.
    #[serde(default = "folds")]
    #[schemars(range(min = 2, max = crate::limits::FOLDS))]
    pub folds: usize,
    /// What the branches are trained with.
    #[schemars(length(min = 1))]
    pub objectives: Vec<ObjectiveFile>,
    /// What they are searched with.
    #[serde(default)]
    pub evaluation: EvaluationFile,
    /// What `auto` chooses among.
    #[serde(default)]
    pub tune: TuneFile,
    /// A server that samples in place of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyFile>,
}

fn seed() -> u64 {
    42
}

fn folds() -> usize {
    3
}

/// A prover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProverName {
    /// Metamath.
    Metamath,
    /// Lean 4.
    Lean,
}

/// One corpus, or several that are searched together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "the recipe of a corpus, or a list of recipes")]
pub enum Corpora {
    /// One.
    One(String),
    /// Several.
    Several(#[schemars(length(min = 1))] Vec<String>),
}

/// Where traces come from: the library's own proofs, one file that is split (`traces`), or the
/// official parts of a benchmark (`train`, `valid` and `test`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataFile {
    /// The prover.
    pub environment: ProverName,
    /// Metamath: a database, by path or by name. Its own proofs are the traces, unless a file is
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<PathBuf>,
    /// Metamath: only the first so many theorems of the database. set.mm begins with logic, where
    /// few labels say most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub first: Option<usize>,
    /// Lean: the Lake project, or folder of files, that the traces' theorems live in. The bundled
    /// library if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// Lean without a toolchain: the recipe of a corpus, by name or by path, that the traces'
    /// theorems live in, or a list of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corpus: Option<Corpora>,
    /// The folder with a checkout of each corpus, and of each that it depends on, under their
    /// names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkouts: Option<PathBuf>,
    /// Lean: how many processes search, and what each may spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lean: Option<LeanFile>,
    /// A file of traces in any known format, split by the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<PathBuf>,
    /// A benchmark's own traces to train on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<PathBuf>,
    /// A benchmark's own traces to choose settings on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<PathBuf>,
    /// A benchmark's own traces to report results on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// The repository and commit behind the traces. Files in LeanDojo's format say so themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OriginSchema>")]
    pub source: Option<Origin>,
    /// Lengths of the traces to train on, such as `1-10`.
    #[serde(with = "text", default = "every_length")]
    #[schemars(with = "String", regex(pattern = STEPS))]
    pub steps: Steps,
    /// Shares of train, valid and test: `0.9,0.05,0.05` or `rest,500,500`.
    #[serde(with = "text", default = "nine_tenths")]
    #[schemars(with = "String")]
    pub split: Split,
    /// Train on at most so many traces, always the same ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
}

/// How Lean is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeanFile {
    /// Processes that serve searches; with judges beside them, each takes about 1 GB. As many as
    /// processors and memory allow where one process does the study; two for each of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = crate::limits::WORKERS))]
    pub workers: Option<usize>,
    /// Lean's own limit on a tactic, in the unit of Lean's maxHeartbeats; 200,000 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = crate::limits::HEARTBEATS))]
    pub heartbeats: Option<u64>,
    /// Wall-clock cap per tactic, in seconds; 60 if left out. A tactic that reaches it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = crate::limits::LONGEST), extend("exclusiveMinimum" = 0))]
    pub tactic_limit: Option<f64>,
    /// Wall-clock cap per check of a finished proof, in seconds; 120 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = crate::limits::LONGEST), extend("exclusiveMinimum" = 0))]
    pub check_limit: Option<f64>,
}

/// A range of steps, as text.
const STEPS: &str = r"^[1-9][0-9]*(-([1-9][0-9]*)?)?$";

/// A repository at a commit.
#[derive(JsonSchema)]
#[schemars(rename = "Origin", deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is wanted: `Origin` is another crate's")]
struct OriginSchema {
    /// The repository's address.
    url: String,
    /// The commit.
    commit: String,
}

fn every_length() -> Steps {
    Steps::ALL
}

fn nine_tenths() -> Split {
    Split { train: Share::Fraction(0.9), valid: Share::Fraction(0.05), test: Share::Fraction(0.05) }
}

/// How a new tokenizer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenizerKind {
    /// A token for each symbol between spaces: Metamath.
    Symbols,
    /// Byte-pair encoding.
    Bpe,
}

/// What is trained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelFile {
    /// A model that is there: a Hugging Face folder, a GGUF file, or a name on the hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What the products of a frozen base multiply, in training adapters on it (`lora`) and in
    /// sampling; if not given, the device's own numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<Arithmetic>,
    /// A new model's width.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = crate::limits::WIDEST))]
    pub hidden: Option<usize>,
    /// A new model's blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = crate::limits::DEEPEST))]
    pub layers: Option<usize>,
    /// Tokens in a new model's vocabulary.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = crate::limits::VOCABULARY))]
    pub vocab: Option<usize>,
    /// A new model's longest sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = crate::limits::POSITIONS))]
    pub positions: Option<usize>,
    /// A new model's tokenizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerKind>,
}

/// What products multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arithmetic {
    /// Numbers of eight bits (e4m3), each row with a scale of its own: on NVIDIA GPUs of compute
    /// capability 8.9 or newer. Norms, embedding, head and adapters stay in bf16.
    Fp8,
}

/// Which cells are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cells {
    /// `ce` and `ua` under every strategy; the others under the strategies they model.
    Matched,
    /// Every objective under every strategy.
    All,
}

/// How the branches are searched. The defaults are the paper's, on every held-out theorem and
/// without its limits on time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluationFile {
    /// Strategies to deploy.
    #[schemars(schema_with = "strategies")]
    pub strategies: Vec<StrategyKind>,
    /// Expansions per theorem.
    #[schemars(length(min = 1), inner(range(min = 1, max = crate::limits::BUDGET)))]
    pub budgets: Vec<u64>,
    /// Which (objective, strategy) pairs.
    pub cells: Cells,
    /// Demonstrated lengths of the held-out theorems.
    #[serde(with = "text")]
    #[schemars(with = "String", regex(pattern = STEPS))]
    pub steps: Steps,
    /// At most so many theorems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// Sampling temperature.
    #[schemars(range(min = 0.001, max = 1000.0))]
    pub temperature: f64,
    /// Sample no tactic twice at a node.
    pub distinct: bool,
    /// Longest tactic, in tokens.
    #[schemars(range(min = 1, max = crate::limits::TACTIC))]
    pub max_tokens: usize,
    /// Searches in flight.
    #[schemars(range(min = 1, max = crate::limits::CONCURRENCY))]
    pub concurrency: usize,
    /// Samples decoded together.
    #[schemars(range(min = 1, max = crate::limits::BATCH))]
    pub batch: usize,
    /// Theorems (the first of the pool) whose whole search trees are kept for the viewer.
    pub trees: usize,
    /// At most so many validation theorems are searched to fit surrogates to.
    #[schemars(range(min = LEAST_THEOREMS, max = crate::limits::TRIALS))]
    pub trials: usize,
    /// Wall-clock cap per search, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = crate::limits::LONGEST), extend("exclusiveMinimum" = 0))]
    pub time_limit: Option<f64>,
    /// Wall-clock cap per theorem over all strategies of one objective, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = crate::limits::LONGEST), extend("exclusiveMinimum" = 0))]
    pub theorem_time_limit: Option<f64>,
    /// The strategies' parameters.
    #[serde(default)]
    #[schemars(schema_with = "parameters")]
    pub search: BTreeMap<String, Value>,
}

impl Default for EvaluationFile {
    fn default() -> Self {
        EvaluationFile {
            strategies: StrategyKind::ALL.to_vec(),
            budgets: vec![256],
            cells: Cells::Matched,
            steps: Steps { min: 2, max: Some(5) },
            limit: None,
            temperature: 0.8,
            distinct: false,
            max_tokens: 128,
            concurrency: Workload::CONCURRENCY,
            batch: Workload::BATCH,
            trees: 24,
            trials: 400,
            time_limit: None,
            theorem_time_limit: None,
            search: BTreeMap::new(),
        }
    }
}

fn strategies(_: &mut SchemaGenerator) -> Schema {
    let names = StrategyKind::ALL.map(StrategyKind::name);
    json_schema!({
        "type": "array", "minItems": 1, "uniqueItems": true,
        "items": { "type": "string", "enum": names },
    })
}

/// What may stand in `[evaluation.search]`.
fn parameters(_: &mut SchemaGenerator) -> Schema {
    let own = StrategyKind::ALL.into_iter().flat_map(StrategyKind::parameters);
    let common = Deployment::common_parameters()
        .into_iter()
        .filter(|parameter| !ELSEWHERE.contains(&parameter.key.as_str()));
    let properties: serde_json::Map<String, serde_json::Value> =
        common.chain(own).map(|parameter| (parameter.key.clone(), schema_of(&parameter))).collect();
    json_schema!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// The schema of one parameter.
fn schema_of(parameter: &ParameterHelp) -> serde_json::Value {
    use serde_json::json;

    let mut schema = match &parameter.allowed {
        Allowed::Whole(range) => {
            json!({ "type": "integer", "minimum": range.start(), "maximum": range.end() })
        }
        Allowed::Optional(range) => json!({ "anyOf": [
            { "type": "integer", "minimum": range.start(), "maximum": range.end() },
            { "const": "none" },
        ] }),
        Allowed::Real(range) => {
            json!({ "type": "number", "minimum": range.start(), "maximum": range.end() })
        }
        Allowed::Flag => json!({ "type": "boolean" }),
    };
    schema["description"] = json!(format!("{}: {}.", parameter.help, parameter.allowed));
    schema["default"] = serde_json::to_value(&parameter.default).unwrap_or_default();
    schema
}

/// Temperatures to sample at: what a deployment takes.
pub(crate) fn temperatures(_: &mut SchemaGenerator) -> Schema {
    let known = Deployment::common_parameters();
    let items = known.iter().find(|parameter| parameter.key == "temperature").map(schema_of);
    json_schema!({ "type": "array", "minItems": 1, "items": items })
}

/// Values that are written as text: `2-5`, `0.9,0.05,0.05`, `bfs`.
mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
