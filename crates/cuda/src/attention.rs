//! Attention: the tensor-core kernels for heads of 64 and 128 in bf16, plain ones for the rest.

use std::f32::consts::LOG2_E;

use catamount_model::{Error, Heads, Packed, Result};

use crate::cuda::{Cuda, Turn};
use crate::kernels::{args, attention_shared, key_value_gradient_shared, query_gradient_shared};
use crate::tensor::{CudaIndex, CudaTensor, Format};

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
        let _turn = self.turn()?;
        check(heads)?;
        let Heads { heads: h, kv_heads, dim } = heads;
        let (n, starts) = (packed.n, self.index(&packed.starts, packed.sequences + 1)?);
        let (qkv, out) = (self.read(qkv, n * heads.qkv())?, self.write(out, n * heads.q())?);
        let lse = self.write_exact(lse, n * h)?;
        if self.fast_heads(heads) {
            let kernel = if dim == 64 { c"attention_64" } else { c"attention_128" };
            let grid = (packed.longest.div_ceil(ROWS), h, packed.sequences);
            let factor = scale(heads) * LOG2_E;
            return self.launch_box(
                kernel,
                grid,
                128,
                attention_shared(dim),
                args![h, kv_heads, starts, qkv, out, lse, factor],
            );
        }
        let grid = (packed.longest.div_ceil(PLAIN), h, packed.sequences);
        let list = args![h, kv_heads, dim, starts, qkv, out, lse, scale(heads)];
        self.launch_box(c"plain_attention", grid, 32 * PLAIN, 0, list)
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn attention_gradient(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &CudaTensor,
        out: &CudaTensor,
        lse: &CudaTensor,
        dout: &CudaTensor,
        dqkv: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        check(heads)?;
        let (n, starts) = (packed.n, self.index(&packed.starts, packed.sequences + 1)?);
        let (qkv, dqkv) = (self.read(qkv, n * heads.qkv())?, self.write(dqkv, n * heads.qkv())?);
        let (out, dout) = (self.read(out, n * heads.q())?, self.read(dout, n * heads.q())?);
        let lse = self.read_exact(lse, n * heads.heads)?;
        if self.fast_heads(heads) {
            return self.fast_gradient(&turn, heads, packed, starts, qkv, out, lse, dout, dqkv);
        }
        let Heads { heads: h, kv_heads, dim } = heads;
        let list = args![h, kv_heads, dim, starts, qkv, out, lse, dout, dqkv, scale(heads)];
        let blocks = packed.longest.div_ceil(PLAIN);
        self.launch_box(
            c"plain_query_gradient",
            (blocks, h, packed.sequences),
            32 * PLAIN,
            0,
            list,
        )?;
        self.launch_box(
            c"plain_key_value_gradient",
            (blocks, kv_heads, packed.sequences),
            32 * PLAIN,
            0,
            list,
        )
    }

    #[allow(clippy::too_many_arguments)]
    fn fast_gradient(
        &self,
        turn: &Turn<'_>,
        heads: Heads,
        packed: &Packed<Self>,
        starts: u64,
        qkv: u64,
        out: u64,
        lse: u64,
        dout: u64,
        dqkv: u64,
    ) -> Result<()> {
        let Heads { heads: h, kv_heads, dim } = heads;
        let (n, scale) = (packed.n, scale(heads));
        let delta = self.scratch(turn, "attention delta", n * h * 4)?;
        let grid = (packed.longest.div_ceil(ROWS), h, packed.sequences);
        let (query, key_value) = if dim == 64 {
            (c"query_gradient_64", c"key_value_gradient_64")
        } else {
            (c"query_gradient_128", c"key_value_gradient_128")
        };
        let list = args![h, kv_heads, starts, qkv, out, lse, dout, delta, dqkv, scale];
        self.launch_box(query, grid, 128, query_gradient_shared(dim), list)?;
        let grouped = h != kv_heads;
        let parts =
            if grouped { self.scratch(turn, "attention parts", n * h * 2 * dim * 2)? } else { 0 };
        let list = args![h, kv_heads, starts, qkv, lse, dout, delta, dqkv, parts, scale];
        self.launch_box(key_value, grid, 128, key_value_gradient_shared(dim), list)?;
        if grouped {
            let blocks = (n * kv_heads * 2 * dim / 8).div_ceil(256);
            self.launch(
                c"sum_key_value_parts",
                blocks,
                256,
                args![n as u64, h, kv_heads, dim, parts, dqkv],
            )?;
        }
        Ok(())
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
        let _turn = self.turn()?;
        check(heads)?;
        let Heads { heads: h, kv_heads, dim } = heads;
        let capacity = cache.len / (2 * heads.kv());
        let (qkv, cache) = (self.read(qkv, n * heads.qkv())?, self.read(cache, 0)?);
        let (spans, out) = (self.index(spans, 4 * n)?, self.write(out, n * heads.q())?);
        if self.fast_heads(heads) && h / kv_heads <= 16 {
            let kernel = if dim == 64 { c"decode_64" } else { c"decode_128" };
            let list = args![h, kv_heads, capacity, qkv, cache, spans, out, scale(heads) * LOG2_E];
            return self.launch_box(kernel, (n, kv_heads, 1), 128, 0, list);
        }
        let list = args![h, kv_heads, dim, capacity, qkv, cache, spans, out, scale(heads)];
        self.launch_box(c"plain_cache_attention", (n, h, 1), 32, 0, list)
    }
}
