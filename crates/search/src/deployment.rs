//! A deployment: which search, how long, and how the policy is sampled in it. Everything about a
//! search that a prover, a model and a seed do not say; checked when it is made.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::kind::{StrategyKind, StrategySettings};
use crate::parameter::{Parameter, ParameterHelp, SettingError, Value};
use crate::search::Search;

/// How theorems are searched. The defaults are the paper's.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    strategy: StrategySettings,
    common: Common,
}

/// What every strategy has.
#[derive(Clone, Debug, PartialEq)]
struct Common {
    budget: u64,
    max_depth: u32,
    temperature: f64,
    top_p: f64,
    distinct: bool,
    max_tokens: usize,
}

/// The one place that knows the defaults; a budget has none.
const DEFAULT: Common = Common {
    budget: 0,
    max_depth: 5,
    temperature: 0.8,
    top_p: 1.0,
    distinct: false,
    max_tokens: 128,
};

const COMMON: &[Parameter<Common>] = &[
    Parameter::whole(
        "budget",
        1..=Deployment::MOST_EXPANSIONS,
        "expansions per theorem: sampled tactics, each with its check",
        |s| s.budget,
        |s, v| s.budget = v,
    ),
    Parameter::whole(
        "max_depth",
        1..=1_000_000,
        "longest proof that may be built",
        |s| s.max_depth.into(),
        |s, v| s.max_depth = v as u32,
    ),
    Parameter::real(
        "temperature",
        0.001..=1000.0,
        "sampling temperature",
        |s| s.temperature,
        |s, v| s.temperature = v,
    ),
    Parameter::real(
        "top_p",
        0.001..=1.0,
        "sample among the likeliest tokens that make up this probability",
        |s| s.top_p,
        |s, v| s.top_p = v,
    ),
    Parameter::flag(
        "distinct",
        "sample no tactic twice at a node",
        |s| s.distinct,
        |s, v| s.distinct = v,
    ),
    Parameter::whole(
        "max_tokens",
        1..=Deployment::LONGEST_TACTIC,
        "longest tactic, in tokens",
        |s| s.max_tokens as u64,
        |s, v| s.max_tokens = v as usize,
    ),
];

impl Deployment {
    // The largest sizes that are not taken for a slip of the pen.
    /// The largest budget.
    pub const MOST_EXPANSIONS: u64 = 1 << 20;
    /// The most tokens that a tactic may have.
    pub const LONGEST_TACTIC: u64 = 1 << 14;

    /// A strategy at a budget, otherwise the paper's.
    pub fn new(strategy: StrategyKind, budget: u64) -> Result<Self, SettingError> {
        let deployment = Deployment { strategy: strategy.settings(), common: DEFAULT };
        deployment.with("budget", budget)
    }

    /// A strategy at a budget, with its share of what was overridden.
    pub fn overridden(
        strategy: StrategyKind,
        budget: u64,
        overrides: &Overrides,
    ) -> Result<Self, SettingError> {
        let mut deployment = Deployment::new(strategy, budget)?;
        for (key, value) in &overrides.0 {
            match deployment.set(key, value) {
                // Another strategy's: known, or it would not be among the overrides.
                Err(SettingError::Unknown { .. }) | Ok(()) => {}
                Err(refused) => return Err(refused),
            }
        }
        Ok(deployment)
    }

