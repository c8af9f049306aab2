//! LoRA's products. The fused kernels serve the usual shapes in bf16; the rest goes through plain
//! products (`plain_lora.rs`).

use std::ffi::CStr;
use std::sync::atomic::Ordering;

use catamount_model::{Dropout, Error, Lora, Result};

use crate::correction::Correction;
use crate::cuda::{Cuda, Turn};
use crate::device::Side;
use crate::kernels::{args, lora_gradient_shared};
use crate::matmul::Product;
use crate::pending::Pending;
use crate::tensor::{CudaTensor, Format};

/// Column ranges as the kernels take them: four starts, four lengths.
pub(crate) type Parts = [i32; 8];

/// The addresses of a LoRA operation, checked.
pub(crate) struct Site<'a> {
    pub n: usize,
    pub lora: &'a Lora<'a, CudaTensor>,
    pub a: u64,
    pub b: u64,
    /// Columns of `t`.
    pub width: usize,
    pub key: u64,
    pub p: f32,
}

impl Site<'_> {
    fn parts(&self) -> Parts {
        let mut parts = [0; 8];
        for (i, part) in self.lora.parts.iter().enumerate() {
            (parts[i], parts[4 + i]) = (part.start as i32, part.len() as i32);
        }
        parts
    }

    /// All columns of the input as one part.
    fn whole(&self) -> Parts {
        [0, 0, 0, 0, self.lora.inputs as i32, 0, 0, 0]
    }

    fn longest(&self) -> usize {
        self.lora.parts.iter().map(|p| p.len()).max().unwrap_or(0)
    }

    /// What survives dropout is divided by this.
    fn kept(&self) -> f32 {
        1.0 - self.p
    }
}

/// Kernels by the tiles they cover, without and with dropout.
type Variants<const N: usize> = [(usize, &'static CStr, &'static CStr); N];

const INNER: Variants<4> = [
    (2, c"lora_inner_2", c"lora_inner_drop_2"),
    (4, c"lora_inner_4", c"lora_inner_drop_4"),
    (6, c"lora_inner_6", c"lora_inner_drop_6"),
    (8, c"lora_inner_8", c"lora_inner_drop_8"),
];
const OUTER: Variants<4> = [
    (1, c"lora_outer_1", c"lora_outer_drop_1"),
    (2, c"lora_outer_2", c"lora_outer_drop_2"),
    (3, c"lora_outer_3", c"lora_outer_drop_3"),
    (6, c"lora_outer_6", c"lora_outer_drop_6"),
];
const GRADIENT: Variants<3> = [
    (1, c"lora_gradient_1", c"lora_gradient_drop_1"),
    (2, c"lora_gradient_2", c"lora_gradient_drop_2"),
    (3, c"lora_gradient_3", c"lora_gradient_drop_3"),
];

/// The smallest of the tile counts a kernel exists for that covers `wanted`, else the largest.
fn variant<const N: usize>(
    kernels: Variants<N>,
    wanted: usize,
    drop: bool,
) -> (usize, &'static CStr) {
    let (tiles, plain, dropping) =
        *kernels.iter().find(|(tiles, ..)| *tiles >= wanted).unwrap_or(&kernels[N - 1]);
    (tiles, if drop { dropping } else { plain })
}

/// Whether an adapter's result has few columns for the work that it takes.
fn outputs_are_narrow(lora: &Lora<'_, CudaTensor>) -> bool {
    lora.outputs <= lora.inputs + lora.inputs / 2
}

/// Blocks that fill any GPU.
const BLOCKS: usize = 528;
/// Rows that count as few.
const BESIDE: usize = 512;
/// Slices of an inner product at most: one block adds them all up.
const SLICES: usize = 32;

impl Cuda {
    fn site<'a>(&self, n: usize, lora: &'a Lora<'a, CudaTensor>) -> Result<Site<'a>> {
        let rows: usize = lora.parts.iter().map(|p| p.len()).sum();
        if lora.parts.iter().any(|p| p.end > lora.outputs || p.start > p.end)
            || lora.parts.len() > 4
        {
            return Err(Error::Input(format!(
                "an adapter with parts {:?} of {} outputs",
                lora.parts, lora.outputs
            )));
        }
        let width = lora.parts.len() * lora.rank;
        let (a, b) =
            (self.read(lora.a, width * lora.inputs)?, self.read(lora.b, rows * lora.rank)?);
        let Dropout { p, key } = lora.dropout.unwrap_or(Dropout { p: 0.0, key: 0 });
        Ok(Site { n, lora, a, b, width, key, p })
    }

