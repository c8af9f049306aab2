//! What a cell is a function of. Two runs with one identity give one log; whatever else differs
//! (threads, paths, build) changes no outcome and is no part of it. Of a device its arithmetic is a
//! part, and, where it pads, the rows that it computes at once; elsewhere a batch is none.

use catamount_base::Content;
use catamount_search::{Deployment, Identity};
use serde::{Deserialize, Serialize};

/// Version of the log's format and of what searches do: another one gives other outcomes.
pub const FORMAT: u32 = 2;

/// What a cell is a function of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellIdentity {
    /// [`FORMAT`].
    pub format: u32,
    /// Where tactics come from, by content.
    pub policy: Identity,
    /// The prover and its library, by content.
    pub environment: Identity,
    /// The theorems, by content and in order.
    pub pool: Content,
    /// The search, and how the policy is sampled in it.
    pub deployment: Deployment,
    /// Seed of every random stream.
    pub seed: u64,
    /// Limits on wall-clock time.
    pub limits: Limits,
}

/// Limits on wall-clock time, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// For one search.
    pub search: Option<f64>,
    /// For one theorem under all strategies together.
    pub theorem: Option<f64>,
}

impl CellIdentity {
    /// What every record of the cell carries.
    pub fn hash(&self) -> String {
        Content::of_value(self).short().to_string()
    }

    /// What differs between a log's identity and another, in words.
    pub fn differences(&self, new: &CellIdentity) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, old: String, new: String| {
            if old != new {
                found.push(format!("{what} was {old} and is now {new}"));
            }
        };
        compare("the format", self.format.to_string(), new.format.to_string());
        compare("the seed", self.seed.to_string(), new.seed.to_string());
        compare("the pool's content", self.pool.short().into(), new.pool.short().into());
        let limit = |limit: Option<f64>| limit.map_or("none".into(), |limit| format!("{limit} s"));
        compare("the time limit", limit(self.limits.search), limit(new.limits.search));
        compare(
            "the time limit per theorem",
            limit(self.limits.theorem),
            limit(new.limits.theorem),
        );
        for (whose, old, new) in [
            ("policy", &self.policy, &new.policy),
            ("environment", &self.environment, &new.environment),
        ] {
            let mut differences = old.differences(new);
            // What parts there are goes with the kind: of another one nothing else can be compared.
            if old.get(KIND) != new.get(KIND) {
                differences.retain(|(part, ..)| *part == KIND);
            }
            for (part, old, new) in differences {
                compare(&format!("the {whose}'s {part}"), shown(old), shown(new));
            }
        }
        let (old, new) = (entries(&self.deployment), entries(&new.deployment));
        for key in old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))) {
            let value = |of: &Entries| of.get(key).map_or("nothing".into(), ToString::to_string);
            compare(key, value(&old), value(&new));
        }
        found
    }
}

const KIND: &str = "kind";

type Entries = serde_json::Map<String, serde_json::Value>;

fn entries(deployment: &Deployment) -> Entries {
    match serde_json::to_value(deployment) {
        Ok(serde_json::Value::Object(entries)) => entries,
        _ => Entries::default(),
    }
}

/// Hashes are long, and their beginnings differ.
fn shown(value: &str) -> String {
    let hash = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hash { value[..16].to_string() } else { value.to_string() }
}
