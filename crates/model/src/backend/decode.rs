//! What only sampling needs: rows by index, the key/value cache, drawing tokens.

use super::{Heads, Memory, Packed};
use crate::{Draws, Result, Sampling};

/// Where one decoded row finds its past: two runs of rows in the cache. The prefix is shared by the
/// samples of one state; the own run ends with the row being decoded. A row with both lengths zero
/// is padding and its results are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First cache row of the shared prefix.
    pub prefix: u32,
    /// Rows of the shared prefix.
    pub prefix_len: u32,
    /// First cache row of the sample's own tokens.
    pub own: u32,
    /// Rows of the sample's own tokens, the current one included.
    pub own_len: u32,
}

/// Where a prompt is in the cache as far as it is computed, and what of it is copied there first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// First cache row of the prompt.
    pub first: u32,
    /// Its rows, those that are being computed included.
    pub rows: u32,
    /// First cache row of the prompt that begins alike.
    pub source: u32,
    /// Rows to copy from there.
    pub known: u32,
}

impl Place {
    /// As an index has it.
    pub fn numbers(self) -> [u32; 4] {
        [self.first, self.rows, self.source, self.known]
    }
}

/// Operations of decoding.
pub trait Decode: Memory {
    /// Runs `body`, which only queues operations on the same buffers with the same sizes each time
    /// it is called with this key. A backend may record it once and replay the recording instead
    /// (CUDA graphs).
    fn replay(&self, key: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _ = key;
        body()
    }

    /// How many rows a decoding step of `n` samples is padded to, so that few recordings serve
    /// every size.
    fn decode_rows(&self, n: usize) -> usize {
        n
    }

    /// `out[j] = x[rows[j]]` for rows of `d`.
    fn gather(
        &self,
        m: usize,
        d: usize,
        x: &Self::Tensor,
        rows: &Self::Index,
        out: &mut Self::Tensor,
    ) -> Result<()>;
    /// Stores the (rotated) keys and the values of `qkv`'s row `i` at row `slots[i]` of one layer's
    /// cache, which holds `capacity * 2 * kv` numbers in the backend's own order; `u32::MAX` stores
    /// nothing.
    fn cache_write(
        &self,
        n: usize,
        heads: Heads,
        qkv: &Self::Tensor,
        slots: &Self::Index,
        cache: &mut Self::Tensor,
    ) -> Result<()>;
    /// Attention of `n` single decoded rows over their cached past; `spans` holds a [`Span`] per
    /// row as four numbers.
    fn cache_attention(
        &self,
        n: usize,
        heads: Heads,
        qkv: &Self::Tensor,
        cache: &Self::Tensor,
        spans: &Self::Index,
        out: &mut Self::Tensor,
    ) -> Result<()>;
    /// Copies the beginnings of prompts from others: for each of so many sequences, the rows that
    /// its [`Place`], as four numbers, says are known. No row that is copied is also written.
    fn cache_copy(
        &self,
        sequences: usize,
        heads: Heads,
        places: &Self::Index,
        cache: &mut Self::Tensor,
    ) -> Result<()>;
    /// Attention of the ends of prompts, whose beginnings are in the cache: sequence `i` of
    /// `packed` is the last rows of those that the cache has at place `i`, its own keys and values
    /// included. A row has the same bits wherever its sequence begins.
    fn prompt_attention(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &Self::Tensor,
        cache: &Self::Tensor,
        places: &Self::Index,
        out: &mut Self::Tensor,
    ) -> Result<()>
    where
        Self: Sized;
    /// Draws one token for each row of `draws` from the same row of `logits` (`[n, vocab]`): the
    /// token whose interval of the cumulative distribution, most probable set first cut to `top_p`,
    /// holds the row's uniform number. In that distribution the row's scarce tokens come after the
    /// others, in their own order and only with what is left of them; the others are in token
    /// order.
    fn sample(
        &self,
        vocab: usize,
        logits: &Self::Tensor,
        sampling: Sampling,
        draws: &mut Draws,
    ) -> Result<()>;
}
