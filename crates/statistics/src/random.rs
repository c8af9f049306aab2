//! A small seeded stream, so that a bootstrap is the same on every machine.

use catamount_base::split_mix;

/// SplitMix64: one 64-bit state, a full period, good enough to resample theorems.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        split_mix(self.0)
    }

    /// A number in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An index below `n` (0 when `n` is 0), without the bias of a plain remainder.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n.max(1) as u64;
        // The high word of a 128-bit product is uniform once the short remainder zone of the low
        // word is thrown again.
        let short = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.bits()) * u128::from(n);
            if product as u64 >= short {
                return (product >> 64) as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_even() {
        let mut random = Random::new(7);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[random.below(6)] += 1;
        }
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi2 < 20.5, "five degrees of freedom, p = 0.001: {chi2}");
        assert_eq!(random.below(0), 0);
    }
}
