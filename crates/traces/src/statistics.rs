//! Counts and lengths of a set of traces, as numbers and as text.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::Serialize;

use crate::{Trace, text_key};

/// What a set of traces looks like.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Statistics {
    /// How many traces.
    pub traces: usize,
    /// How many steps together.
    pub steps: usize,
    /// How many traces have each number of steps.
    pub lengths: BTreeMap<usize, usize>,
    /// Lengths of the states, in tokens.
    pub states: Quantiles,
    /// Lengths of the tactics, in tokens.
    pub tactics: Quantiles,
    /// How many different tactics there are.
    pub distinct_tactics: usize,
    /// Steps whose (state, tactic) occurred before.
    pub duplicate_steps: usize,
    /// Traces whose statement, up to names and numerals, occurred before.
    pub duplicate_statements: usize,
}

/// Where half and nine tenths of some lengths lie below, and the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// Half are at most this.
    pub median: usize,
    /// Nine tenths are at most this.
    pub p90: usize,
    /// The largest.
    pub max: usize,
}

impl Statistics {
    /// The statistics of these traces.
    pub fn of<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> Self {
        let mut statistics = Statistics::default();
        let (mut states, mut tactics) = (Vec::new(), Vec::new());
        let mut texts: HashSet<&str> = HashSet::new();
        let mut pairs: HashSet<(&str, &str)> = HashSet::new();
        let mut statements: HashSet<String> = HashSet::new();
        for trace in traces {
            statistics.traces += 1;
            statistics.steps += trace.steps.len();
            *statistics.lengths.entry(trace.steps.len()).or_default() += 1;
            statistics.duplicate_statements += usize::from(!statements.insert(text_key(trace)));
            for step in &trace.steps {
                states.push(tokens(&step.state));
                tactics.push(tokens(&step.tactic));
                texts.insert(&step.tactic);
                statistics.duplicate_steps +=
                    usize::from(!pairs.insert((&step.state, &step.tactic)));
            }
        }
        statistics.distinct_tactics = texts.len();
        statistics.states = Quantiles::of(states);
        statistics.tactics = Quantiles::of(tactics);
        statistics
    }

    /// How many traces have a number of steps in this range.
    pub fn pool(&self, steps: crate::Steps) -> usize {
        self.lengths
            .iter()
            .filter(|(length, _)| steps.contains(**length))
            .map(|(_, count)| count)
            .sum()
    }
}

impl Quantiles {
    fn of(mut lengths: Vec<usize>) -> Self {
        lengths.sort_unstable();
        // The nearest-rank quantile: the smallest length that at least this part of all do not
        // exceed.
        let rank = |percent: usize| match lengths.len() {
            0 => 0,
            n => lengths[(n * percent).div_ceil(100).max(1) - 1],
        };
        Quantiles { median: rank(50), p90: rank(90), max: lengths.last().copied().unwrap_or(0) }
    }
}

/// Runs of word characters, and other visible characters one by one: near enough to any model's
/// tokens to compare by.
fn tokens(text: &str) -> usize {
    let mut count = 0;
    let mut in_word = false;
    for c in text.chars() {
        let word = c.is_alphanumeric() || c == '_';
        count += usize::from(!(c.is_whitespace() || word && in_word));
        in_word = word;
    }
    count
}

/// The widest bar, in characters.
const BAR: usize = 40;
/// Lengths with a line of their own; longer traces share the last lines.
const OWN_LINE: usize = 10;

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} traces, {} steps, {} different tactics",
            self.traces, self.steps, self.distinct_tactics
        )?;
        writeln!(
            f,
            "{} repeated statements, {} repeated steps",
            self.duplicate_statements, self.duplicate_steps
        )?;
        for (what, quantiles) in [("state", self.states), ("tactic", self.tactics)] {
            let Quantiles { median, p90, max } = quantiles;
            writeln!(f, "tokens in a {what}: median {median}, p90 {p90}, max {max}")?;
        }
        writeln!(f, "steps  traces")?;
        let mut bins: Vec<(crate::Steps, usize)> = Vec::new();
        for (min, max) in
            (1..=OWN_LINE).map(|n| (n, Some(n))).chain([(11, Some(20)), (21, Some(50)), (51, None)])
        {
            let steps = crate::Steps { min, max };
            bins.push((steps, self.pool(steps)));
        }
        let last = bins.iter().rposition(|(_, count)| *count > 0).map_or(0, |at| at + 1);
        let most = bins.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
        for (steps, count) in &bins[..last] {
            // A bin that is not empty shows, however small.
            let bar = "#".repeat((count * BAR).div_ceil(most));
            writeln!(f, "{:>5}  {count:>6}  {bar}", steps.to_string())?;
        }
        Ok(())
    }
}
