//! A server's reply, in either of the two dialects for log-probabilities.

use catamount_search::Sample;
use serde::Deserialize;

#[derive(Deserialize)]
struct Reply {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    text: String,
    #[serde(default)]
    index: usize,
    logprobs: Option<Logprobs>,
}

#[derive(Deserialize)]
struct Logprobs {
    /// OpenAI's completions, vLLM, SGLang.
    token_logprobs: Option<Vec<Option<f64>>>,
    /// llama.cpp, as in OpenAI's chat completions.
    content: Option<Vec<Token>>,
}

#[derive(Deserialize)]
struct Token {
    logprob: f64,
}

/// The samples in a reply, which must be as many as were asked for.
pub(super) fn samples(body: &[u8], wanted: usize) -> Result<Vec<Sample>, String> {
    let mut reply: Reply = serde_json::from_slice(body)
        .map_err(|e| format!("the reply is no completion ({e}): {}", excerpt(body)))?;
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
    let (tokens, log_p) = match (token_logprobs, content) {
        (Some(tokens), _) => (tokens.len(), tokens.into_iter().flatten().sum::<f64>()),
        (None, Some(tokens)) => (tokens.len(), tokens.iter().map(|token| token.logprob).sum()),
        (None, None) => return Err(NO_LOGPROBS.into()),
    };
    if !log_p.is_finite() {
        return Err(format!("the reply's log-probabilities add up to {log_p}"));
    }
    // Rounding may put a sure token a little above probability 1.
    Ok(Sample { tactic: choice.text.trim().to_owned(), log_p: log_p.min(0.0), tokens })
}

const NO_LOGPROBS: &str =
    "the reply has no log-probabilities, which search needs; use a server that reports `logprobs`";

/// The beginning of a reply, for messages.
pub(super) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(300)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
