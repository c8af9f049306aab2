//! LoRA's products. The fused kernels serve the usual shapes in bf16; the rest goes through plain
//! products (`plain_lora.rs`).

use catamount_model::{Dropout, Error, Lora, LoraGradients, Result};

use crate::address::{Address, Computed};
use crate::correction::Correction;
use crate::cuda::Cuda;
use crate::kernels::{
    Gradient, Inner, LORA_GRADIENT_1, LORA_GRADIENT_2, LORA_GRADIENT_3, LORA_GRADIENT_DROP_1,
    LORA_GRADIENT_DROP_2, LORA_GRADIENT_DROP_3, LORA_INNER_2, LORA_INNER_4, LORA_INNER_6,
    LORA_INNER_8, LORA_INNER_DROP_2, LORA_INNER_DROP_4, LORA_INNER_DROP_6, LORA_INNER_DROP_8,
    LORA_OUTER_1, LORA_OUTER_2, LORA_OUTER_3, LORA_OUTER_6, LORA_OUTER_DROP_1, LORA_OUTER_DROP_2,
    LORA_OUTER_DROP_3, LORA_OUTER_DROP_6, Outer, TRANSPOSE_PARTS, lora_gradient_shared,
};
use crate::launch::{Grid, Kernel, Parts};
use crate::matmul::Product;
use crate::pending::Pending;
use crate::plain_lora::Gradients;
use crate::side::{Aside, Queue, Side};
use crate::tensor::{CudaTensor, Format};
use crate::turn::Ready;

/// The addresses of a LoRA operation, checked.
pub(crate) struct Site<'a> {
    pub n: usize,
    pub lora: &'a Lora<'a, CudaTensor>,
    pub a: Address<Computed>,
    pub b: Address<Computed>,
    /// Columns of `t`.
    pub width: usize,
    pub key: u64,
    pub p: f32,
}

/// One of an adapter's two matrices as the kernels go through it: between `count` ranges of wide
/// columns, the longest of them `longest`, and `depth` narrow ones for each.
pub(crate) struct Factor {
    matrix: Address<Computed>,
    parts: Parts,
    count: usize,
    depth: usize,
    longest: usize,
    /// Elements from one row of the wide matrix to the next.
    stride: usize,
    /// Elements of the gradient from one wide column to the next, and from one narrow one.
    steps: [usize; 2],
    /// Whether the wide columns are the matrix's own.
    down: bool,
    /// Multiplies results.
    scale: f32,
    /// Dropout of the wide matrix.
    p: f32,
}

impl Site<'_> {
    /// A: from all of the input's columns, which dropout may thin out, to `t`.
    fn a(&self) -> Factor {
        let inputs = self.lora.inputs;
        Factor {
            matrix: self.a,
            parts: Parts([0, 0, 0, 0, inputs as i32, 0, 0, 0]),
            count: 1,
            depth: self.width,
            longest: inputs,
            stride: inputs,
            steps: [1, inputs],
            down: true,
            // What survives dropout is divided by its share.
            scale: 1.0 / (1.0 - self.p),
            p: self.p,
        }
    }

    /// B: from a part's columns of `t` to its columns of the output.
    fn b(&self) -> Factor {
        let Lora { rank, scale, outputs, parts: ranges, .. } = *self.lora;
        let mut parts = [0; 8];
        for (i, part) in ranges.iter().enumerate() {
            (parts[i], parts[4 + i]) = (part.start as i32, part.len() as i32);
        }
        Factor {
            matrix: self.b,
            parts: Parts(parts),
            count: ranges.len(),
            depth: rank,
            longest: ranges.iter().map(|p| p.len()).max().unwrap_or(0),
            stride: outputs,
            steps: [rank, 1],
            down: false,
            scale,
            p: 0.0,
        }
    }

    /// Output columns that have an adapter.
    fn adapted(&self) -> usize {
        self.lora.parts.iter().map(|p| p.len()).sum()
    }
}

