//! What a first use is doing, and how far it is: on stderr, since whoever waits sees nothing else.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often a line is written where it cannot be written over.
const EVERY: Duration = Duration::from_secs(5);

/// One step of a preparation.
pub(crate) struct Progress {
    what: String,
    begun: Instant,
    shown: Instant,
    terminal: bool,
}

impl Progress {
    /// Says what begins.
    pub fn begin(what: impl Into<String>) -> Progress {
        let what = what.into();
        let terminal = std::io::stderr().is_terminal();
        let progress = Progress { what, begun: Instant::now(), shown: Instant::now(), terminal };
        progress.show("...");
        progress
    }

    /// Says how far it is, now and then.
    pub fn at(&mut self, done_mb: u64, of_mb: u64) {
        let due = if self.terminal { Duration::from_millis(200) } else { EVERY };
        if self.shown.elapsed() >= due {
            self.shown = Instant::now();
            self.show(&format!(": {} of {of_mb} MB", done_mb.min(of_mb)));
        }
    }

    /// Says that it is done.
    pub fn end(self) {
        self.show(&format!(": done, {:.0} s", self.begun.elapsed().as_secs_f64()));
        if self.terminal {
            eprintln!();
        }
    }

    fn show(&self, how_far: &str) {
        let mut err = std::io::stderr().lock();
        let text = format!("Lean, first use: {}{how_far}", self.what);
        // Whether anybody reads this must not decide whether the preparation succeeds.
        let _ = if self.terminal {
            write!(err, "\r\x1b[K{text}").and_then(|()| err.flush())
        } else {
            writeln!(err, "{text}")
        };
    }
}
