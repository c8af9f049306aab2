//! `[policy]` as it is written.

use std::collections::BTreeMap;

use catamount_policies::HttpSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A server that samples every search in place of this machine: vLLM or SGLang, started with the
/// base model and with leave to load adapters, or any server that has the adapters already
/// (`adapters`, `model`). Only for studies that train adapters (`lora`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    /// Its address, such as `http://127.0.0.1:8000`.
    pub url: String,
    /// The name by which the server knows the study's only branch, which it has loaded already:
    /// for servers of one model, such as llama.cpp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Names of adapters that the server has loaded already, by the branch that each of them is,
    /// such as `{ ce = "my-ce" }`. The others it is told to load.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub adapters: BTreeMap<String, String>,
    /// Ask for chats, with the prompt as the user's message, in place of completions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chat: bool,
    /// The prompt as text, in which `{state}` stands for the state. Without it, and without `chat`,
    /// the server is sent token ids as in training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Texts that end a tactic, beside the model's own end of text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Requests under way at once.
    #[serde(default = "concurrency")]
    #[schemars(range(min = 1, max = crate::limits::REQUESTS))]
    pub concurrency: usize,
    /// Longest wait for one answer, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = crate::limits::LONGEST), extend("exclusiveMinimum" = 0))]
    pub timeout: Option<f64>,
    /// How many times to retry a request after a temporary failure.
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
