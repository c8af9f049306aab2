//! Text to tokens and back: a thin layer over `tokenizers`, with the layout of a question and its
//! answer.
//!
//! A training sequence is `state, separator, tactic, end` (`catamount_traces::layout`). Tokenizers
//! trained here have their own special tokens for separator and end; pretrained ones use the
//! separator's text and the model's own end-of-text token.

use std::collections::HashMap;
use std::path::Path;

use catamount_base::guarded;
use serde_json::{Value, json};
use tokenizers::models::bpe::{BPE, BpeTrainerBuilder};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Tokenizer as Inner};

use crate::checkpoint::write_whole;
use crate::{Error, Result};

/// The separator of our own tokenizers.
pub const SEPARATOR: &str = "<|tactic|>";
/// The end of a tactic to our own tokenizers.
pub const END: &str = "<|end|>";
/// End-of-text tokens of the known families, the first that exists is meant.
const KNOWN_ENDS: [&str; 6] =
    ["<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "</s>", "<eos>"];

/// A tokenizer with the layout of questions and answers.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Inner,
    separator: Vec<u32>,
    end: u32,
}

impl Tokenizer {
    /// Trains a byte-level BPE on texts: any text can be encoded, and decoding gives it back
    /// exactly.
    pub fn train_bpe<S: AsRef<str> + Send>(
        texts: impl Iterator<Item = S> + Send,
        vocab: usize,
    ) -> Result<Self> {
        let mut trainer = BpeTrainerBuilder::new()
            .vocab_size(vocab)
            .min_frequency(2)
            .show_progress(false)
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .special_tokens(vec![AddedToken::from(SEPARATOR, true), AddedToken::from(END, true)])
            .build();
        let mut model = BPE::default();
        let pretokenizer = ByteLevel::new(false, true, true);
        let words = {
            use tokenizers::{
                OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, Trainer,
            };
            trainer
                .feed(texts, |text| {
                    let mut pieces = PreTokenizedString::from(text);
                    pretokenizer.pre_tokenize(&mut pieces)?;
                    let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
                    Ok(splits.into_iter().map(|(piece, _, _)| piece.to_string()).collect())
                })
                .and_then(|()| trainer.train(&mut model))
        };
        words.map_err(error)?;
        let model = serde_json::to_value(&model).map_err(|e| Error::Tokenizer(e.to_string()))?;
        Self::assemble(
            model,
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                "use_regex": true}),
        )
    }

    /// Makes every whitespace-separated symbol a token of its own, the most frequent first, up to
    /// `vocab` tokens in all; what is not among them is spelled in bytes. A symbol keeps the blank
    /// before it, so decoding gives the text back exactly.
    pub fn train_symbols<S: AsRef<str>>(
        texts: impl Iterator<Item = S>,
        vocab: usize,
    ) -> Result<Self> {
        let bytes = byte_names();
        let mut counts: HashMap<String, u64> = HashMap::new();
        for text in texts {
            for symbol in symbols(text.as_ref()) {
                *counts.entry(symbol.bytes().map(|b| bytes[b as usize]).collect()).or_default() +=
                    1;
            }
        }
        let mut tokens: Vec<(String, u64)> =
            counts.into_iter().filter(|(s, _)| s.chars().nth(1).is_some()).collect();
        tokens.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let names = [SEPARATOR.to_string(), END.to_string()].into_iter();
        let names = names
            .chain(bytes.iter().map(|c| c.to_string()))
            .chain(tokens.into_iter().map(|(s, _)| s));
        let vocabulary: serde_json::Map<String, Value> =
            names.take(vocab.max(258)).enumerate().map(|(i, name)| (name, json!(i))).collect();
        let model =
            json!({"type": "BPE", "vocab": vocabulary, "merges": [], "ignore_merges": true});
        let split = json!({"type": "Split", "pattern": {"Regex": " ?[^\\s]+|\\s"},
            "behavior": "Isolated", "invert": false});
        let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
            "use_regex": false});
        Self::assemble(model, json!({"type": "Sequence", "pretokenizers": [split, level]}))
    }

    fn assemble(model: Value, pre_tokenizer: Value) -> Result<Self> {
        let special = |name: &str| {
            json!({"id": model["vocab"][name], "content": name, "single_word": false,
                "lstrip": false, "rstrip": false,
                   "normalized": false, "special": true})
        };
        let json = json!({
            "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
            "post_processor": null,
            "added_tokens": [special(SEPARATOR), special(END)], "pre_tokenizer": pre_tokenizer,
            "model": model,
            "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
            "use_regex": true},
        });
        Self::from_json(&json, None)
    }

    /// From the content of a `tokenizer.json`; `end` names the end-of-text token where it is known.
    pub fn from_json(json: &Value, end: Option<&str>) -> Result<Self> {
        let inner = guard(|| Inner::from_bytes(json.to_string()))?;
        Self::with_layout(inner, end)
    }

    /// Reads `tokenizer.json` from a folder, and its end-of-text token from `tokenizer_config.json`
    /// where there is one.
    pub fn load(folder: &Path) -> Result<Self> {
        let path = folder.join("tokenizer.json");
        let bytes = std::fs::read(&path).map_err(Error::file(&path))?;
        let inner =
            guard(|| Inner::from_bytes(bytes)).map_err(|e| Error::format(&path, e.to_string()))?;
        let config =
            std::fs::read_to_string(folder.join("tokenizer_config.json")).unwrap_or_default();
        let config: Value = serde_json::from_str(&config).unwrap_or_default();
        let end = config["eos_token"].as_str().or(config["eos_token"]["content"].as_str());
        Self::with_layout(inner, end).map_err(|e| Error::format(&path, e.to_string()))
    }

    fn with_layout(mut inner: Inner, end: Option<&str>) -> Result<Self> {
        // Text is only text: a state that happens to contain a special token's name must not end
        // the tactic.
        inner.set_encode_special_tokens(true);
        let own = inner.token_to_id(SEPARATOR).zip(inner.token_to_id(END));
        let (separator, end) = match own {
            Some((separator, end)) => (vec![separator], end),
            None => {
                let known =
                    end.into_iter().chain(KNOWN_ENDS).find_map(|name| inner.token_to_id(name));
                let end = known.ok_or_else(|| {
                    Error::Tokenizer("no end-of-text token is known in the vocabulary".into())
                })?;
                let separator = guard(|| inner.encode(catamount_traces::SEPARATOR, false))?;
                (separator.get_ids().to_vec(), end)
            }
        };
        Ok(Tokenizer { inner, separator, end })
    }

    /// Writes `tokenizer.json` into a folder, with the small `tokenizer_config.json` that
    /// transformers expects beside it.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let text = self.inner.to_string(true).map_err(error)?;
        write_whole(&folder.join("tokenizer.json"), text.as_bytes())?;
        let config = json!({"tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": self.inner.id_to_token(self.end)});
        write_whole(&folder.join("tokenizer_config.json"), config.to_string().as_bytes())
    }

    /// Tokens in the vocabulary: one more than the largest.
    pub fn vocab(&self) -> usize {
        self.inner.get_vocab(true).values().max().map_or(0, |&id| id as usize + 1)
    }

    /// Refuses a tokenizer that produces tokens the model has no embedding for.
    pub fn check(&self, model: usize) -> Result<()> {
        let tokenizer = self.vocab();
        if tokenizer > model { Err(Error::Vocabulary { tokenizer, model }) } else { Ok(()) }
    }

    /// The question: a state and the separator.
    pub fn prompt(&self, state: &str) -> Result<Vec<u32>> {
        let mut ids = guard(|| self.inner.encode_fast(state, true))?.get_ids().to_vec();
        ids.extend(&self.separator);
        Ok(ids)
    }

    /// What stands between a state and its tactic.
    pub fn separator(&self) -> &[u32] {
        &self.separator
    }

    /// The answer: a tactic and the end token.
    pub fn tactic(&self, tactic: &str) -> Result<Vec<u32>> {
        let mut ids = self.encode(tactic)?;
        ids.push(self.end);
        Ok(ids)
    }

    /// Plain text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(guard(|| self.inner.encode_fast(text, false))?.get_ids().to_vec())
    }

    /// The text of tokens; special ones leave no trace.
    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        guard(|| self.inner.decode(tokens, true))
    }

    /// The token that ends a tactic.
    pub fn end(&self) -> u32 {
        self.end
    }
}

