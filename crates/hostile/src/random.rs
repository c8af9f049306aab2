//! Random choices that are the same on every run: an input is a function of its target and its
//! number.

use catamount_base::Stream;

/// Numbers drawn one after another from a stream.
#[derive(Clone, Debug)]
pub struct Random {
    stream: Stream,
    drawn: u64,
}

impl Random {
    /// The choices of a name and a number.
    pub fn new(name: &str, number: u64) -> Self {
        Random { stream: Stream::new(number).named(name), drawn: 0 }
    }

    /// A number below `limit`, which is at least 1.
    pub fn below(&mut self, limit: usize) -> usize {
        self.drawn += 1;
        ((self.stream.uniform(self.drawn) * limit as f64) as usize).min(limit.saturating_sub(1))
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of several things; there is at least one.
    pub fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }
}
