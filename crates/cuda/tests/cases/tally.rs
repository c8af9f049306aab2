//! What has been compared so far, a line of a table each, and how much of it was wrong.

use std::process::ExitCode;

use super::{Results, compare};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub checked: usize,
    pub wrong: usize,
}

impl Tally {
    pub fn verdict(&mut self, precision: &str, what: &str, right: bool) {
        self.checked += 1;
        self.wrong += usize::from(!right);
        println!("{precision:5} {what:62}  {}", if right { "ok" } else { "WRONG" });
    }

    /// Two runs of the same operations, each result within a relative error.
    pub fn results(&mut self, precision: &str, reference: &Results, got: &Results, most: f64) {
        for c in compare(reference, got) {
            let what = format!("{:62} {:9.2e}", c.name, c.error);
            self.verdict(precision, &what, c.error <= most);
        }
    }

    /// There is nothing to compare with: wrong where a GPU is required.
    pub fn absent(&mut self, precision: &str, reason: &str, required: bool) {
        self.wrong += usize::from(required);
        println!("{precision:5} not checked: {reason}");
    }

    pub fn finish(self) -> ExitCode {
        println!("{} comparisons, {} wrong", self.checked, self.wrong);
        if self.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