/// Kernels by the tiles they cover, without and with dropout.
type Variants<P, const N: usize> = [(usize, Kernel<P>, Kernel<P>); N];

const INNER: Variants<Inner, 4> = [
    (2, LORA_INNER_2, LORA_INNER_DROP_2),
    (4, LORA_INNER_4, LORA_INNER_DROP_4),
    (6, LORA_INNER_6, LORA_INNER_DROP_6),
    (8, LORA_INNER_8, LORA_INNER_DROP_8),
];
const OUTER: Variants<Outer, 4> = [
    (1, LORA_OUTER_1, LORA_OUTER_DROP_1),
    (2, LORA_OUTER_2, LORA_OUTER_DROP_2),
    (3, LORA_OUTER_3, LORA_OUTER_DROP_3),
    (6, LORA_OUTER_6, LORA_OUTER_DROP_6),
];
const GRADIENT: Variants<Gradient, 3> = [
    (1, LORA_GRADIENT_1, LORA_GRADIENT_DROP_1),
    (2, LORA_GRADIENT_2, LORA_GRADIENT_DROP_2),
    (3, LORA_GRADIENT_3, LORA_GRADIENT_DROP_3),
];

/// The smallest of the tile counts a kernel exists for that covers `wanted`, else the largest.
fn variant<P, const N: usize>(
    kernels: Variants<P, N>,
    wanted: usize,
    drop: bool,
) -> (usize, Kernel<P>) {
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
        let y_id = y.numbers.id;
        let (mut turn, waiting) = self.turn_to_wait()?.take_product([x.numbers.id, y_id])?;
        let s = self.site(n, lora)?;
        let (x, t, y) = (
            self.read(x, n * lora.inputs)?,
            self.write(t, n * s.width)?,
            self.write(y, n * lora.outputs)?,
        );
        if !self.fused(&s) {
            waiting.map_or(Ok(()), |product| self.product(&turn, &product))?;
            return self.lora_forward_plain(&turn, &s, x, t, y);
        }
        // A result that is no wider than the input is quickly added to afterwards, by whatever
        // reads it next; and with few rows every result is.
        if let Some(product) = waiting.filter(|_| n <= BESIDE || outputs_are_narrow(lora)) {
            let correction = self.lora_beside(&mut turn, &s, &product, [x, t], (y_id, y))?;
            turn.leave(Pending::Correction(correction));
            return Ok(());
        }
        self.lora_inner(&turn, &s, &s.a(), x, s.a, t)?;
        // Written first and added to by the product, if the parts leave no column out.
        let first = waiting.filter(|_| s.adapted() == lora.outputs);
        if let (None, Some(product)) = (&first, &waiting) {
            self.product(&turn, product)?;
        }
        self.lora_outer(&turn, &s, &s.b(), t, y, first.is_none())?;
        if let Some(product) = first {
            self.product(&turn, &Product { beta: 1.0, ..product })?;
        }
        Ok(())
    }

    pub(crate) fn lora_gradients(
        &self,
        n: usize,
        lora: &Lora<'_, CudaTensor>,
        inner: catamount_model::Inner<'_, CudaTensor>,
        dy: &CudaTensor,
        dx: &mut CudaTensor,
        gradients: LoraGradients<'_, CudaTensor>,
    ) -> Result<()> {
        let operands = [dy.numbers.id, dx.numbers.id];
        let turn = self.turn_beside()?.writing(&[dx.numbers.id])?;
        let (mut turn, waiting) = turn.take_product(operands)?;
        let s = self.site(n, lora)?;
        let (inputs, outputs, rows) = (lora.inputs, lora.outputs, s.adapted());
        let ids = [inner.x.numbers.id, inner.t.numbers.id, dy.numbers.id];
        let (x, t) = (self.read(inner.x, n * inputs)?, self.read(inner.t, n * s.width)?);
        let (dy, dx) = (self.read(dy, n * outputs)?, self.write(dx, n * inputs)?);
        let da = self.write_exact(gradients.da, s.width * inputs)?;
        let db = self.write_exact(gradients.db, rows * lora.rank)?;
        let dt = self.scratch(&turn, "lora dt", n * s.width * self.format().bytes())?;
        if !self.fused(&s) {
            self.join_loose()?;
            waiting.map_or(Ok(()), |product| self.product(&turn, &product))?;
            let buffers = Gradients { x, t, dy, dx, da, db, dt };
            return self.lora_gradients_plain(&turn, &s, buffers);
        }
        let bt = self.scratch(&turn, "lora b transposed", rows * lora.rank * 2)?;
        let (a, b) = (s.a(), s.b());
        self.lora_partials(&turn, &s, &b)?;
        let narrow = |at: &dyn Queue| {
            let grid = Grid::of((b.longest.div_ceil(256), b.count, 1), 256);
            let list = (b.parts, lora.rank, s.b, bt);
            self.launch_box(at, TRANSPOSE_PARTS, grid, list)?;
            self.lora_inner(at, &s, &b, dy, bt, dt)
        };
        let gradients = |at: &dyn Queue| {
            self.lora_gradient(at, &s, &a, x, dt, da)?;
            self.lora_gradient(at, &s, &b, dy, t, db)
        };
        let outer = |turn: &Ready<'_>, add| self.lora_outer(turn, &s, &a, dt, dx, add);
        // What the large product does not need fills what it leaves idle. Its result is added to
        // afterwards if it is the narrower matrix, which costs less than waiting for dt.
        let first = waiting.filter(|_| outputs >= inputs);
        if first.is_none() {
            self.join_loose()?;
            narrow(&turn)?;
        }
        let fork = turn.fork()?;
        // The product comes first: small blocks would keep its large ones from their place.
        let launched = match (first, waiting) {
            (Some(product), _) => self.product(&turn, &product),
            (None, Some(product)) => outer(&turn, false)
                .and_then(|()| self.product(&turn, &Product { beta: 1.0, ..product })),
            (None, None) => outer(&turn, true),
        };
        let left = fork.beside(&mut turn, Side::Behind, |aside| {
            if first.is_some() {
                narrow(aside)?;
            }
            gradients(aside)
        });
        let left = if first.is_some() || waiting.is_none() {
            left.join(&turn)
        } else {
            // A product as wide as this leaves little idle: the gradients may last until an
            // operation needs what they use.
            left.leave(&turn, ids)
        };
        launched.and(left)?;
        if first.is_some() {
            outer(&turn, true)?;
        }
        Ok(())
    }

    /// The forward pass beside the product. With few rows it takes less time than the weights take
    /// to arrive, with many it fills what the product leaves idle; what comes next reads the result
    /// anyway, and adds the adapter's part to it.
    fn lora_beside(
        &self,
        turn: &mut Ready<'_>,
        s: &Site<'_>,
        product: &Product,
        [x, t]: [Address<Computed>; 2],
        (y_id, y): (u64, Address<Computed>),
    ) -> Result<Correction> {
        let len = s.n * s.lora.outputs;
        let part = self.scratch(turn, "adapter part", 2 * len)?;
        let (a, b) = (s.a(), s.b());
        self.lora_partials(turn, s, &a)?;
        let work = |aside: &Aside<'_>| {
            if s.adapted() < s.lora.outputs {
                self.clear_bytes(aside, part, 2 * len)?;
            }
            self.lora_inner(aside, s, &a, x, s.a, t)?;
            self.lora_outer(aside, s, &b, t, part, false)
        };
        let fork = turn.fork()?;
        let (launched, left) = if s.n <= BESIDE {
            let left = fork.beside(turn, Side::Ahead, work);
            (self.product(turn, product), left)
        } else {
            (self.product(turn, product), fork.beside(turn, Side::Behind, work))
        };
        let left = left.join(turn);
        launched.and(left)?;
        Ok(Correction { y_id, y, part, len })
    }

    /// How an inner product is cut: the tiles a kernel covers, groups of rows and columns, and
    /// slices.
    fn slices(&self, s: &Site<'_>, f: &Factor) -> (usize, usize, usize) {
        let (tiles, _) = variant(INNER, f.depth.div_ceil(8), false);
        let groups = s.n.div_ceil(32) * f.count * f.depth.div_ceil(8 * tiles);
        let chunks = f.longest.div_ceil(256);
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
    fn lora_partials(&self, at: &dyn Queue, s: &Site<'_>, f: &Factor) -> Result<Address<f32>> {
        let (tiles, groups, slices) = self.slices(s, f);
        if slices > 1 {
            self.scratch(at, "lora partials", groups * slices * 32 * tiles * 8 * 4)
        } else {
            Ok(Address::NULL)
        }
    }

    /// Wide to narrow, `x` times the rows of `m`; see `inner` in lora.cu.
    fn lora_inner(
        &self,
        at: &dyn Queue,
        s: &Site<'_>,
        f: &Factor,
        x: Address<Computed>,
        m: Address<Computed>,
        t: Address<Computed>,
    ) -> Result<()> {
        let (_, kernel) = variant(INNER, f.depth.div_ceil(8), f.p > 0.0);
        let (tiles, _, slices) = self.slices(s, f);
        let (rows, columns) = (s.n.div_ceil(32), f.depth.div_ceil(8 * tiles));
        let partials = self.lora_partials(at, s, f)?;
        let grid = Grid::of((rows, f.count, columns * slices), 256);
        let list = (
            s.n,
            f.parts,
            f.depth,
            x,
            f.stride,
            m,
            t,
            s.width,
            f.scale,
            s.key,
            f.p,
            slices,
            partials,
            self.counter_address(),
        );
        self.launch_box(at, kernel, grid, list)
    }

    /// Narrow to wide; see `outer` in lora.cu.
    fn lora_outer(
        &self,
        at: &dyn Queue,
        s: &Site<'_>,
        f: &Factor,
        t: Address<Computed>,
        y: Address<Computed>,
        add: bool,
    ) -> Result<()> {
        let (_, kernel) = variant(OUTER, f.depth.div_ceil(16), f.p > 0.0);
        let grid = Grid::of((f.longest.div_ceil(128), s.n.div_ceil(128), f.count), 256);
        let (down, add) = (usize::from(f.down), usize::from(add));
        let list = (
            s.n, f.parts, f.depth, t, s.width, f.matrix, down, y, f.stride, f.scale, s.key, f.p,
            add,
        );
        self.launch_box(at, kernel, grid, list)
    }

    /// Gradient of a narrow matrix; see `gradient` in lora.cu.
    fn lora_gradient(
        &self,
        at: &dyn Queue,
        s: &Site<'_>,
        f: &Factor,
        x: Address<Computed>,
        t: Address<Computed>,
        grad: Address<f32>,
    ) -> Result<()> {
        let (tiles, kernel) = variant(GRADIENT, f.depth.div_ceil(16), f.p > 0.0);
        let blocks = (f.longest.div_ceil(64), f.depth.div_ceil(16 * tiles), f.count);
        // Few blocks take more warps each, where the registers suffice.
        let few = tiles < 3 && blocks.0 * blocks.1 * blocks.2 <= 132 && s.n >= 512;
        let grid = Grid::of(blocks, if few { 512 } else { 256 });
        let [c_step, j_step] = f.steps;
        let list = (
            s.n, f.parts, f.depth, x, f.stride, t, s.width, grad, c_step, j_step, f.scale, s.key,
            f.p,
        );
        self.launch_box(at, kernel, grid.with_shared(lora_gradient_shared(tiles)), list)
    }
}
