//! The head: log-probabilities of the tokens that rows should predict.

/// The head and what is asked of it: `m` scored rows, each with its target, at a temperature.
pub struct Head<'a, T, I> {
    /// Scored rows.
    pub m: usize,
    /// Tokens.
    pub vocab: usize,
    /// Width of a row.
    pub d: usize,
    /// `[vocab, d]`.
    pub weight: &'a T,
    /// `[m]`: the rows that are scored, all distinct.
    pub rows: &'a I,
    /// `[m]`: the token that each should predict.
    pub targets: &'a I,
    /// Divides the logits.
    pub temperature: f32,
}

/// What scoring gives.
pub struct Scores<'a, T: ?Sized> {
    /// `[m]`: the target's logit less `lse`.
    pub log_p: &'a mut T,
    /// `[m]`: the log-sum-exp of the row's logits, kept for the backward pass.
    pub lse: &'a mut T,
}

/// Gradients of a head's input and weight.
pub struct HeadGradients<'a, T: ?Sized> {
    /// `[n, d]`: overwritten, zero where a row is not scored.
    pub dx: &'a mut T,
    /// `[vocab, d]`: added to, where it is wanted.
    pub dweight: Option<&'a mut T>,
}
