//! Numbers and indices on the GPU.

use std::sync::Arc;

use catamount_model::Result;

use crate::address::{Address, Computed};
use crate::device::{Buffer, Device};
use crate::fp8::Fp8;

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    F32,
    Bf16,
    /// Eight bits, e4m3: what products of a frozen base may read.
    Fp8,
}

impl Format {
    pub fn bytes(self) -> usize {
        match self {
            Format::F32 => 4,
            Format::Bf16 => 2,
            Format::Fp8 => 1,
        }
    }
}

/// A flat buffer of numbers on the GPU. A trained parameter has its f32 master copy and, in bf16
/// mode, the bf16 copy that the operations read.
pub struct CudaTensor {
    pub(crate) len: usize,
    pub(crate) format: Format,
    pub(crate) numbers: Buffer,
    pub(crate) working: Option<Buffer>,
    /// What else there is of a matrix in fp8.
    pub(crate) fp8: Option<Fp8>,
    /// Changes with every operation that writes to it.
    pub(crate) version: u64,
}

impl CudaTensor {
    pub(crate) fn zeros(
        device: &Arc<Device>,
        len: usize,
        format: Format,
        working: bool,
    ) -> Result<Self> {
        let numbers = Buffer::zeros(device, len * format.bytes())?;
        let working = working.then(|| Buffer::zeros(device, len * 2)).transpose()?;
        Ok(CudaTensor { len, format, numbers, working, fp8: None, version: 0 })
    }

    /// What operations read: the working copy where there is one.
    pub(crate) fn computed(&self) -> (Address<Computed>, Format) {
        match &self.working {
            Some(working) => (working.address(), Format::Bf16),
            None => (self.numbers.address(), self.format),
        }
    }

    /// What this tensor held at some moment.
    pub(crate) fn stamp(&self) -> (u64, u64) {
        (self.numbers.id, self.version)
    }
}

/// A flat buffer of `u32` on the GPU.
pub struct CudaIndex {
    pub(crate) len: usize,
    pub(crate) numbers: Buffer,
    pub(crate) version: u64,
}

impl CudaIndex {
    pub(crate) fn stamp(&self) -> (u64, u64) {
        (self.numbers.id, self.version)
    }
}
