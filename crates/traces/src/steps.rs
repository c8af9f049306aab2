//! Pools by number of steps: `3`, `2-5`, `6-`.

use std::fmt;
use std::str::FromStr;

/// An inclusive range of numbers of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Steps {
    /// The fewest steps.
    pub min: usize,
    /// The most steps; none is no limit.
    pub max: Option<usize>,
}

impl Steps {
    /// Every trace.
    pub const ALL: Steps = Steps { min: 1, max: None };

    /// Whether a trace with this many steps is in the pool.
    pub fn contains(&self, steps: usize) -> bool {
        self.min <= steps && self.max.is_none_or(|max| steps <= max)
    }
}

/// Why a text is no range of steps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a range of steps ({reason}); write 3, 2-5 or 6-")]
pub struct StepsError {
    text: String,
    reason: &'static str,
}

impl FromStr for Steps {
    type Err = StepsError;

    fn from_str(text: &str) -> Result<Self, StepsError> {
        let wrong = |reason| StepsError { text: text.to_owned(), reason };
        let number = |digits: &str| match digits.trim() {
            digits if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) => {
                Err(wrong("not a whole number"))
            }
            digits => digits.parse::<usize>().map_err(|_| wrong("too large")),
        };
        let (min, max) = match text.trim().split_once('-') {
            None => (number(text)?, Some(number(text)?)),
            Some((min, "")) => (number(min)?, None),
            Some((min, max)) => (number(min)?, Some(number(max)?)),
        };
        match max {
            _ if min == 0 => Err(wrong("a trace has at least one step")),
            Some(max) if max < min => Err(wrong("the end lies before the start")),
            _ => Ok(Steps { min, max }),
        }
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            None => write!(f, "{}-", self.min),
            Some(max) if max == self.min => write!(f, "{max}"),
            Some(max) => write!(f, "{}-{max}", self.min),
        }
    }
}
