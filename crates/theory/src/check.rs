//! A claim of the paper together with the number that decides it.

use catamount_figure::Chart;

/// One number and the limit it must respect for a claim to hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What is measured.
    pub what: String,
    /// What came out.
    pub value: f64,
    /// What it must not exceed, or not fall below.
    pub limit: f64,
    /// True if the limit is a floor rather than a ceiling.
    pub floor: bool,
}

impl Check {
    /// The value must not exceed the limit.
    pub fn at_most(what: impl Into<String>, value: f64, limit: f64) -> Self {
        Check { what: what.into(), value, limit, floor: false }
    }

    /// The value must not fall below the limit.
    pub fn at_least(what: impl Into<String>, value: f64, limit: f64) -> Self {
        Check { what: what.into(), value, limit, floor: true }
    }

    /// Whether it holds. Nothing holds of what is not a number.
    pub fn holds(&self) -> bool {
        if self.floor { self.value >= self.limit } else { self.value <= self.limit }
    }
}

/// A figure, the claim it shows, and what was checked on the very data it is drawn from.
pub struct Finding {
    /// The file's name without ending.
    pub name: &'static str,
    /// One sentence.
    pub claim: String,
    /// The numbers behind it.
    pub checks: Vec<Check>,
    /// The picture.
    pub chart: Box<dyn Chart>,
    /// A table for the index, in Markdown; empty if the figure says it all.
    pub table: String,
}

/// The largest of some numbers; not a number if one of them is not.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values
        .into_iter()
        .fold(f64::NEG_INFINITY, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) })
}

/// By how much a sequence ever rises: zero or less if it never does.
pub(crate) fn rise(values: &[f64]) -> f64 {
    largest(values.windows(2).map(|pair| pair[1] - pair[0]))
}

/// Whole numbers from `low` to `high`, about `per_octave` to a doubling, each once.
pub(crate) fn budgets(low: u64, high: u64, per_octave: u32) -> Vec<u64> {
    let mut out = vec![low];
    let factor = 2f64.powf(1.0 / f64::from(per_octave));
    let mut at = low as f64;
    while at < high as f64 {
        at = (at * factor).min(high as f64);
        if at.round() as u64 > out[out.len() - 1] {
            out.push(at.round() as u64);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_can_fail() {
        assert!(Check::at_most("x", 1.0, 1.0).holds() && !Check::at_most("x", 1.1, 1.0).holds());
        assert!(Check::at_least("x", 1.0, 1.0).holds() && !Check::at_least("x", 0.9, 1.0).holds());
        assert!(
            !Check::at_most("x", f64::NAN, 1.0).holds()
                && !Check::at_least("x", f64::NAN, 1.0).holds()
        );
        assert!(largest([1.0, f64::NAN, 2.0]).is_nan());
        assert_eq!((rise(&[3.0, 2.0, 2.5]), rise(&[3.0, 2.0, 1.5])), (0.5, -0.5));
        assert_eq!(budgets(2, 9, 1), [2, 4, 8, 9]);
    }
}
