//! A server's reply: a completion or a chat, in either of the two dialects for log-probabilities.

use catamount_search::Sample;
use serde::Deserialize;

use super::secrets::Secrets;

#[derive(Deserialize)]
struct Reply {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    /// Of a completion.
    text: Option<String>,
    /// Of a chat.
    message: Option<Message>,
    #[serde(default)]
    index: usize,
    logprobs: Option<Logprobs>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

#[derive(Deserialize)]
struct Logprobs {
    /// OpenAI's completions, vLLM, SGLang.
    token_logprobs: Option<Vec<Option<f64>>>,
    /// Chats, and llama.cpp's completions.
    content: Option<Vec<Token>>,
}

#[derive(Deserialize)]
struct Token {
    logprob: Option<f64>,
}

/// The samples in a reply, which must be as many as were asked for.
pub(super) fn samples(
    body: &[u8],
    wanted: usize,
    secrets: &Secrets,
) -> Result<Vec<Sample>, String> {
    let mut reply: Reply = serde_json::from_slice(body).map_err(|e| {
        let said = secrets.redacted(&String::from_utf8_lossy(body));
        format!("the reply is not a completion ({e}): {}", excerpt(said.as_bytes()))
    })?;
    if reply.choices.len() != wanted {
        return Err(format!(
            "the reply has {} choices where {wanted} were asked for",
            reply.choices.len()
        ));
    }
    reply.choices.sort_by_key(|choice| choice.index);
    reply.choices.into_iter().map(sample).collect()
}

fn sample(choice: Choice) -> Result<Sample, String> {
    let Some(Logprobs { token_logprobs, content }) = choice.logprobs else {
        return Err(NO_LOGPROBS.into());
    };
    let tokens: Vec<Option<f64>> = match (token_logprobs, content) {
        (Some(tokens), _) => tokens,
        (None, Some(tokens)) => tokens.into_iter().map(|token| token.logprob).collect(),
        (None, None) => return Err(NO_LOGPROBS.into()),
    };
    let text = choice.text.or(choice.message.and_then(|message| message.content));
    let Some(text) = text else {
        return Err("the reply has neither a text nor a message".into());
    };
    let tactic = text.trim().to_owned();
    // llama.cpp reports no token where the model stops at once. That tactic is empty, and no prover
    // takes it.
    if tokens.is_empty() && !tactic.is_empty() {
        return Err(format!("the reply has a text but no log-probabilities: {tactic:?}"));
    }
    let mut log_p = 0.0;
    for token in &tokens {
        match token {
            Some(value) if value.is_finite() && *value <= ROUNDING => log_p += value,
            Some(value) => return Err(format!("the reply has {value} for a log-probability")),
            None => return Err("the reply has null for a log-probability".into()),
        }
    }
    if !log_p.is_finite() {
        return Err(format!("the reply's log-probabilities add up to {log_p}"));
    }
    Ok(Sample { tactic, log_p: log_p.min(0.0), tokens: tokens.len() })
}

/// Rounding may put a sure token a little above probability 1.
const ROUNDING: f64 = 1e-3;

const NO_LOGPROBS: &str =
    "the reply has no log-probabilities, which search needs; use a server that reports `logprobs`";

/// The beginning of a reply, for messages.
pub(super) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(EXCERPT)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const EXCERPT: usize = 300;
