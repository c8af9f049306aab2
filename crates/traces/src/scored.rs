//! Log-probabilities of traces as JSON lines, from whatever scored them to whatever weighs them:
//! `{"name": "t1", "logp": [-0.5, -2.0]}`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The log-probability of each tactic of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogP {
    /// The trace's name: any JSON, handed through as it is.
    #[serde(default)]
    pub name: Value,
    /// One number for each tactic.
    pub logp: Vec<f64>,
}

impl LogP {
    /// One line; nothing for a blank one.
    pub fn parse(line: &[u8]) -> Result<Option<LogP>, String> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        serde_json::from_slice(line).map(Some).map_err(|error| {
            // JSON has no NaN; Python writes one all the same, and the parser's own message would
            // only confuse.
            if line.windows(3).any(|w| w == b"NaN") {
                "a log-probability is not a number (NaN); each must be a finite number, at most 0"
                    .to_owned()
            } else {
                format!(
                    "broken JSON ({error}); a line looks like {{\"name\": \"t1\", \"logp\": [-0.5, \
                     -2.0]}}"
                )
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_a_broken_one_says_what_it_should_look_like() {
        let line = br#"{"name": 7, "logp": [-0.5]}"#;
        let read = LogP::parse(line).unwrap().unwrap();
        assert_eq!(read, LogP { name: 7.into(), logp: vec![-0.5] });
        assert_eq!(LogP::parse(b" \r\n").unwrap(), None);
        for (line, part) in [
            (&b"{\"logp\": [NaN]}"[..], "not a number"),
            (b"{\"logp\": [null]}", "a line looks like"),
            (b"{\"name\": 1}", "missing field `logp`"),
        ] {
            let error = LogP::parse(line).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
