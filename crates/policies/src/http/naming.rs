//! How a request says which model is to answer.

use serde::Deserialize;

use super::client::Client;
use super::reply::excerpt;
use super::{HttpError, HttpSettings};

/// The field that holds a model's or an adapter's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// `model`, which vLLM and most others take for models and adapters alike.
    Model,
    /// `lora_path`: SGLang answers as the base, and says nothing, where `model` is an adapter's
    /// name or any other.
    LoraPath,
}

/// What `/v1/models` lists.
#[derive(Deserialize)]
struct Models {
    data: Vec<Card>,
}

#[derive(Deserialize)]
struct Card {
    id: String,
    owned_by: Option<String>,
    /// The base, where this is an adapter.
    parent: Option<String>,
}

impl Naming {
    pub(super) fn field(self) -> &'static str {
        match self {
            Naming::Model => "model",
            Naming::LoraPath => "lora_path",
        }
    }

    /// Asks a server what it is, to name a model that it has already. On SGLang a name that is not
    /// its base's must be an adapter's: it refuses adapters that it does not have.
    pub(super) fn ask(client: &Client, settings: &HttpSettings) -> Result<Self, HttpError> {
        let Some(name) = settings.served() else { return Ok(Naming::Model) };
        let (status, said) = client.get("/v1/models")?;
        if matches!(status, 408 | 425 | 429 | 500 | 502..=599) {
            return Err(HttpError(format!(
                "the server does not say which models it has (HTTP status {status}): {}; is it \
                 still starting?",
                excerpt(said.as_bytes())
            )));
        }
        // Who has no such list is not SGLang.
        let Ok(Models { data }) = serde_json::from_str(&said) else { return Ok(Naming::Model) };
        if !data.iter().any(|card| card.owned_by.as_deref() == Some("sglang")) {
            return Ok(Naming::Model);
        }
        // SGLang itself takes `base:adapter` apart.
        let base = |card: &&Card| {
            card.parent.is_none()
                && name.strip_prefix(&card.id).is_some_and(|rest| {
                    rest.is_empty() || (settings.adapter.is_none() && rest.starts_with(':'))
                })
        };
        match data.iter().find(base) {
            Some(_) => Ok(Naming::Model),
            None => Ok(Naming::LoraPath),
        }
    }
}