    /// Whether the fused kernels fit: sixteen-byte accesses everywhere, and not too wide.
    fn fused(&self, s: &Site<'_>) -> bool {
        let l = s.lora;
        self.format() == Format::Bf16
            && l.rank.is_multiple_of(2)
            && s.width <= 96
            && l.inputs.is_multiple_of(32)
            && l.outputs.is_multiple_of(8)
            && l.parts.iter().all(|p| p.start.is_multiple_of(8) && p.len().is_multiple_of(32))
    }

    pub(crate) fn lora_forward(
        &self,
        n: usize,
        lora: &Lora<'_, CudaTensor>,
        x: &CudaTensor,
        t: &mut CudaTensor,
        y: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn_to_wait()?;
        let waiting = self.take_product(&turn, [x.numbers.id, y.numbers.id])?;
        let (s, y_id) = (self.site(n, lora)?, y.numbers.id);
        let (x, t, y) = (
            self.read(x, n * lora.inputs)?,
            self.write(t, n * s.width)?,
            self.write(y, n * lora.outputs)?,
        );
        if !self.fused(&s) {
            waiting.map_or(Ok(()), |product| self.product(&turn, &product))?;
            self.flush(&turn)?;
            return self.lora_forward_plain(&turn, &s, x, t, y);
        }
        // A result that is no wider than the input is quickly added to afterwards, by whatever
        // reads it next; and with few rows every result is.
        if let Some(product) = waiting.filter(|_| n <= BESIDE || outputs_are_narrow(lora)) {
            return self.lora_beside(&turn, &s, &product, x, t, (y_id, y));
        }
        self.lora_inner(
            &turn,
            &s,
            s.whole(),
            1,
            s.width,
            (x, lora.inputs),
            s.a,
            t,
            1.0 / s.kept(),
            s.p,
        )?;
        // Written first and added to by the product, if the parts leave no column out.
        let first =
            waiting.filter(|_| lora.parts.iter().map(|p| p.len()).sum::<usize>() == lora.outputs);
        if let (None, Some(product)) = (&first, &waiting) {
            self.product(&turn, product)?;
        }
        let (m, to, add) = ((s.b, false), (y, lora.outputs), first.is_none());
        self.lora_outer(
            &s,
            s.parts(),
            lora.parts.len(),
            lora.rank,
            s.longest(),
            t,
            m,
            to,
            lora.scale,
            0.0,
            add,
        )?;
        if let Some(product) = first {
            self.product(&turn, &Product { beta: 1.0, ..product })?;
        }
        self.flush(&turn)
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn lora_gradients(
        &self,
        n: usize,
        lora: &Lora<'_, CudaTensor>,
        x: &CudaTensor,
        t: &CudaTensor,
        dy: &CudaTensor,
        dx: &mut CudaTensor,
        da: &mut CudaTensor,
        db: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn_beside()?;
        let waiting = self.take_product(&turn, [dy.numbers.id, dx.numbers.id])?;
        let s = self.site(n, lora)?;
        let (parts, rank, inputs, outputs) =
            (lora.parts.len(), lora.rank, lora.inputs, lora.outputs);
        let ids = [x.numbers.id, t.numbers.id, dy.numbers.id];
        let rows: usize = lora.parts.iter().map(|p| p.len()).sum();
        let (x, t, dy) =
            (self.read(x, n * inputs)?, self.read(t, n * s.width)?, self.read(dy, n * outputs)?);
        let (dx, da) = (self.write(dx, n * inputs)?, self.write_exact(da, s.width * inputs)?);
        let db = self.write_exact(db, rows * rank)?;
        let dt = self.scratch(&turn, "lora dt", n * s.width * self.format().bytes())?;
        if !self.fused(&s) {
            self.join_loose()?;
            waiting.map_or(Ok(()), |product| self.product(&turn, &product))?;
            self.flush(&turn)?;
            return self.lora_gradients_plain(&turn, &s, x, t, dy, dx, da, db, dt);
        }
        let bt = self.scratch(&turn, "lora b transposed", rows * rank * 2)?;
        self.lora_partials(&turn, &s, s.parts(), parts, rank)?;
        let kept = 1.0 / s.kept();
        let narrow = || {
            let grid = (s.longest().div_ceil(256), parts, 1);
            self.launch_box(c"transpose_parts", grid, 256, 0, args![s.parts(), rank, s.b, bt])?;
            self.lora_inner(
                &turn,
                &s,
                s.parts(),
                parts,
                rank,
                (dy, outputs),
                bt,
                dt,
                lora.scale,
                0.0,
            )
        };
        let gradients = || {
            self.lora_gradient(
                &s,
                s.whole(),
                1,
                s.width,
                inputs,
                (x, inputs),
                dt,
                (da, 1, inputs),
                kept,
                s.p,
            )?;
            self.lora_gradient(
                &s,
                s.parts(),
                parts,
                rank,
                s.longest(),
                (dy, outputs),
                t,
                (db, rank, 1),
                lora.scale,
                0.0,
            )
        };
        let outer = |add| {
            self.lora_outer(
                &s,
                s.whole(),
                1,
                s.width,
                inputs,
                dt,
                (s.a, true),
                (dx, inputs),
                kept,
                s.p,
                add,
            )
        };
        // What the large product does not need fills what it leaves idle. Its result is added to
        // afterwards if it is the narrower matrix, which costs less than waiting for dt.
        let first = waiting.filter(|_| outputs >= inputs);
        if first.is_none() {
            self.join_loose()?;
            narrow()?;
        }
        self.fork(&turn)?;
        // The product comes first: small blocks would keep its large ones from their place.
        let launched = match (first, waiting) {
            (Some(product), _) => self.product(&turn, &product),
            (None, Some(product)) => {
                outer(false).and_then(|()| self.product(&turn, &Product { beta: 1.0, ..product }))
            }
            (None, None) => outer(true),
        };
        let beside = self.beside(&turn, Side::Behind, || {
            if first.is_some() { narrow().and_then(|()| gradients()) } else { gradients() }
        });
        if first.is_some() || waiting.is_none() || beside.is_err() {
            self.join(&turn, Side::Behind)?;
        } else {
            // A product as wide as this leaves little idle: the gradients may last until an
            // operation needs what they use.
            turn.state().read_beside = ids;
            self.device.loose.store(turn.state().profile.is_none(), Ordering::Relaxed);
        }
        launched.and(beside)?;
        if first.is_some() {
            outer(true)?;
        }
        self.flush(&turn)
    }

    /// The forward pass beside the product. With few rows it takes less time than the weights take
    /// to arrive, with many it fills what the product leaves idle; what comes next reads the result
    /// anyway, and adds the adapter's part to it.
    fn lora_beside(
        &self,
        turn: &Turn<'_>,
        s: &Site<'_>,
        product: &Product,
        x: u64,
        t: u64,
        (y_id, y): (u64, u64),
    ) -> Result<()> {
        let Lora { rank, scale, inputs, outputs, parts, .. } = *s.lora;
        let len = s.n * outputs;
        let part = self.scratch(turn, "adapter part", 2 * len)?;
        let covered = parts.iter().map(|p| p.len()).sum::<usize>() == outputs;
        self.lora_partials(turn, s, s.whole(), 1, s.width)?;
        let work = || {
            if !covered {
                self.clear_bytes(part, 2 * len)?;
            }
            self.lora_inner(
                turn,
                s,
                s.whole(),
                1,
                s.width,
                (x, inputs),
                s.a,
                t,
                1.0 / s.kept(),
                s.p,
            )?;
            let to = (part, outputs);
            self.lora_outer(
                s,
                s.parts(),
                parts.len(),
                rank,
                s.longest(),
                t,
                (s.b, false),
                to,
                scale,
                0.0,
                false,
            )
        };
        self.fork(turn)?;
        let side = if s.n <= BESIDE { Side::Ahead } else { Side::Behind };
        let (launched, beside) = match side {
            Side::Ahead => {
                let beside = self.beside(turn, side, work);
                (self.product(turn, product), beside)
            }
            Side::Behind => (self.product(turn, product), self.beside(turn, side, work)),
        };
        self.join(turn, side)?;
        launched.and(beside)?;
        self.flush(turn)?;
        self.leave(turn, Pending::Correction(Correction { y_id, y, part, len }));
        Ok(())
    }

    /// How an inner product is cut: the tiles a kernel covers, groups of rows and columns, and
    /// slices.
    fn slices(
        &self,
        s: &Site<'_>,
        parts: Parts,
        count: usize,
        rows_of_m: usize,
    ) -> (usize, usize, usize) {
        let (tiles, _) = variant(INNER, rows_of_m.div_ceil(8), false);
        let groups = s.n.div_ceil(32) * count * rows_of_m.div_ceil(8 * tiles);
        let chunks = parts[4..].iter().max().map_or(0, |len| *len as usize).div_ceil(256);
        // With few rows, slices as thin as they come; with many, thick enough that adding them up
        // does not matter.
        let least = if groups < 32 { 1 } else { 3 };
        let slices = if groups > self.counters() {
            1
        } else {
            (BLOCKS / groups.max(1)).min(chunks / least).clamp(1, SLICES)
        };
        (tiles, groups, slices)
    }

    /// The place for the slices of an inner product, which must be taken before it is queued beside
    /// something.
    fn lora_partials(
        &self,
        turn: &Turn<'_>,
        s: &Site<'_>,
        parts: Parts,
        count: usize,
        rows_of_m: usize,
    ) -> Result<u64> {
        let (tiles, groups, slices) = self.slices(s, parts, count, rows_of_m);
        if slices > 1 {
            self.scratch(turn, "lora partials", groups * slices * 32 * tiles * 8 * 4)
        } else {
            Ok(0)
        }
    }

    /// Wide to narrow; see `inner` in lora.cu.
    #[allow(clippy::too_many_arguments)]
    fn lora_inner(
        &self,
        turn: &Turn<'_>,
        s: &Site<'_>,
        parts: Parts,
        count: usize,
        rows_of_m: usize,
        (x, x_stride): (u64, usize),
        m: u64,
        t: u64,
        factor: f32,
        p: f32,
    ) -> Result<()> {
        let (_, kernel) = variant(INNER, rows_of_m.div_ceil(8), p > 0.0);
        let (tiles, _, slices) = self.slices(s, parts, count, rows_of_m);
        let (rows, columns) = (s.n.div_ceil(32), rows_of_m.div_ceil(8 * tiles));
        let partials = self.lora_partials(turn, s, parts, count, rows_of_m)?;
        let grid = (rows, count, columns * slices);
        let counters = self.counter_pointer();
        let list = args![
            s.n, parts, rows_of_m, x, x_stride, m, t, s.width, factor, s.key, p, slices, partials,
            counters
        ];
        self.launch_box(kernel, grid, 256, 0, list)
    }

    /// Narrow to wide; see `outer` in lora.cu.
    #[allow(clippy::too_many_arguments)]
    fn lora_outer(
        &self,
        s: &Site<'_>,
        parts: Parts,
        count: usize,
        depth: usize,
        longest: usize,
        t: u64,
        (m, down): (u64, bool),
        (y, y_stride): (u64, usize),
        factor: f32,
        p: f32,
        add: bool,
    ) -> Result<()> {
        let (_, kernel) = variant(OUTER, depth.div_ceil(16), p > 0.0);
        let grid = (longest.div_ceil(128), s.n.div_ceil(128), count);
        let (down, add) = (usize::from(down), usize::from(add));
        self.launch_box(
            kernel,
            grid,
            256,
            0,
            args![s.n, parts, depth, t, s.width, m, down, y, y_stride, factor, s.key, p, add],
        )
    }

    /// Gradient of a narrow matrix; see `gradient` in lora.cu.
    #[allow(clippy::too_many_arguments)]
    fn lora_gradient(
        &self,
        s: &Site<'_>,
        parts: Parts,
        count: usize,
        width: usize,
        longest: usize,
        (x, x_stride): (u64, usize),
        t: u64,
        (grad, c_stride, j_stride): (u64, usize, usize),
        factor: f32,
        p: f32,
    ) -> Result<()> {
        let (tiles, kernel) = variant(GRADIENT, width.div_ceil(16), p > 0.0);
        let grid = (longest.div_ceil(64), width.div_ceil(16 * tiles), count);
        // Few blocks take more warps each, where the registers suffice.
        let threads =
            if tiles < 3 && grid.0 * grid.1 * grid.2 <= 132 && s.n >= 512 { 512 } else { 256 };
        let list = args![
            s.n, parts, width, x, x_stride, t, s.width, grad, c_stride, j_stride, factor, s.key, p
        ];
        self.launch_box(kernel, grid, threads, lora_gradient_shared(tiles), list)
    }
}
