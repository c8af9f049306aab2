//! What must not reach a log or a terminal: the API key, and a password within the address.

use catamount_base::{REDACTED, user};

/// A secret shorter than this may be a word of a proof: `none` is a key that local servers take,
/// and `exact none` a tactic.
const TELLING: usize = 8;

/// Texts that are never shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// The key, and the user and password of an address, as they are and as JSON writes them.
    pub(super) fn new(key: Option<&str>, url: &str) -> Self {
        let user = user(url).map(|user| &url[user]);
        let password = user.and_then(|user| user.split_once(':')).map(|(_, password)| password);
        let mut secrets: Vec<String> = Vec::new();
        for secret in [key, user, password].into_iter().flatten().filter(|s| !s.is_empty()) {
            let escaped = serde_json::Value::from(secret).to_string();
            secrets.push(escaped.trim_matches('"').to_owned());
            secrets.push(secret.to_owned());
        }
        Secrets(secrets)
    }

    /// A tactic without them. One that a short secret happens to be part of stays what it is: what
    /// was sampled is what is tried and logged.
    pub(super) fn redacted_tactic(&self, tactic: String) -> String {
        let telling = self.0.iter().filter(|secret| secret.chars().count() >= TELLING);
        telling.fold(tactic, |tactic, secret| match tactic.contains(secret) {
            true => tactic.replace(secret, REDACTED),
            false => tactic,
        })
    }

    /// The text without them.
    pub(super) fn redacted(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, REDACTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_passwords_are_not_shown() {
        let url = "http://me:pass@host:8000/v1";
        let secrets = Secrets::new(Some("a\"key"), url);
        let said = secrets.redacted("got a\"key, \"a\\\"key\", me:pass and pass");
        assert_eq!(said, "got [redacted], \"[redacted]\", [redacted] and [redacted]");
    }

    #[test]
    fn a_short_key_rewrites_no_tactic() {
        let secrets = Secrets::new(Some("none"), "http://host");
        assert_eq!(secrets.redacted_tactic("exact none".into()), "exact none");
        assert_eq!(secrets.redacted("no such key: none"), "no such key: [redacted]");
        let secrets = Secrets::new(Some("sk-12345"), "http://host");
        assert_eq!(secrets.redacted_tactic("exact sk-12345".into()), "exact [redacted]");
    }
}
