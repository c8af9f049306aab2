//! What only sampling needs: rows by index, the key/value cache, drawing tokens.

use super::{Heads, Memory, Packed};
use crate::{Draws, Error, Result, Sampling};

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
    /// Whether prompts can begin with rows that are in the cache already, at the same results to
    /// the last bit. The next two operations are for these.
    fn shares_prompts(&self) -> bool {
        false
    }
    /// Copies `len` rows of one layer's cache to others, which they do not overlap.
    fn cache_copy(
        &self,
        heads: Heads,
        len: usize,
        from: u32,
        to: u32,
        cache: &mut Self::Tensor,
    ) -> Result<()> {
        let _ = (heads, len, from, to, cache);
        Err(not_shared())
    }
    /// Attention of the ends of prompts, whose beginnings are in the cache: sequence `i` of
    /// `packed` is the last rows of the `prompts[2 i + 1]` rows that the cache has from
    /// `prompts[2 i]` on, its own keys and values included.
    fn prompt_attention(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &Self::Tensor,
        cache: &Self::Tensor,
        prompts: &Self::Index,
        out: &mut Self::Tensor,
    ) -> Result<()>
    where
        Self: Sized,
    {
        let _ = (heads, packed, qkv, cache, prompts, out);
        Err(not_shared())
    }
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

/// A device that always computes prompts whole was asked not to.
fn not_shared() -> Error {
    Error::Input("this device computes prompts whole; see shares_prompts".into())
}
