//! Root-mean-square normalisation (RMSNorm).

/// The norm of rows of `d` numbers.
pub struct Norm<'a, T: ?Sized> {
    /// Width of a row.
    pub d: usize,
    /// Added to the mean square.
    pub eps: f32,
    /// `[d]`.
    pub weight: &'a T,
}

impl<T: ?Sized> Clone for Norm<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Norm<'_, T> {}

/// What a norm gives.
pub struct Normed<'a, T: ?Sized> {
    /// `[n]`: `1 / sqrt(mean(x²) + eps)` of each row, kept for the backward pass.
    pub rstd: &'a mut T,
    /// `[n, d]`: `x * rstd * weight`.
    pub out: &'a mut T,
}

/// What a norm was taken of, as its backward pass needs it.
pub struct NormInput<'a, T: ?Sized> {
    /// `[n, d]`.
    pub x: &'a T,
    /// [`Normed::rstd`].
    pub rstd: &'a T,
}
