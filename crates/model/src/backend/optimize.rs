//! What an optimizer does to parameters and their gradients.

use super::Memory;
use crate::Result;

/// AdamW's hyperparameters for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Learning rate of this step.
    pub lr: f32,
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Added to the root of the second moment.
    pub eps: f32,
    /// Decoupled weight decay; the caller passes zero for norms and biases.
    pub weight_decay: f32,
    /// The step's number, from 1, for bias correction.
    pub step: u64,
    /// The gradient is multiplied by this first: clipping and averaging.
    pub grad_scale: f32,
}

/// A parameter to be updated, with its gradient and its moments, all of the same length.
pub struct Update<'a, T> {
    /// d loss / d value.
    pub grad: &'a T,
    /// First moment.
    pub m: &'a mut T,
    /// Second moment.
    pub v: &'a mut T,
    /// The parameter.
    pub value: &'a mut T,
}

/// Operations on many tensors at once: an adapter has hundreds of small ones, and a device may take
/// them all in one go.
pub trait Optimize: Memory {
    /// Sets all elements of every buffer to zero.
    fn clear_all(&self, tensors: &mut [&mut Self::Tensor]) -> Result<()>;
    /// The sum of squares over several buffers: the global gradient norm, squared.
    fn sum_of_squares(&self, tensors: &[&Self::Tensor]) -> Result<f64>;
    /// One AdamW update of every parameter of the list, in place.
    fn adamw(&self, step: &AdamW, updates: &mut [Update<'_, Self::Tensor>]) -> Result<()>;
}
