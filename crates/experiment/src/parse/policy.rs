//! `[policy]`: the server that samples.

use super::checks::{Checked, between, refuse, seconds};
use crate::experiment::{ModelChoice, Server};
use crate::file::ExperimentFile;
use crate::limits::REQUESTS;
use crate::server::TIMEOUT;

pub(super) fn policy(file: &ExperimentFile, model: &ModelChoice) -> Checked<Option<Server>> {
    let Some(policy) = &file.policy else { return Ok(None) };
    let adapters = file.branch.lora.is_some() && matches!(model, ModelChoice::Pretrained { .. });
    if !adapters {
        return refuse(
            "policy",
            "a server serves one base, and loads adapters of it; train adapters (`model.base` and \
             `lora` in both recipes), or leave the sampling to this machine",
        );
    }
    if !(policy.url.starts_with("http://") || policy.url.starts_with("https://")) {
        return refuse("policy.url", "must be an address such as http://127.0.0.1:8000");
    }
    if policy.model.is_some() && (file.objectives.len() > 1 || !policy.adapters.is_empty()) {
        return refuse(
            "policy.model",
            "names one model, and this study has several; name each of them in policy.adapters",
        );
    }
    if policy.prompt.as_ref().is_some_and(|prompt| !prompt.contains("{state}")) {
        return refuse("policy.prompt", "has no {state} in it, so every state would look the same");
    }
    if policy.stop.iter().any(String::is_empty) {
        return refuse("policy.stop", "has an empty text, which would end every tactic at once");
    }
    between("policy.concurrency", policy.concurrency, 1, REQUESTS)?;
    Ok(Some(Server {
        url: policy.url.clone(),
        model: policy.model.clone(),
        adapters: policy.adapters.clone(),
        chat: policy.chat,
        prompt: policy.prompt.clone(),
        stop: policy.stop.clone(),
        concurrency: policy.concurrency,
        timeout: seconds("policy.timeout", policy.timeout)?.unwrap_or(TIMEOUT),
        retries: policy.retries,
        grouped: policy.grouped,
    }))
}
