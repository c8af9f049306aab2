//! A floating-point number with about 31 decimal digits and an exponent that no trace exhausts.
//!
//! The value is (hi + lo) * 2^(512 * chunk): a pair of doubles for precision, and a coarse exponent
//! for range. The coarse exponent moves only when the pair leaves [2^-256, 2^256), so ordinary
//! operations pay for it with one comparison.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::number::{Arithmetic, Number};

const CHUNK_BITS: f64 = 512.0;
/// 2^256: where a pair is moved to the next chunk.
const LIMIT: f64 = 1.157_920_892_373_162e77;
/// 2^-256.
const INVERSE_LIMIT: f64 = 1.0 / LIMIT;
/// 2^512 = LIMIT squared.
const CHUNK: f64 = LIMIT * LIMIT;
/// 2^-512.
const INVERSE_CHUNK: f64 = INVERSE_LIMIT * INVERSE_LIMIT;
/// ln 2 as a pair.
const LN_2: (f64, f64) = (std::f64::consts::LN_2, 2.319_046_813_846_3e-17);

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wide {
    hi: f64,
    lo: f64,
    chunk: i64,
}

impl Wide {
    fn normalised(hi: f64, lo: f64, chunk: i64) -> Self {
        let size = hi.abs();
        if size >= LIMIT {
            Wide { hi: hi * INVERSE_CHUNK, lo: lo * INVERSE_CHUNK, chunk: chunk + 1 }
        } else if size < INVERSE_LIMIT {
            if hi == 0.0 {
                return Wide::ZERO;
            }
            Wide { hi: hi * CHUNK, lo: lo * CHUNK, chunk: chunk - 1 }
        } else {
            Wide { hi, lo, chunk }
        }
    }
}

/// a + b exactly, as a rounded sum and its error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// The same, for |a| >= |b|.
fn quick_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// Halves of 26 bits each. (Dekker's; a fused multiply-add is a slow library call on baseline
/// x86-64.)
fn split(a: f64) -> (f64, f64) {
    let shifted = 134_217_729.0 * a;
    let high = shifted - (shifted - a);
    (high, a - high)
}

/// a * b exactly, as a rounded product and its error.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((ah, al), (bh, bl)) = (split(a), split(b));
    (product, ((ah * bh - product) + ah * bl + al * bh) + al * bl)
}

impl From<f64> for Wide {
    fn from(x: f64) -> Self {
        Wide::normalised(x, 0.0, 0)
    }
}

impl Neg for Wide {
    type Output = Wide;

    fn neg(self) -> Wide {
        Wide { hi: -self.hi, lo: -self.lo, chunk: self.chunk }
    }
}

impl Add for Wide {
    type Output = Wide;

    fn add(self, other: Wide) -> Wide {
        if self.hi == 0.0 {
            return other;
        }
        if other.hi == 0.0 {
            return self;
        }
        let (big, mut small) =
            if self.chunk >= other.chunk { (self, other) } else { (other, self) };
        match big.chunk - small.chunk {
            0 => {}
            1 => {
                small = Wide {
                    hi: small.hi * INVERSE_CHUNK,
                    lo: small.lo * INVERSE_CHUNK,
                    chunk: big.chunk,
                }
            }
            _ => return big,
        }
        let (sum, error) = two_sum(big.hi, small.hi);
        let (hi, lo) = quick_two_sum(sum, error + (big.lo + small.lo));
        Wide::normalised(hi, lo, big.chunk)
    }
}

impl Sub for Wide {
    type Output = Wide;

    fn sub(self, other: Wide) -> Wide {
        self + -other
    }
}

impl Mul for Wide {
    type Output = Wide;

    fn mul(self, other: Wide) -> Wide {
        let (product, error) = two_product(self.hi, other.hi);
        let (hi, lo) = quick_two_sum(product, error + (self.hi * other.lo + self.lo * other.hi));
        Wide::normalised(hi, lo, self.chunk + other.chunk)
    }
}

impl Div for Wide {
    type Output = Wide;

    fn div(self, other: Wide) -> Wide {
        // Two Newton corrections on the quotient of the leading parts.
        let first = Wide::normalised(self.hi / other.hi, 0.0, self.chunk - other.chunk);
        let rest = self - other * first;
        let second = Wide::normalised(rest.hi / other.hi, 0.0, rest.chunk - other.chunk);
        first + second
    }
}

impl Arithmetic for Wide {
    const ZERO: Self = Wide { hi: 0.0, lo: 0.0, chunk: 0 };
    const ONE: Self = Wide { hi: 1.0, lo: 0.0, chunk: 0 };
}

impl Number for Wide {
    const EPSILON: f64 = 1e-30;

    fn exp(x: f64) -> Self {
        let chunk = (x / (CHUNK_BITS * LN_2.0)).round();
        let bits = chunk * CHUNK_BITS;
        let (high, low) = two_product(bits, LN_2.0);
        // |rest| <= 256 ln 2, so that e^rest is within the pair's range.
        let rest = (x - high) - (low + bits * LN_2.1);
        Wide::normalised(rest.exp(), 0.0, chunk as i64)
    }

    fn ln(self) -> f64 {
        (self.hi.ln() + self.lo / self.hi) + self.chunk as f64 * CHUNK_BITS * LN_2.0
    }

    fn to_f64(self) -> f64 {
        match self.chunk {
            0 => self.hi,
            1 => self.hi * CHUNK,
            -1 => self.hi * INVERSE_CHUNK,
            -2 => self.hi * INVERSE_CHUNK * INVERSE_CHUNK,
            chunk if chunk < 0 => 0.0 * self.hi,
            _ => f64::INFINITY * self.hi.signum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_powers_of_two() {
        assert_eq!(LIMIT, 2f64.powi(256));
        assert_eq!(CHUNK, 2f64.powi(512));
        assert_eq!(INVERSE_CHUNK, 2f64.powi(-512));
    }

    #[test]
    fn keeps_what_a_double_loses() {
        let tiny = Wide::from(1e-25);
        assert_eq!(((Wide::ONE + tiny) - Wide::ONE).to_f64(), 1e-25);
        let third = Wide::ONE / Wide::from(3.0);
        let error = third * Wide::from(3.0) - Wide::ONE;
        assert!(error.to_f64().abs() < 1e-30);
    }

    #[test]
    fn survives_far_outside_the_range_of_a_double() {
        let p = Wide::exp(-5000.0);
        assert!((p.ln() + 5000.0).abs() < 1e-9);
        let back = p * Wide::exp(5000.0);
        assert!((back.to_f64() - 1.0).abs() < 1e-11, "{back:?}");
        assert_eq!((p + Wide::ONE).to_f64(), 1.0);
        assert_eq!((p * p).to_f64(), 0.0);
    }

    #[test]
    fn adds_across_a_chunk_boundary() {
        let above = Wide::from(LIMIT); // stored in chunk 1
        let below = Wide::from(LIMIT / 2.0); // stored in chunk 0
        assert_eq!((above + below).to_f64(), 1.5 * LIMIT);
        assert_eq!((above - below).to_f64(), 0.5 * LIMIT);
    }
}
