//! Addresses of device memory, by what is there: a kernel that takes indices is not given numbers.

use std::marker::PhantomData;

use half::bf16;

/// Activations and weights, in the precision that the device computes in (`T` in the kernels).
pub(crate) enum Computed {}
/// A row of four indices: where a decoded row finds its past.
pub(crate) enum Four {}
/// A buffer to be zeroed, as `clear` takes it: its address and its bytes.
pub(crate) type Stretch = [u64; 2];
/// A tensor to be updated, as `adamw` takes it: gradient, moments, value, working copy, length.
pub(crate) type Tensors = [u64; 6];
/// A tensor whose squares are summed: its address, its length, whether it is bf16.
pub(crate) type Slice = [u64; 3];

/// Where something of one kind is on the device; null where there is nothing.
pub(crate) struct Address<T>(u64, PhantomData<fn() -> T>);

impl<T> Clone for Address<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Address<T> {}

impl<T> Address<T> {
    pub const NULL: Self = Address(0, PhantomData);

    pub fn new(address: u64) -> Self {
        Address(address, PhantomData)
    }

    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    pub fn raw(self) -> u64 {
        self.0
    }

    /// So many bytes further on.
    pub fn skip_bytes(self, bytes: usize) -> Self {
        Address::new(self.0 + bytes as u64)
    }

    /// What is there, seen as something else.
    pub fn cast<U>(self) -> Address<U> {
        Address::new(self.0)
    }
}

impl Address<u32> {
    /// So many indices further on.
    pub fn skip(self, indices: usize) -> Self {
        self.skip_bytes(4 * indices)
    }
}

impl Address<f32> {
    /// So many numbers further on.
    pub fn skip(self, numbers: usize) -> Self {
        self.skip_bytes(4 * numbers)
    }
}

impl Address<bf16> {
    /// So many numbers further on.
    pub fn skip(self, numbers: usize) -> Self {
        self.skip_bytes(2 * numbers)
    }
}

impl Address<f64> {
    /// So many numbers further on.
    pub fn skip(self, numbers: usize) -> Self {
        self.skip_bytes(8 * numbers)
    }
}
