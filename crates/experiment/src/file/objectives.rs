//! What the branches are trained with, and what `auto` chooses among.

use std::borrow::Cow;
use std::fmt;

use catamount_objective::Objective;
use catamount_report::MATCHED;
use catamount_train::Probabilities;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text;

/// One branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveFile {
    /// What it is trained with.
    #[serde(with = "text")]
    #[schemars(schema_with = "objectives")]
    pub objective: ObjectiveName,
    /// Name in tables; made from the rest if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Expansions to train for; every evaluation budget in turn if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = crate::limits::BUDGET))]
    pub budget: Option<u64>,
    /// The off-trace prior: what a miss is believed to cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<PriorFile>,
    /// Which probabilities its weights are computed from; the experiment's if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probabilities: Option<Probabilities>,
    /// The temperature that log p is taken at in weights and loss; the branch recipe's if not
    /// given, and with a fitted prior the deployed one, which no other may replace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<TemperatureFile>,
    /// Weights below this are raised to it; the branch recipe's `weights.min` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub floor: Option<f64>,
    /// How it is sampled in its cells, and in the searches its surrogate is fitted to, where that
    /// is not the evaluation's way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed: Option<SamplingFile>,
}

/// How an objective is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingFile {
    /// Sampling temperature; the evaluation's if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 1000.0))]
    pub temperature: Option<f64>,
    /// Sample no tactic twice at a node; as the evaluation does if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<bool>,
}

/// The temperature that a branch is trained at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a temperature, or \"deployed\" for that of the evaluation")]
pub enum TemperatureFile {
    /// Set by hand.
    #[schemars(schema_with = "trained_temperature")]
    Given(f64),
    /// That of the evaluation.
    Named(DeployedTemperature),
}

/// `"deployed"`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeployedTemperature {
    /// The temperature that the branch will be sampled at.
    Deployed,
}

/// An off-trace prior.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PriorFile {
    /// Set by hand.
    Given(GivenPrior),
    /// `"fitted"`: to the warm-up model's own searches of validation theorems.
    Fitted,
}

/// An off-trace prior set by hand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenPrior {
    /// Expansions that a miss consumes.
    #[schemars(range(min = 1))]
    pub kappa: f64,
    /// Probability that a miss is never recovered from.
    #[serde(default)]
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub absorption: f64,
}

/// The name of the fitted prior.
const FITTED: &str = "fitted";

impl Serialize for PriorFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            PriorFile::Given(given) => given.serialize(serializer),
            PriorFile::Fitted => serializer.serialize_str(FITTED),
        }
    }
}

impl<'de> Deserialize<'de> for PriorFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrTable;

        impl<'de> Visitor<'de> for NameOrTable {
            type Value = PriorFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{{ kappa = 5, absorption = 0.02 }} or \"{FITTED}\"")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<PriorFile, E> {
                match name {
                    FITTED => Ok(PriorFile::Fitted),
                    other => Err(E::custom(format!(
                        "unknown prior `{other}`; give {{ kappa = 5, absorption = 0.02 }} or \
                         \"{FITTED}\""
                    ))),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PriorFile, A::Error> {
                GivenPrior::deserialize(MapAccessDeserializer::new(map)).map(PriorFile::Given)
            }
        }

        deserializer.deserialize_any(NameOrTable)
    }
}

impl JsonSchema for PriorFile {
    fn schema_name() -> Cow<'static, str> {
        "Prior".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let given = generator.subschema_for::<GivenPrior>();
        json_schema!({ "anyOf": [given, { "const": FITTED }] })
    }
}

/// The candidates of `auto`, which are compared on validation theorems with the real search.
/// Cross-entropy at every temperature is always among them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TuneFile {
    /// Temperatures to sample every candidate at; each is trained for the one it is sampled at.
    #[schemars(schema_with = "super::temperatures")]
    pub temperatures: Vec<f64>,
    /// Objectives to train with; `ua` and the strategy's own if none are named.
    #[serde(with = "texts", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "several_objectives")]
    pub objectives: Vec<Objective>,
    /// Whether the objective with its surrogate fitted to searches is a candidate.
    pub fitted: bool,
    /// Shares of the deployed budget to train for.
    #[schemars(schema_with = "shares")]
    pub shares: Vec<f64>,
    /// Floors on the weights.
    #[schemars(length(min = 1), inner(range(min = 0, max = 1)))]
    pub floors: Vec<f64>,
    /// At most so many validation theorems.
    #[schemars(range(min = 1))]
    pub theorems: usize,
    /// Which probabilities their weights are computed from; the experiment's if not given, or
    /// mapped ones where those are the training ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probabilities: Option<Probabilities>,
}

impl Default for TuneFile {
    fn default() -> Self {
        TuneFile {
            temperatures: vec![0.8, 1.0, 1.2],
            objectives: Vec::new(),
            fitted: true,
            shares: vec![0.0625],
            floors: vec![0.0],
            theorems: 400,
            probabilities: None,
        }
    }
}

/// What a branch is trained with: an objective, the one that models the deployed strategy, or the
/// best of several candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectiveName {
    /// This one.
    Of(Objective),
    /// Under every strategy the one that models it: a branch for each, and one row in tables.
    Matched,
    /// Whatever is best on validation theorems.
    Auto,
}

/// The name of the choice on validation theorems.
pub(crate) const AUTO: &str = "auto";

impl fmt::Display for ObjectiveName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectiveName::Of(objective) => objective.fmt(f),
            ObjectiveName::Matched => f.pad(MATCHED),
            ObjectiveName::Auto => f.pad(AUTO),
        }
    }
}

impl std::str::FromStr for ObjectiveName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            AUTO => Ok(ObjectiveName::Auto),
            MATCHED => Ok(ObjectiveName::Matched),
            name => match name.parse() {
                Ok(objective) => Ok(ObjectiveName::Of(objective)),
                Err(error) => Err(format!("{error}, {MATCHED}, {AUTO}")),
            },
        }
    }
}

fn trained_temperature(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "number", "exclusiveMinimum": 0, "maximum": catamount_train::HOTTEST })
}

fn shares(_: &mut SchemaGenerator) -> Schema {
    let items = serde_json::json!({
        "type": "number", "exclusiveMinimum": 0, "maximum": crate::limits::SHARE,
    });
    json_schema!({ "type": "array", "items": items })
}

fn objectives(_: &mut SchemaGenerator) -> Schema {
    let names = Objective::ALL.map(Objective::name).into_iter().chain([MATCHED, AUTO]);
    json_schema!({ "type": "string", "enum": names.collect::<Vec<_>>() })
}

fn several_objectives(_: &mut SchemaGenerator) -> Schema {
    let names = Objective::ALL.map(Objective::name);
    json_schema!({ "type": "array", "items": { "type": "string", "enum": names } })
}

/// The same for lists.
mod texts {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<T: Display, S: Serializer>(
        values: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(ToString::to_string))
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect()
    }
}
