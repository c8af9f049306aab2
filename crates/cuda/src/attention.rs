//! Attention: the tensor-core kernels for heads of 64 and 128 in bf16, plain ones for the rest.

use std::f32::consts::LOG2_E;

use catamount_model::{Attended, Error, Heads, Packed, Result};

use crate::address::{Address, Computed, Four};
use crate::cuda::Cuda;
use crate::kernels::{
    ATTENTION_64, ATTENTION_128, DECODE_64, DECODE_128, KEY_VALUE_GRADIENT_64,
    KEY_VALUE_GRADIENT_128, PLAIN_ATTENTION, PLAIN_CACHE_ATTENTION, PLAIN_KEY_VALUE_GRADIENT,
    PLAIN_PROMPT_ATTENTION, PLAIN_QUERY_GRADIENT, PROMPT_ATTENTION_64, PROMPT_ATTENTION_128,
    QUERY_GRADIENT_64, QUERY_GRADIENT_128, SUM_KEY_VALUE_PARTS, attention_shared,
    key_value_gradient_shared, query_gradient_shared,
};
use crate::launch::Grid;
use crate::tensor::{CudaIndex, CudaTensor, Format};
use crate::turn::Ready;

/// Queries or keys that a block owns.
const ROWS: usize = 64;
/// Warps in a block of the plain kernels, one query each.
const PLAIN: usize = 4;

fn scale(heads: Heads) -> f32 {
    1.0 / (heads.dim as f32).sqrt()
}

fn check(heads: Heads) -> Result<()> {
    if heads.dim > 256 || heads.kv_heads == 0 || !heads.heads.is_multiple_of(heads.kv_heads) {
        return Err(Error::Input(format!(
            "{heads:?}: heads of up to 256 numbers, in whole groups, can be computed here"
        )));
    }
    Ok(())
}

/// The addresses of a backward pass.
struct Pass {
    starts: Address<u32>,
    qkv: Address<Computed>,
    out: Address<Computed>,
    lse: Address<f32>,
    dout: Address<Computed>,
    dqkv: Address<Computed>,
}

impl Cuda {
    fn fast_heads(&self, heads: Heads) -> bool {
        self.format() == Format::Bf16 && (heads.dim == 64 || heads.dim == 128)
    }

    pub(crate) fn attention_forward(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &CudaTensor,
        out: &mut CudaTensor,
        lse: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        check(heads)?;
        let Heads { heads: h, kv_heads, dim } = heads;
        let (n, starts) = (packed.n, self.index(&packed.starts, packed.sequences + 1)?);
        let (qkv, out) = (self.read(qkv, n * heads.qkv())?, self.write(out, n * heads.q())?);
        let lse = self.write_exact(lse, n * h)?;
        if self.fast_heads(heads) {
            let kernel = if dim == 64 { ATTENTION_64 } else { ATTENTION_128 };
            let grid = (packed.longest.div_ceil(ROWS), h, packed.sequences);
            let factor = scale(heads) * LOG2_E;
            let grid = Grid::of(grid, 128).with_shared(attention_shared(dim));
            let list = (h, kv_heads, starts, qkv, out, lse, factor);
            return self.launch_box(&turn, kernel, grid, list);
        }
        let grid = (packed.longest.div_ceil(PLAIN), h, packed.sequences);
        let list = (h, kv_heads, dim, starts, qkv, out, lse, scale(heads));
        self.launch_box(&turn, PLAIN_ATTENTION, Grid::of(grid, 32 * PLAIN), list)
    }

    pub(crate) fn attention_gradient(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        attended: Attended<'_, CudaTensor>,
        dout: &CudaTensor,
        dqkv: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        check(heads)?;
        let (n, q) = (packed.n, heads.q());
        let pass = Pass {
            starts: self.index(&packed.starts, packed.sequences + 1)?,
            qkv: self.read(attended.qkv, n * heads.qkv())?,
            out: self.read(attended.out, n * q)?,
            lse: self.read_exact(attended.lse, n * heads.heads)?,
            dout: self.read(dout, n * q)?,
            dqkv: self.write(dqkv, n * heads.qkv())?,
        };
        if self.fast_heads(heads) {
            return self.fast_gradient(&turn, heads, packed, &pass);
        }
        let Pass { starts, qkv, out, lse, dout, dqkv } = pass;
        let Heads { heads: h, kv_heads, dim } = heads;
        let list = (h, kv_heads, dim, starts, qkv, out, lse, dout, dqkv, scale(heads));
        let blocks = packed.longest.div_ceil(PLAIN);
        let grid = |heads| Grid::of((blocks, heads, packed.sequences), 32 * PLAIN);
        self.launch_box(&turn, PLAIN_QUERY_GRADIENT, grid(h), list)?;
        self.launch_box(&turn, PLAIN_KEY_VALUE_GRADIENT, grid(kv_heads), list)
    }

