//! Causal attention over packed sequences, and the rotary embedding before it.

use crate::Memory;

/// The shape of attention. A row of `qkv` is `heads` query heads, then `kv_heads` key heads, then
/// `kv_heads` value heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Numbers in a head; even.
    pub dim: usize,
}

impl Heads {
    /// Width of a `qkv` row.
    pub fn qkv(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.dim
    }

    /// Width of the queries, and of attention's output.
    pub fn q(&self) -> usize {
        self.heads * self.dim
    }

    /// Width of the keys, and of the values.
    pub fn kv(&self) -> usize {
        self.kv_heads * self.dim
    }
}

/// Sequences laid end to end on the device; attention never crosses from one into another.
pub struct Packed<B: Memory> {
    /// Token rows.
    pub n: usize,
    /// Sequences.
    pub sequences: usize,
    /// The longest sequence's length.
    pub longest: usize,
    /// `[n]` token of each row.
    pub tokens: B::Index,
    /// `[n]` position of each row in its sequence.
    pub positions: B::Index,
    /// `[sequences + 1]` first row of each sequence, then `n` (known elsewhere as `cu_seqlens`).
    pub starts: B::Index,
}

/// What attention computed, as its backward pass needs it.
pub struct Attended<'a, T> {
    /// `[n, qkv]`, rotated: what it read.
    pub qkv: &'a T,
    /// `[n, heads * dim]`: its result.
    pub out: &'a T,
    /// `[n, heads]`: each query's log-sum-exp.
    pub lse: &'a T,
}

/// Which way heads are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// By the position's angles.
    Forward,
    /// Back by them: the backward pass, since a rotation's inverse is its transpose.
    Backward,
}

impl Direction {
    /// What the angles' sines are multiplied by.
    pub fn sign(self) -> f32 {
        match self {
            Direction::Forward => 1.0,
            Direction::Backward => -1.0,
        }
    }
}
