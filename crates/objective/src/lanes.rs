//! Several traces side by side in the same recurrence: each lane does what it would do alone, in
//! the same order.

use std::array::from_fn;
use std::ops::{Add, Mul, Sub};

use crate::number::{Arithmetic, StepOdds};

/// Traces solved together.
pub(crate) const LANES: usize = 8;

/// One number of each trace.
#[derive(Clone, Copy)]
pub(crate) struct Lanes(pub [f64; LANES]);

impl Lanes {
    /// The odds of the same step of every trace.
    pub fn odds(steps: [StepOdds<f64>; LANES]) -> StepOdds<Lanes> {
        let pick = |part: fn(&StepOdds<f64>) -> f64| Lanes(from_fn(|i| part(&steps[i])));
        StepOdds {
            hit: pick(|s| s.hit),
            miss: pick(|s| s.miss),
            retry: pick(|s| s.retry),
            lost: pick(|s| s.lost),
        }
    }
}

impl Arithmetic for Lanes {
    const ZERO: Self = Lanes([0.0; LANES]);
    const ONE: Self = Lanes([1.0; LANES]);
}

impl Add for Lanes {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Lanes(from_fn(|i| self.0[i] + other.0[i]))
    }
}

impl Sub for Lanes {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Lanes(from_fn(|i| self.0[i] - other.0[i]))
    }
}

impl Mul for Lanes {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Lanes(from_fn(|i| self.0[i] * other.0[i]))
    }
}
