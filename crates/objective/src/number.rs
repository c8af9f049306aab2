//! The arithmetic a recurrence is run in.
//!
//! Every recurrence is written once, over [`Number`], and run in `f64` where that is provably
//! enough and in [`Wide`] where probabilities leave the range of `f64` (a tactic of log p = -1000)
//! or where a difference would cancel.

use std::ops::{Add, Div, Mul, Sub};

use crate::wide::Wide;

/// What sums and differences of products are made of: one quantity, or those of several traces side
/// by side ([`crate::lanes`]).
pub trait Arithmetic: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// Nothing.
    const ZERO: Self;
    /// Certainty.
    const ONE: Self;
}

/// A non-negative quantity or a difference of such: probabilities and their derivatives.
pub trait Number: Arithmetic + Div<Output = Self> + From<f64> {
    /// Relative rounding error of one operation.
    const EPSILON: f64;
    /// e^x, for x far below what `f64` can represent the result of, too.
    fn exp(x: f64) -> Self;
    /// The natural logarithm.
    fn ln(self) -> f64;
    /// The nearest `f64`.
    fn to_f64(self) -> f64;
}

impl Arithmetic for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
}

impl Number for f64 {
    const EPSILON: f64 = f64::EPSILON;

    fn exp(x: f64) -> Self {
        x.exp()
    }

    fn ln(self) -> f64 {
        self.ln()
    }

    fn to_f64(self) -> f64 {
        self
    }
}

/// One step of a trace as the recurrences see it.
#[derive(Clone, Copy, Debug)]
pub struct StepOdds<S> {
    /// p_t: the demonstrated tactic is sampled.
    pub hit: S,
    /// 1 - p_t: it is not.
    pub miss: S,
    /// (1 - p_t)(1 - q): it is not, and the search goes on.
    pub retry: S,
    /// (1 - p_t) q: it is not, and the search never comes back.
    pub lost: S,
}

impl StepOdds<f64> {
    /// The odds of a step of log-probability `log_p`, to full relative precision at both ends.
    pub fn new(log_p: f64, absorption: f64) -> Self {
        let miss = -log_p.exp_m1();
        Self::from_parts(log_p.exp(), miss, absorption)
    }
}

impl StepOdds<Wide> {
    /// The odds of a step of log-probability `log_p`; hit and miss add up to one to the precision
    /// of [`Wide`].
    pub fn new(log_p: f64, absorption: f64) -> Self {
        let (hit, miss) = if log_p > -0.7 {
            let miss = Wide::from(-log_p.exp_m1());
            (Wide::ONE - miss, miss)
        } else {
            let hit = Wide::exp(log_p);
            (hit, Wide::ONE - hit)
        };
        Self::from_parts(hit, miss, absorption)
    }
}

impl<S: Number> StepOdds<S> {
    fn from_parts(hit: S, miss: S, absorption: f64) -> Self {
        let q = S::from(absorption);
        StepOdds { hit, miss, retry: miss * (S::ONE - q), lost: miss * q }
    }
}
