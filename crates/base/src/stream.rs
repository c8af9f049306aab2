//! Random numbers by name: what is drawn depends on who draws it, never on when.

/// Names a random stream. Whoever draws number `i` of a stream gets the same one, so that batching,
/// threads and the order of completion cannot change a result, and asking for fewer numbers gives
/// a prefix of the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(pub u64);

impl Stream {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Stream(split_mix(seed ^ 0x9e37_79b9_7f4a_7c15))
    }

    /// A stream derived from this one by a number.
    pub fn child(self, n: u64) -> Self {
        let number = split_mix(n.wrapping_add(0x9e37_79b9_7f4a_7c15));
        Stream(split_mix(self.0.rotate_left(23) ^ number))
    }

    /// A stream derived from this one by a name.
    pub fn named(self, name: &str) -> Self {
        // FNV-1a: stable across platforms and versions, unlike the standard library's hasher.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        self.child(hash)
    }

    /// The `n`-th uniform number of the stream, in [0, 1).
    pub fn uniform(self, n: u64) -> f64 {
        (self.child(n).0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The finaliser of SplitMix64: every bit of the input changes every bit of the output.
pub fn split_mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Logs are compared byte for byte across versions: a stream must never give other numbers.
    #[test]
    fn streams_are_what_they_were() {
        let stream = Stream::new(42).named("syl").child(7);
        assert_eq!(stream.0, 7_592_210_321_975_727_245);
        assert!((0..1000).all(|n| (0.0..1.0).contains(&stream.uniform(n))));
    }
}
