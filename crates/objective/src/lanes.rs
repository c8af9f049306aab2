//! Several traces side by side in the same recurrence: each lane does what it would do alone, in
//! the same order.

use std::array::from_fn;
use std::ops::{Add, Div, Mul, Sub};

use crate::number::{Arithmetic, StepOdds};

/// Traces solved together: two vectors of AVX-512, so that one is computed while the other waits.
/// Half of them where registers are narrow.
pub(crate) const LANES: usize = if cfg!(target_arch = "x86_64") { 16 } else { 8 };

/// One number of each trace.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Lanes(pub [f64; LANES]);

impl Lanes {
    /// The odds of every step of traces of one length.
    pub fn steps(traces: [&[f64]; LANES], absorption: f64) -> Vec<StepOdds<Lanes>> {
        let step = |t: usize| {
            let steps = traces.map(|log_p| StepOdds::<f64>::new(log_p[t], absorption));
            let pick = |part: fn(&StepOdds<f64>) -> f64| Lanes(from_fn(|i| part(&steps[i])));
            StepOdds {
                hit: pick(|s| s.hit),
                miss: pick(|s| s.miss),
                retry: pick(|s| s.retry),
                lost: pick(|s| s.lost),
            }
        };
        (0..traces[0].len()).map(step).collect()
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

impl Div for Lanes {
    type Output = Self;

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Lanes(from_fn(|i| self.0[i] / other.0[i]))
    }
}

impl From<f64> for Lanes {
    fn from(number: f64) -> Self {
        Lanes([number; LANES])
    }
}