fn error(e: tokenizers::Error) -> Error {
    Error::Tokenizer(e.to_string())
}

/// Asks the library, which panics over some malformed vocabularies: to our callers that is one more
/// tokenizer that cannot be used.
fn guard<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> Result<T> {
    match guarded(work) {
        Ok(outcome) => outcome.map_err(error),
        Err(panic) => Err(Error::Tokenizer(format!("its library gave up on it: {panic}"))),
    }
}

/// The pieces that the symbol-level pre-tokenizer makes: a word with the blank before it, or one
/// blank character.
fn symbols(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let word = if first == ' ' { &rest[1..] } else { rest };
        let len = word.find(char::is_whitespace).unwrap_or(word.len());
        let take = if len > 0 { len + (rest.len() - word.len()) } else { first.len_utf8() };
        let (symbol, tail) = rest.split_at(take);
        rest = tail;
        Some(symbol)
    })
}

/// The printable stand-in of every byte in byte-level vocabularies: itself where it is printable,
/// else counted up from 256.
pub(crate) fn byte_names() -> [char; 256] {
    let mut next = 256;
    std::array::from_fn(|b| {
        let printable = matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let code = if printable { b as u32 } else { next };
        next += u32::from(!printable);
        char::from_u32(code).expect("small code points are characters")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 3] =
        ["|- ( ph -> ps )\n|- ( ps -> ch )", "|- ( ph -> ( ps -> ph ) )", "mp2 ax-1 |- ph"];

    fn both() -> [Tokenizer; 2] {
        [
            Tokenizer::train_bpe(TEXTS.iter(), 300).unwrap(),
            Tokenizer::train_symbols(TEXTS.iter(), 300).unwrap(),
        ]
    }

    #[test]
    fn any_text_survives() {
        for tokenizer in both() {
            for text in TEXTS.into_iter().chain([
                "",
                " ",
                "  two  blanks\t\r\n",
                "λx → ∀ y, 𝔸 é <|end|> <|tactic|>",
                "unseen symbol",
            ]) {
                let ids = tokenizer.encode(text).unwrap();
                assert_eq!(tokenizer.decode(&ids).unwrap(), text);
                assert!(!ids.contains(&tokenizer.end()), "{text:?} must not end a tactic");
                assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab()));
            }
        }
    }

    #[test]
    fn a_known_symbol_is_one_token() {
        let [_, tokenizer] = both();
        assert_eq!(tokenizer.encode("|- ( ph -> ps )").unwrap().len(), 6);
        assert_eq!(tokenizer.tactic("mp2 ax-1").unwrap().len(), 3);
        let prompt = tokenizer.prompt("|- ph").unwrap();
        assert_eq!(prompt.len(), 3);
        assert_eq!(tokenizer.decode(&prompt).unwrap(), "|- ph");
    }

    #[test]
    fn symbols_are_cut_as_the_pre_tokenizer_cuts_them() {
        let cut: Vec<&str> = symbols("a  b\n c\t").collect();
        assert_eq!(cut, ["a", " ", " b", "\n", " c", "\t"]);
    }
}
