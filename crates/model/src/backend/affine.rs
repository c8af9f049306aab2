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
    /// Whether its products multiply fp8 numbers (e4m3): each row of W, and each of `x`, is divided
    /// by a scale that takes its largest number to the largest there is, and rounded. For the
    /// gradient of the input it is the columns of W, and the rows of `dy`. The backend must have
    /// been told ([`crate::Layers::round_to_fp8`]).
    pub fp8: bool,
}

impl<T> Clone for Affine<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Affine<'_, T> {}