    /// With one setting changed.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Result<Self, SettingError> {
        self.set(key, &value.into())?;
        Ok(self)
    }

    /// Changes a setting by its name.
    pub fn set(&mut self, key: &str, value: &Value) -> Result<(), SettingError> {
        if let Some(result) = self.strategy.set(key, value) {
            return result;
        }
        let Some(parameter) = COMMON.iter().find(|parameter| parameter.name == key) else {
            let common = COMMON.iter().map(|parameter| parameter.name.to_string());
            let own = self.strategy().parameters().into_iter().map(|parameter| parameter.key);
            let known = common.chain(own).collect();
            return Err(SettingError::Unknown { key: key.to_string(), known });
        };
        if parameter.set(&mut self.common, value) {
            return Ok(());
        }
        Err(SettingError::Refused {
            key: key.to_string(),
            value: value.to_string(),
            allowed: parameter.allowed().to_string(),
        })
    }

    /// The strategy.
    pub fn strategy(&self) -> StrategyKind {
        self.strategy.kind()
    }

    /// Expansions per theorem.
    pub fn budget(&self) -> u64 {
        self.common.budget
    }

    /// Longest proof that may be built.
    pub fn max_depth(&self) -> u32 {
        self.common.max_depth
    }

    /// Sampling temperature.
    pub fn temperature(&self) -> f64 {
        self.common.temperature
    }

    /// Tokens are sampled among the likeliest that make up this probability.
    pub fn top_p(&self) -> f64 {
        self.common.top_p
    }

    /// Whether no tactic is sampled twice at a node.
    pub fn distinct(&self) -> bool {
        self.common.distinct
    }

    /// Longest tactic, in tokens.
    pub fn max_tokens(&self) -> usize {
        self.common.max_tokens
    }

    /// A search that starts at the root.
    pub fn search(&self) -> Search {
        let Common { budget, max_depth, distinct, .. } = self.common;
        let search = Search::new(self.strategy.strategy(), budget, max_depth);
        if distinct { search.distinct() } else { search }
    }

    /// Every setting with its value, the strategy's own among them.
    fn entries(&self) -> Vec<(String, Value)> {
        let common = COMMON.iter().filter_map(|parameter| {
            Some((parameter.name.to_string(), parameter.get(&self.common)?))
        });
        common.chain(self.strategy.get()).collect()
    }

    /// What every strategy has: names, ranges, defaults.
    pub fn common_parameters() -> Vec<ParameterHelp> {
        let budget = |help: ParameterHelp| match help.key.as_str() {
            "budget" => ParameterHelp { default: None, ..help },
            _ => help,
        };
        COMMON.iter().map(|parameter| budget(parameter.describe("", &DEFAULT))).collect()
    }
}

/// As one flat object: `{"strategy": "bfs", "budget": 256, ..., "bfs_beam": 2}`.
impl Serialize for Deployment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let strategy = ("strategy".to_string(), Value::Text(self.strategy().to_string()));
        serializer.collect_map(std::iter::once(strategy).chain(self.entries()))
    }
}

impl<'de> Deserialize<'de> for Deployment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut map = BTreeMap::<String, Value>::deserialize(deserializer)?;
        let fail = |error: SettingError| serde::de::Error::custom(error);
        let mut take = |key: &str| {
            map.remove(key).ok_or_else(|| fail(SettingError::Missing { key: key.to_string() }))
        };
        let (strategy, budget) = (take("strategy")?, take("budget")?);
        let Value::Text(strategy) = strategy else {
            return Err(serde::de::Error::custom(format!("strategy is {strategy}, not a name")));
        };
        let kind = strategy.parse().map_err(serde::de::Error::custom)?;
        let mut deployment = Deployment { strategy: StrategyKind::settings(kind), common: DEFAULT };
        deployment.set("budget", &budget).map_err(fail)?;
        for (key, value) in &map {
            deployment.set(key, value).map_err(fail)?;
        }
        Ok(deployment)
    }
}

/// Settings that differ from the defaults, for any number of strategies: each takes its own and
/// the common ones. Names and values are checked when they are put in.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Overrides(BTreeMap<String, Value>);

impl Overrides {
    /// Overrides one setting.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> Result<(), SettingError> {
        let value = value.into();
        // Whose setting it is does not matter here: some strategy must take it.
        let mut known = Vec::new();
        for kind in StrategyKind::ALL {
            let mut any = Deployment { strategy: kind.settings(), common: DEFAULT };
            match any.set(key, &value) {
                Ok(()) => {
                    self.0.insert(key.to_string(), value);
                    return Ok(());
                }
                Err(SettingError::Unknown { known: names, .. }) => known.extend(names),
                Err(refused) => return Err(refused),
            }
        }
        known.sort();
        known.dedup();
        Err(SettingError::Unknown { key: key.to_string(), known })
    }

    /// Overrides one setting as a command line says it: `KEY=VALUE`.
    pub fn set_pair(&mut self, pair: &str) -> Result<(), SettingError> {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        self.set(key.trim(), Value::parse(value.trim()))
    }

    /// The value that was given for a setting.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }
}

impl<'de> Deserialize<'de> for Overrides {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut overrides = Overrides::default();
        for (key, value) in BTreeMap::<String, Value>::deserialize(deserializer)? {
            overrides.set(&key, value).map_err(serde::de::Error::custom)?;
        }
        Ok(overrides)
    }
}
