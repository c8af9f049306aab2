//! How long sessions hold their worker up, as far as has been seen.

use std::collections::HashMap;

/// Expected seconds that a tactic takes, and tactics that a session tries, before any was seen.
const SECONDS: f64 = 0.05;
const TACTICS: f64 = 20.0;

/// See the module's text. Each file has a pace of its own; sessions that are in none have one.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    tactics: HashMap<Option<String>, Mean>,
    sessions: Mean,
}

impl Pace {
    /// A tactic in this file took so long.
    pub fn tried(&mut self, file: Option<String>, seconds: f64) {
        self.tactics.entry(file).or_default().add(seconds);
    }

    /// A session has tried so many tactics in all.
    pub fn ended(&mut self, tactics: usize) {
        self.sessions.add(tactics as f64);
    }

    /// Expected seconds that a session in this file holds its worker up.
    pub fn session(&self, file: &Option<String>) -> f64 {
        let tactic = self.tactics.get(file).copied().unwrap_or_default();
        tactic.expected(SECONDS) * self.sessions.expected(TACTICS)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1.0;
    }

    /// The mean of what was seen, in which what was expected before counts as one.
    fn expected(self, before: f64) -> f64 {
        (self.sum + before) / (self.count + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_replaces_what_was_expected() {
        let (slow, quick) = (Some("Slow".to_owned()), Some("Quick".to_owned()));
        let mut pace = Pace::default();
        assert_eq!(pace.session(&slow), SECONDS * TACTICS);
        for _ in 0..99 {
            pace.tried(slow.clone(), 1.0);
            pace.tried(quick.clone(), 0.01);
        }
        let near = |seconds: f64, expected: f64| (seconds / expected - 1.0).abs() < 0.05;
        assert!(near(pace.session(&slow), 20.0), "{}", pace.session(&slow));
        assert!(near(pace.session(&quick), 0.21), "{}", pace.session(&quick));
        assert_eq!(pace.session(&None), SECONDS * TACTICS, "another file's pace is its own");
        for _ in 0..99 {
            pace.ended(60);
        }
        assert!(near(pace.session(&slow), 60.0), "{}", pace.session(&slow));
    }
}
