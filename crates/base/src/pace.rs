//! How fast work goes, and how long the rest of it takes.

use std::time::{Duration, Instant};

use indicatif::HumanDuration;

/// Where and when this process began its work. Rates are averages since then, so that estimates
/// settle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    position: u64,
    time: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        Pace::from(0)
    }
}

impl Pace {
    /// Work that begins now, at a position that somebody else has reached.
    pub(crate) fn from(position: u64) -> Self {
        Pace { position, time: Instant::now() }
    }

    /// The rate at a position, and how long the rest takes, for people.
    pub(crate) fn said(&self, position: u64, items: u64) -> (String, String) {
        let left = self.left(position, items);
        let left = left.map_or("?".to_string(), |left| HumanDuration(left).to_string());
        (rate(self.rate(position)), left)
    }

    /// Items a second.
    fn rate(&self, position: u64) -> f64 {
        let done = position.saturating_sub(self.position) as f64;
        done / self.time.elapsed().as_secs_f64().max(1e-9)
    }

    /// How long the rest takes; before the first item nobody knows.
    fn left(&self, position: u64, items: u64) -> Option<Duration> {
        let (left, rate) = (items.saturating_sub(position) as f64, self.rate(position));
        (rate > 0.0).then(|| Duration::try_from_secs_f64(left / rate).unwrap_or(Duration::MAX))
    }
}

/// A rate in at most three digits.
pub fn rate(per_second: f64) -> String {
    let (number, unit) = match per_second {
        r if r >= 999.5e6 => (r / 1e9, "G/s"),
        r if r >= 999.5e3 => (r / 1e6, "M/s"),
        r if r >= 999.5 => (r / 1e3, "k/s"),
        r if r >= 0.1 || r <= 0.0 => (r, "/s"),
        r if r * 3600.0 >= 0.1 => (r * 3600.0, "/h"),
        r => (r * 86_400.0, "/d"),
    };
    let digits = match number {
        n if n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    format!("{number:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_at_most_three_digits() {
        for (per_second, text) in [
            (0.0, "0.00/s"),
            (1.0 / 3.0, "0.33/s"),
            (12.345, "12.3/s"),
            (123.456, "123/s"),
            (999.9, "1.00k/s"),
            (76_543.2, "76.5k/s"),
            (1.0 / 60.0, "60.0/h"),
            (1.0 / 86_400.0, "1.00/d"),
            (2.5e9, "2.50G/s"),
        ] {
            assert_eq!(rate(per_second), text);
        }
    }

    #[test]
    fn what_an_earlier_process_did_says_nothing_about_this_one() {
        let mut pace = Pace::from(900);
        pace.time -= Duration::from_secs(10);
        assert!((pace.rate(950) - 5.0).abs() < 0.1);
        let left = pace.left(950, 1000).unwrap().as_secs_f64();
        assert!((left - 10.0).abs() < 0.5, "{left}");
        assert_eq!(Pace::from(0).left(0, 10), None);
        assert_eq!(Pace::from(0).said(0, 10), ("0.00/s".to_string(), "?".to_string()));
    }
}
