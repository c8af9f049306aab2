//! Whether theorems that are given a probability are proved that often.

use catamount_statistics::{Rate, wilson};
use serde::{Deserialize, Serialize};

/// Theorems whose predictions lie in one tenth of [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Mean prediction.
    pub predicted: f64,
    /// How many of them were proved, with Wilson's interval.
    pub observed: Rate,
}

const BINS: usize = 10;

/// Predictions with outcomes, in tenths; empty tenths are left out.
pub(crate) fn reliability(pairs: impl IntoIterator<Item = (f64, bool)>) -> Vec<Bin> {
    let mut bins = [(0u64, 0.0, 0.0); BINS];
    for (predicted, proved) in pairs {
        let place = ((predicted * BINS as f64) as usize).min(BINS - 1);
        let (count, sum, successes) = &mut bins[place];
        *count += 1;
        *sum += predicted;
        *successes += f64::from(u8::from(proved));
    }
    bins.into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, sum, successes)| Bin {
            predicted: sum / count as f64,
            observed: wilson(successes, count),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainty_is_in_the_last_tenth() {
        let bins = reliability([(0.0, false), (0.05, true), (1.0, true), (0.95, false)]);
        assert_eq!(bins.len(), 2);
        assert_eq!((bins[0].observed.n, bins[0].observed.rate), (2, 0.5));
        assert_eq!((bins[1].predicted, bins[1].observed.rate), (0.975, 0.5));
    }
}
