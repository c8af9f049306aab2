//! The tokenizer inside a GGUF file: a byte-level BPE given as tokens and merges.

use serde_json::{Value, json};

use super::{Gguf, Meta};
use crate::{Error, Result, Tokenizer};

impl Gguf {
    pub(super) fn tokenizer(&self) -> Result<Tokenizer> {
        let refuse = |reason: String| Error::format(&self.path, reason);
        match self.text("tokenizer.ggml.model")? {
            "gpt2" => {}
            other => {
                return Err(refuse(format!(
                    "tokenizer `{other}`; only byte-level BPE (`gpt2`) can be read from GGUF"
                )));
            }
        }
        let texts = |key: &str| -> Result<Vec<&str>> {
            let Some(Meta::List(list)) = self.meta.get(key) else {
                return Err(refuse(format!("metadata `{key}` is missing")));
            };
            let mut out = Vec::with_capacity(list.len());
            for item in list {
                let Meta::Text(text) = item else {
                    return Err(refuse(format!("metadata `{key}` is not a list of texts")));
                };
                out.push(text.as_str());
            }
            Ok(out)
        };
        let (tokens, merges) = (texts("tokenizer.ggml.tokens")?, texts("tokenizer.ggml.merges")?);
        let vocabulary: serde_json::Map<String, Value> =
            tokens.iter().enumerate().map(|(i, t)| (t.to_string(), json!(i))).collect();
        let mut added = Vec::new();
        if let Some(Meta::List(kinds)) = self.meta.get("tokenizer.ggml.token_type") {
            for (id, (kind, token)) in kinds.iter().zip(&tokens).enumerate() {
                // 3 is a control token, 4 one added by a user.
                if let Meta::Number(kind @ (3.0 | 4.0)) = *kind {
                    added.push(json!({"id": id, "content": token, "single_word": false,
                        "lstrip": false, "rstrip": false,
                                      "normalized": false, "special": kind == 3.0}));
                }
            }
        }
        let level = |regex: bool| {
            json!({"type": "ByteLevel", "add_prefix_space": false,
            "trim_offsets": true, "use_regex": regex})
        };
        let pre = match self.text("tokenizer.ggml.pre").unwrap_or("gpt-2") {
            "gpt-2" | "default" => level(true),
            "smollm" => {
                json!({"type": "Sequence", "pretokenizers": [{"type": "Digits",
                    "individual_digits": true}, level(true)]})
            }
            name @ ("qwen2" | "llama-bpe") => {
                // Words, digits (one by one, or up to three), punctuation and blanks apart, as
                // those families were trained.
                let digits = if name == "qwen2" { "\\p{N}" } else { "\\p{N}{1,3}" };
                let pattern = format!(
                    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{{L}}\\p{{N}}]?\\p{{L}}+|{digits}| \
                     ?[^\\s\\p{{L}}\\p{{N}}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
                );
                let split = json!({"type": "Split", "pattern": {"Regex": pattern},
                    "behavior": "Isolated", "invert": false});
                json!({"type": "Sequence", "pretokenizers": [split, level(false)]})
            }
            other => {
                return Err(refuse(format!(
                    "pre-tokenizer `{other}` is not known; use the folder with tokenizer.json"
                )));
            }
        };
        let json = json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
            "post_processor": null,
            "added_tokens": added, "pre_tokenizer": pre, "decoder": level(true),
            "model": {"type": "BPE", "vocab": vocabulary, "merges": merges, "ignore_merges": false},
        });
        let end = self
            .number("tokenizer.ggml.eos_token_id")
            .and_then(|id| tokens.get(id as usize).copied());
        Tokenizer::from_json(&json, end).map_err(|e| refuse(e.to_string()))
    }
}
