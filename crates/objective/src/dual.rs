//! A probability together with its derivative by every log p_t: what lets weights follow
//! mechanically from a strategy.

use std::ops::{Add, Div, Mul, Sub};

use crate::number::{Arithmetic, Number};
use crate::wide::Wide;

/// A value and its derivatives by log p_1, ..., log p_L. Ordinary arithmetic; a constant carries no
/// derivatives.
#[derive(Clone, Debug)]
pub struct Dual {
    value: Wide,
    /// Empty for a constant.
    tangent: Vec<Wide>,
}

impl Dual {
    /// A number that does not depend on the policy.
    pub fn constant(value: f64) -> Self {
        Dual { value: value.into(), tangent: Vec::new() }
    }

    /// p_t of a trace of `length` steps, and 1 - p_t.
    pub(crate) fn odds(hit: Wide, miss: Wide, index: usize, length: usize) -> (Self, Self) {
        let mut tangent = vec![Wide::ZERO; length];
        tangent[index] = hit;
        let mut opposite = vec![Wide::ZERO; length];
        opposite[index] = -hit;
        (Dual { value: hit, tangent }, Dual { value: miss, tangent: opposite })
    }

    /// x^exponent, for x > 0.
    pub fn powf(&self, exponent: f64) -> Self {
        let value = Wide::exp(self.value.ln() * exponent);
        let slope = Wide::from(exponent) * value / self.value;
        Dual { value, tangent: self.tangent.iter().map(|&d| slope * d).collect() }
    }

    /// log of the value.
    pub fn ln_value(&self) -> f64 {
        self.value.ln()
    }

    /// The value, as near as an `f64` comes.
    pub fn value(&self) -> f64 {
        self.value.to_f64()
    }

    /// True for exactly zero.
    pub fn is_zero(&self) -> bool {
        self.value == Wide::ZERO
    }

    /// Elasticities: d log value / d log p_t.
    pub(crate) fn elasticities(&self, length: usize) -> Vec<f64> {
        (0..length)
            .map(|t| self.tangent.get(t).map_or(0.0, |&d| (d / self.value).to_f64()))
            .collect()
    }

    fn zip(&self, other: &Dual, value: Wide, f: impl Fn(Wide, Wide) -> Wide) -> Dual {
        let length = self.tangent.len().max(other.tangent.len());
        let at = |tangent: &[Wide], t: usize| tangent.get(t).copied().unwrap_or(Wide::ZERO);
        Dual {
            value,
            tangent: (0..length).map(|t| f(at(&self.tangent, t), at(&other.tangent, t))).collect(),
        }
    }
}

impl Add for &Dual {
    type Output = Dual;

    fn add(self, other: &Dual) -> Dual {
        self.zip(other, self.value + other.value, |a, b| a + b)
    }
}

impl Sub for &Dual {
    type Output = Dual;

    fn sub(self, other: &Dual) -> Dual {
        self.zip(other, self.value - other.value, |a, b| a - b)
    }
}

#[allow(clippy::suspicious_arithmetic_impl, reason = "the product and quotient rules")]
impl Mul for &Dual {
    type Output = Dual;

    fn mul(self, other: &Dual) -> Dual {
        self.zip(other, self.value * other.value, |a, b| a * other.value + self.value * b)
    }
}

#[allow(clippy::suspicious_arithmetic_impl, reason = "the product and quotient rules")]
impl Div for &Dual {
    type Output = Dual;

    fn div(self, other: &Dual) -> Dual {
        let quotient = self.value / other.value;
        self.zip(other, quotient, |a, b| (a - quotient * b) / other.value)
    }
}
