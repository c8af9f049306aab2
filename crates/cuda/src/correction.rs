//! What an adapter has yet to add to a product's result. With few rows it is computed beside the product, and waits for the next
//! operation: those that read the result anyway add it as they do, for the others it is added first.

use catamount_model::{Heads, Result};

use crate::cuda::{Cuda, Turn};
use crate::kernels::args;
use crate::pending::Pending;
use crate::tensor::Format;

/// Rows up to which queries and keys are rotated together with what the cache keeps.
const FEW: usize = 1024;

/// `y += part`, both `[n, outputs]`.
#[derive(Clone, Copy)]
pub(crate) struct Correction {
    /// The result's identity and address.
    pub y_id: u64,
    pub y: u64,
    pub part: u64,
    pub len: usize,
}

/// Queries and keys to be rotated, few rows of them: the cache may want them next.
#[derive(Clone, Copy)]
pub(crate) struct Rotation {
    pub qkv_id: u64,
    pub qkv: u64,
    /// What an adapter adds first; zero for nothing.
    pub part: u64,
    pub n: usize,
    pub heads: Heads,
    /// Positions that the table knows.
    pub known: usize,
    pub positions: u64,
    pub table: u64,
    pub sign: f32,
}

impl Cuda {
    /// The address of what an adapter has yet to add to the first `len` numbers of this buffer, or zero. Whatever else waits is
    /// queued. The caller must queue what adds it and then call [`Cuda::flush`].
    pub(crate) fn take_part(&self, turn: &Turn<'_>, y_id: u64, len: usize) -> Result<u64> {
        let waiting = match &turn.state().pending {
            Some(Pending::Correction(c)) if c.y_id == y_id && c.len == len => c.part,
            _ => 0,
        };
        if waiting != 0 {
            turn.state().pending = None;
        } else {
            self.flush(turn)?;
        }
        Ok(waiting)
    }

    /// Adds what an adapter has yet to add.
    pub(crate) fn add_correction(&self, c: &Correction) -> Result<()> {
        let kernel = if self.format() == Format::Bf16 { c"axpby_bf16_bf16" } else { c"axpby_f32_f32" };
        self.launch(kernel, c.len.div_ceil(256), 256, args![c.len as u64, 1.0f32, c.part, 1.0f32, c.y])
    }

    /// Whether rows of these heads are rotated later, together with what the cache wants.
    pub(crate) fn rotates_later(&self, n: usize, heads: Heads) -> bool {
        n <= FEW && heads.qkv().is_multiple_of(8)
    }

    /// Rotates, and keeps keys and values: `cache` is its capacity, the rows' slots and its address.
    pub(crate) fn rotate(&self, r: &Rotation, cache: Option<(usize, u64, u64)>) -> Result<()> {
        let (rotated, half, width) = (r.heads.heads + r.heads.kv_heads, r.heads.dim / 2, r.heads.qkv());
        let (capacity, slots, to) = cache.unwrap_or((0, 0, 0));
        let list = args![
            rotated,
            half,
            width,
            r.known,
            r.qkv,
            r.part,
            r.positions,
            r.table,
            r.sign,
            r.heads.q(),
            capacity,
            slots,
            to
        ];
        let threads = (rotated * half + r.heads.kv()).div_ceil(8).next_multiple_of(32).clamp(64, 512);
        self.launch(c"rotate_rows", r.n, threads, list)
    }
}
