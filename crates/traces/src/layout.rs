//! A step as a language model sees it: the state, a separator, the tactic, and the model's own end
//! of text. Training, scoring, sampling, weight columns and servers all take it from here.
//!
//! A tokenizer of our own has special tokens for separator and end; everywhere else the separator
//! is text. Whoever can should hand the model token ids, state and separator tokenised apart:
//! across the border between them the text may be tokenised otherwise than in training.

/// What stands between a state and its tactic where the vocabulary has no token for it.
pub const SEPARATOR: &str = ":::";

/// The prompt as text, in which `{state}` stands for the state.
pub const PROMPT: &str = "{state}:::";

/// The prompt for a state, by a template in which `{state}` stands for it.
pub fn prompt(template: &str, state: &str) -> String {
    template.replace("{state}", state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_ends_with_the_separator() {
        assert_eq!(prompt(PROMPT, "⊢ p"), format!("⊢ p{SEPARATOR}"));
    }
}