    fn fast_gradient(
        &self,
        turn: &Ready<'_>,
        heads: Heads,
        packed: &Packed<Self>,
        &Pass { starts, qkv, out, lse, dout, dqkv }: &Pass,
    ) -> Result<()> {
        let Heads { heads: h, kv_heads, dim } = heads;
        let (n, scale) = (packed.n, scale(heads));
        let delta = self.scratch(turn, "attention delta", n * h * 4)?;
        let grid = Grid::of((packed.longest.div_ceil(ROWS), h, packed.sequences), 128);
        let (query, key_value) = if dim == 64 {
            (QUERY_GRADIENT_64, KEY_VALUE_GRADIENT_64)
        } else {
            (QUERY_GRADIENT_128, KEY_VALUE_GRADIENT_128)
        };
        let list = (h, kv_heads, starts, qkv, out, lse, dout, delta, dqkv, scale);
        self.launch_box(turn, query, grid.with_shared(query_gradient_shared(dim)), list)?;
        let grouped = h != kv_heads;
        let parts = if grouped {
            self.scratch(turn, "attention parts", n * h * 2 * dim * 2)?
        } else {
            Address::NULL
        };
        let list = (h, kv_heads, starts, qkv, lse, dout, delta, dqkv, parts, scale);
        self.launch_box(turn, key_value, grid.with_shared(key_value_gradient_shared(dim)), list)?;
        if grouped {
            let blocks = (n * kv_heads * 2 * dim / 8).div_ceil(256);
            let list = (n as u64, h, kv_heads, dim, parts, dqkv);
            self.launch(turn, SUM_KEY_VALUE_PARTS, blocks, 256, list)?;
        }
        Ok(())
    }

    pub(crate) fn attention_of_ends(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &CudaTensor,
        cache: &CudaTensor,
        places: &CudaIndex,
        out: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        check(heads)?;
        let Heads { heads: h, kv_heads, dim } = heads;
        let (n, starts) = (packed.n, self.index(&packed.starts, packed.sequences + 1)?);
        let capacity = cache.len / (2 * heads.kv());
        let (qkv, cache) = (self.read(qkv, n * heads.qkv())?, self.read(cache, 0)?);
        let places = self.index(places, 4 * packed.sequences)?.cast::<Four>();
        let out = self.write(out, n * heads.q())?;
        let grid = |rows| (packed.longest.div_ceil(rows), h, packed.sequences);
        if self.fast_heads(heads) {
            let kernel = if dim == 64 { PROMPT_ATTENTION_64 } else { PROMPT_ATTENTION_128 };
            let factor = scale(heads) * LOG2_E;
            let grid = Grid::of(grid(ROWS), 128).with_shared(attention_shared(dim));
            let list = (h, kv_heads, capacity, starts, qkv, cache, places, out, factor);
            return self.launch_box(&turn, kernel, grid, list);
        }
        let list = (h, kv_heads, dim, capacity, starts, qkv, cache, places, out, scale(heads));
        self.launch_box(&turn, PLAIN_PROMPT_ATTENTION, Grid::of(grid(PLAIN), 32 * PLAIN), list)
    }

    pub(crate) fn decode_attention(
        &self,
        n: usize,
        heads: Heads,
        qkv: &CudaTensor,
        cache: &CudaTensor,
        spans: &CudaIndex,
        out: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        check(heads)?;
        let Heads { heads: h, kv_heads, dim } = heads;
        let capacity = cache.len / (2 * heads.kv());
        let (qkv, cache) = (self.read(qkv, n * heads.qkv())?, self.read(cache, 0)?);
        let (spans, out) =
            (self.index(spans, 4 * n)?.cast::<Four>(), self.write(out, n * heads.q())?);
        if self.fast_heads(heads) && h / kv_heads <= 16 {
            let kernel = if dim == 64 { DECODE_64 } else { DECODE_128 };
            let list = (h, kv_heads, capacity, qkv, cache, spans, out, scale(heads) * LOG2_E);
            return self.launch_box(&turn, kernel, Grid::of((n, kv_heads, 1), 128), list);
        }
        let list = (h, kv_heads, dim, capacity, qkv, cache, spans, out, scale(heads));
        self.launch_box(&turn, PLAIN_CACHE_ATTENTION, Grid::of((n, h, 1), 32), list)
    }
}
