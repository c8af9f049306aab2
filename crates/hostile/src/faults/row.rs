//! The table of faults: every row with its tries and failures.

use std::fmt;

/// One kind of fault.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// What is done to the program.
    pub name: String,
    /// How often it was done.
    pub tries: usize,
    /// What went wrong, try by try.
    pub failures: Vec<String>,
    /// Why it could not be done here.
    pub skipped: Option<String>,
}

impl Row {
    /// A row without tries.
    pub fn new(name: &str) -> Self {
        Row { name: name.into(), ..Row::default() }
    }

    /// A row that cannot be tried here.
    pub fn skipped(name: &str, why: &str) -> Self {
        Row { skipped: Some(why.into()), ..Row::new(name) }
    }

    /// Counts a try, and what went wrong with it.
    pub fn tried(&mut self, outcome: Result<(), String>) {
        self.tries += 1;
        self.failures.extend(outcome.err());
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.skipped {
            Some(why) => write!(f, "{:<52} skipped: {why}", self.name),
            None => {
                write!(f, "{:<52} {:>6} {:>9}", self.name, self.tries, self.failures.len())?;
                for failure in &self.failures {
                    write!(f, "\n    {failure}")?;
                }
                Ok(())
            }
        }
    }
}
