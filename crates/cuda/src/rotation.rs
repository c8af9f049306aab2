//! The rotary embedding. It waits for the next operation: what the cache keeps of decoded rows is
//! written in the same pass.

use catamount_model::{Direction, Error, Heads, Result};

use crate::address::{Address, Computed};
use crate::cuda::{Cuda, row_threads};
use crate::kernels::{CACHE_WRITE, ROTATE_ROWS};
use crate::pending::Pending;
use crate::tensor::{CudaIndex, CudaTensor};
use crate::turn::Ready;

/// Queries and keys to be rotated: the cache may want them next.
#[derive(Clone, Copy)]
pub(crate) struct Rotation {
    pub qkv_id: u64,
    pub qkv: Address<Computed>,
    /// What an adapter adds first, if anything.
    pub part: Address<Computed>,
    pub n: usize,
    pub heads: Heads,
    /// Positions that the table knows.
    pub known: usize,
    pub positions: Address<u32>,
    pub table: Address<f32>,
    pub sign: f32,
}

impl Cuda {
    pub(crate) fn rotate_heads(
        &self,
        n: usize,
        heads: Heads,
        direction: Direction,
        positions: &CudaIndex,
        table: &CudaTensor,
        qkv: &mut CudaTensor,
    ) -> Result<()> {
        let known = table.len / heads.dim.max(1);
        if known == 0 {
            return Err(Error::Input("an empty rotary table".into()));
        }
        let qkv_id = qkv.numbers.id;
        let (turn, part) = self.turn_to_wait()?.take_part(qkv_id, n * heads.qkv())?;
        let (qkv, positions) = (self.write(qkv, n * heads.qkv())?, self.index(positions, n)?);
        let (table, sign) = (self.read_exact(table, 0)?, direction.sign());
        let rotation = Rotation { qkv_id, qkv, part, n, heads, known, positions, table, sign };
        turn.leave(Pending::Rotation(rotation));
        Ok(())
    }

    pub(crate) fn keep_rows(
        &self,
        n: usize,
        heads: Heads,
        qkv: &CudaTensor,
        slots: &CudaIndex,
        cache: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn_to_wait()?;
        let capacity = cache.len / (2 * heads.kv()).max(1);
        let qkv_id = qkv.numbers.id;
        let (qkv, slots) = (self.read(qkv, n * heads.qkv())?, self.index(slots, n)?);
        let cache = self.write(cache, 0)?;
        let (turn, rotation) = turn.take(|pending| match pending {
            Pending::Rotation(r) if r.qkv_id == qkv_id && r.n == n && r.heads == heads => Some(*r),
            _ => None,
        })?;
        if let Some(rotation) = rotation {
            return self.rotate(&turn, &rotation, Some((capacity, slots, cache)));
        }
        let list = (heads.qkv(), heads.q(), capacity, qkv, slots, cache);
        self.launch(&turn, CACHE_WRITE, n, row_threads(2 * heads.kv()), list)
    }

    /// Rotates, and keeps keys and values: `cache` is its capacity, the rows' slots and its
    /// address.
    pub(crate) fn rotate(
        &self,
        turn: &Ready<'_>,
        r: &Rotation,
        cache: Option<(usize, Address<u32>, Address<Computed>)>,
    ) -> Result<()> {
        let (rotated, half, width) =
            (r.heads.heads + r.heads.kv_heads, r.heads.dim / 2, r.heads.qkv());
        let (capacity, slots, to) = cache.unwrap_or((0, Address::NULL, Address::NULL));
        let list = (
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
            to,
        );
        let threads =
            (rotated * half + r.heads.kv()).div_ceil(8).next_multiple_of(32).clamp(64, 512);
        self.launch(turn, ROTATE_ROWS, r.n, threads, list)
    }
}
