//! Linear maps with a bias.

/// The size of a linear map's matrix, `[outputs, inputs]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of the matrix.
    pub outputs: usize,
    /// Its columns.
    pub inputs: usize,
}

/// `y = x Wᵀ + b`.
pub struct Affine<'a, T> {
    /// W's.
    pub shape: Shape,
    /// W, `[outputs, inputs]`.
    pub weight: &'a T,
    /// b, `[outputs]`.
    pub bias: Option<&'a T>,
}

impl<T> Clone for Affine<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Affine<'_, T> {}
