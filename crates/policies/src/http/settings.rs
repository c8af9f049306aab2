//! Where a server is, what it is asked, and how.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::HttpError;
use super::adapter::ServedAdapter;

/// Which of the two endpoints is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Api {
    /// `/v1/completions`: the model goes on from the prompt. What a model fine-tuned on traces
    /// wants.
    #[default]
    Completions,
    /// `/v1/chat/completions`: the prompt is the user's message, in the model's own chat template.
    Chat,
}

/// Turns a state into the tokens of its prompt.
type Encode = dyn Fn(&str) -> Result<Vec<u32>, String> + Send + Sync;

/// The prompt as token ids, laid out as in training: what text cannot promise, since a server may
/// tokenise the border between state and separator otherwise.
#[derive(Clone)]
pub struct Layout {
    name: String,
    end: u32,
    encode: Arc<Encode>,
}

impl Layout {
    /// A layout by what it is called in identities (the tokenizer's content), the token that ends a
    /// tactic, and the tokens of a prompt.
    pub fn new(
        name: impl Into<String>,
        end: u32,
        encode: impl Fn(&str) -> Result<Vec<u32>, String> + Send + Sync + 'static,
    ) -> Self {
        Layout { name: name.into(), end, encode: Arc::new(encode) }
    }

    /// What identifies it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn end(&self) -> u32 {
        self.end
    }

    pub(super) fn prompt(&self, state: &str) -> Result<Vec<u32>, String> {
        (self.encode)(state)
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout").field("name", &self.name).field("end", &self.end).finish()
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.end) == (&other.name, other.end)
    }
}

/// Where the server is and how to ask it.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpSettings {
    /// The server's address, with or without `/v1`: `http://127.0.0.1:8000`.
    pub url: String,
    /// Which endpoint is asked.
    pub api: Api,
    /// The model's name, or that of a LoRA adapter that the server has loaded; some servers need
    /// none.
    pub model: Option<String>,
    /// An adapter that the server is to load first, and to unload in the end.
    pub adapter: Option<ServedAdapter>,
    /// The prompt, in which `{state}` stands for the state. It must be the prompt that the model
    /// was trained with.
    pub prompt: String,
    /// The prompt as token ids instead; the end token then ends a tactic.
    pub layout: Option<Layout>,
    /// The sampling temperature.
    pub temperature: f64,
    /// Only the most probable tokens that together have this probability are sampled.
    pub top_p: f64,
    /// The longest tactic, in tokens.
    pub max_tokens: u32,
    /// Texts that end a tactic, beside the model's own end of text.
    pub stop: Vec<String>,
    /// The environment variable that holds the API key; no key is sent where it is not set.
    pub key_variable: String,
    /// How many requests are under way at once.
    pub concurrency: usize,
    /// The longest that one request may take, from connecting to the last byte.
    pub timeout: Duration,
    /// How often a request that failed for a passing reason is tried again.
    pub retries: u32,
    /// The wait before the first retry; it doubles with each.
    pub back_off: Duration,
    /// Whether a question's samples are asked for in one request.
    pub grouped: bool,
}

impl HttpSettings {
    /// How many requests are under way at once.
    pub const CONCURRENCY: usize = 8;
    /// Requests under way at once, at most.
    pub const MOST_REQUESTS: usize = 1 << 12;
    /// How often a request is tried again.
    pub const RETRIES: u32 = 4;
    /// The longest that one request may take, in seconds.
    pub const TIMEOUT: u64 = 120;

    /// The settings for a server, with the rest as one would start with: the prompt of training, as
    /// text, and no end but the model's own.
    pub fn new(url: impl Into<String>) -> Self {
        HttpSettings {
            url: url.into(),
            api: Api::default(),
            model: None,
            adapter: None,
            prompt: catamount_traces::PROMPT.into(),
            layout: None,
            temperature: 1.0,
            top_p: 1.0,
            max_tokens: 128,
            stop: Vec::new(),
            key_variable: "OPENAI_API_KEY".into(),
            concurrency: Self::CONCURRENCY,
            timeout: Duration::from_secs(Self::TIMEOUT),
            retries: Self::RETRIES,
            back_off: Duration::from_millis(500),
            grouped: false,
        }
    }

    /// The address that the endpoints' paths are appended to.
    pub(super) fn base(&self) -> &str {
        self.url.trim_end_matches('/').trim_end_matches("/v1")
    }

    /// The model that requests name.
    pub(super) fn served(&self) -> Option<&str> {
        self.adapter.as_ref().map(|adapter| adapter.name.as_str()).or(self.model.as_deref())
    }

    pub(super) fn check(&self) -> Result<(), HttpError> {
        let wrong = |what: String| Err(HttpError(what));
        if !(self.url.starts_with("http://") || self.url.starts_with("https://")) {
            return wrong(format!(
                "{:?} is not the address of a server; write it as http://127.0.0.1:8000",
                self.url
            ));
        }
        if !self.prompt.contains("{state}") {
            return wrong(format!(
                "the prompt {:?} has no {{state}} in it, so every state would look the same",
                self.prompt
            ));
        }
        if self.layout.is_some() && self.api == Api::Chat {
            return wrong(
                "a chat takes text, not token ids; ask /v1/completions where prompts are tokens"
                    .into(),
            );
        }
        if !(self.temperature.is_finite() && self.temperature >= 0.0) {
            let given = self.temperature;
            return wrong(format!(
                "the temperature must be a number that is at least 0, not {given}"
            ));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            let given = self.top_p;
            return wrong(format!("top-p must be above 0 and at most 1, not {given}"));
        }
        if self.max_tokens == 0 || self.concurrency == 0 || self.timeout.is_zero() {
            return wrong("maximum tokens, concurrency and timeout must be positive".into());
        }
        if self.stop.iter().any(String::is_empty) {
            return wrong("an empty stop text would end every tactic before it begins".into());
        }
        Ok(())
    }
}
