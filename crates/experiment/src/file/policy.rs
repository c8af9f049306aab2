//! `[policy]` as it is written.

use catamount_policies::HttpSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A server that samples every search in place of this machine: vLLM or SGLang, started with the
/// base model and with leave to load adapters. Only for studies that train adapters (`lora`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    /// Its address, such as `http://127.0.0.1:8000`.
    pub url: String,
    /// Texts that end a tactic, beside the model's own end of text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Requests under way at once.
    #[serde(default = "concurrency")]
    #[schemars(range(min = 1, max = crate::parse::REQUESTS))]
    pub concurrency: usize,
    /// Longest wait for one answer, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = crate::parse::LONGEST), extend("exclusiveMinimum" = 0))]
    pub timeout: Option<f64>,
    /// How often a request that failed for a passing reason is sent again.
    #[serde(default = "retries")]
    pub retries: u32,
    /// Ask for all samples of a state in one request.
    #[serde(default)]
    pub grouped: bool,
}

fn concurrency() -> usize {
    HttpSettings::CONCURRENCY
}

fn retries() -> u32 {
    HttpSettings::RETRIES
}
