//! Buffers on a device, and how numbers come and go.

use crate::Result;

/// What a buffer will hold, so that a backend can choose its precision. The CPU keeps everything in
/// f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A parameter that is only read: bf16 on a GPU.
    Frozen,
    /// A parameter being trained: the f32 master copy, with a working copy beside it where the
    /// backend wants one.
    Trained,
    /// An activation or its gradient: bf16 on a GPU.
    Activation,
    /// Always f32: parameter gradients, optimizer state, statistics, log-probabilities,
    /// coefficients, logits.
    Exact,
}

/// A device that holds numbers.
pub trait Memory: Send + Sync + Sized + 'static {
    /// A flat buffer of numbers.
    type Tensor: Send + Sync;
    /// A flat buffer of `u32`.
    type Index: Send + Sync;

    /// The device, for manifests.
    fn describe(&self) -> String;

    /// The numbers it computes in: another arithmetic samples other tactics.
    fn arithmetic(&self) -> &'static str {
        "f32"
    }

    /// Runs a piece of work of many operations where the device likes it run: entering a pool of
    /// threads once is cheaper than once per operation.
    fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        work()
    }

    /// A buffer of `len` zeros.
    fn zeros(&self, len: usize, kind: Kind) -> Result<Self::Tensor>;
    /// Elements in a buffer.
    fn len(&self, tensor: &Self::Tensor) -> usize;
    /// Copies numbers from the host to `to[offset..]`.
    fn upload(&self, from: &[f32], to: &mut Self::Tensor, offset: usize) -> Result<()>;
    /// Copies numbers to the host from `from[offset..]`.
    fn download(&self, from: &Self::Tensor, offset: usize, to: &mut [f32]) -> Result<()>;
    /// Sets the first `len` elements to zero.
    fn clear(&self, len: usize, x: &mut Self::Tensor) -> Result<()>;
    /// A buffer of `len` zero indices.
    fn indices(&self, len: usize) -> Result<Self::Index>;
    /// Copies indices from the host to the start of `to`.
    fn upload_indices(&self, from: &[u32], to: &mut Self::Index) -> Result<()>;
}
