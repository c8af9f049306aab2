//! Matrix products. Every element of the result is a sum over k in ascending order, one chain of
//! fused multiply-adds per block of [`KC`], whatever the other sizes, the thread or the instruction
//! set: a row's result never depends on what else is in the batch. (One chain over all of k would
//! be as fixed, but its rounding grows with k.)

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::tile::{Left, MR, NR, kernel};

/// Depth of a block: a panel of B of this depth fits the first-level cache.
const KC: usize = 256;
/// Rows that one task packs and multiplies.
const MC: usize = 8 * MR;
/// Below this many multiply-adds, waking another thread costs more than it saves.
const PARALLEL: usize = 1 << 20;

/// A matrix to read: element (i, j) is `data[i * row + j * col]`.
#[derive(Clone, Copy)]
pub struct Mat<'a> {
    data: &'a [f32],
    row: usize,
    col: usize,
}

impl<'a> Mat<'a> {
    /// Row-major, rows `stride` apart.
    pub fn rows(data: &'a [f32], stride: usize) -> Self {
        Mat { data, row: stride, col: 1 }
    }

    /// The transpose of a row-major matrix.
    pub fn columns(data: &'a [f32], stride: usize) -> Self {
        Mat { data, row: 1, col: stride }
    }
}

/// The sizes of a product: `[m, n]` is `[m, k]` times `[k, n]`.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

impl Sizes {
    /// Whether a product of these sizes is worth waking another thread.
    fn is_large(self) -> bool {
        self.m * self.n * self.k >= PARALLEL
    }
}

/// What the sum of each element starts from.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// Zero.
    Zero,
    /// The element's old value.
    Old,
    /// The bias of its column.
    Bias(&'a [f32]),
}

/// 64-byte aligned storage: an unaligned vector load that straddles cache lines costs two.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([f32; 16]);

/// An aligned, growing scratch buffer.
#[derive(Default)]
pub struct Scratch(Vec<Line>);

impl Scratch {
    /// The first `len` numbers, whatever they hold.
    pub fn get(&mut self, len: usize) -> &mut [f32] {
        let lines = len.div_ceil(16);
        if self.0.len() < lines {
            self.0.resize(lines, Line([0.0; 16]));
        }
        // SAFETY: a Line is exactly sixteen f32, and `lines` of them are initialised.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), len) }
    }

    fn read(&self) -> &[f32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * 16) }
    }
}

thread_local! {
    static A_PANEL: RefCell<Scratch> = RefCell::default();
    static B_PANELS: RefCell<Scratch> = RefCell::default();
}

/// A right-hand matrix rearranged into panels of [`NR`] columns, each `[k][NR]`, zero beyond the
/// last column.
pub struct PackedB {
    data: Scratch,
    k: usize,
    n: usize,
}

impl PackedB {
    /// Packs `b`, which is `[k, n]`.
    pub fn new(b: Mat<'_>, k: usize, n: usize) -> Self {
        let mut data = Scratch::default();
        pack_b(b, k, n, data.get(n.div_ceil(NR) * NR * k));
        PackedB { data, k, n }
    }
}

fn pack_b(b: Mat<'_>, k: usize, n: usize, out: &mut [f32]) {
    let panel = |(p, out): (usize, &mut [f32])| pack_panel(b, k, p * NR, NR.min(n - p * NR), out);
    if k * n >= PARALLEL / 4 {
        out.par_chunks_mut(NR * k).enumerate().for_each(panel);
    } else {
        out.chunks_mut((NR * k).max(1)).enumerate().for_each(panel);
    }
}

/// Packs `width` columns from column `first` on.
fn pack_panel(b: Mat<'_>, k: usize, first: usize, width: usize, out: &mut [f32]) {
    if b.col == 1 {
        for (j, out) in out.chunks_exact_mut(NR).enumerate() {
            out[..width].copy_from_slice(&b.data[j * b.row + first..][..width]);
            out[width..].fill(0.0);
        }
        return;
    }
    // Columns are contiguous in memory; walk sixteen steps of k at a time so that both sides stay
    // in the cache.
    for (block, out) in out.chunks_mut(16 * NR).enumerate() {
        let depth = out.len() / NR;
        for c in 0..width {
            let column = &b.data[(first + c) * b.col + block * 16 * b.row..];
            if b.row == 1 {
                for (x, row) in column[..depth].iter().zip(out.chunks_exact_mut(NR)) {
                    row[c] = *x;
                }
            } else {
                (0..depth).for_each(|j| out[j * NR + c] = column[j * b.row]);
            }
        }
        if width < NR {
            out.chunks_exact_mut(NR).for_each(|row| row[width..].fill(0.0));
        }
    }
    debug_assert_eq!(out.len(), k * NR);
}

/// C = start + A B with C `[m, n]`, rows `stride` apart; uses every core when it is worth it.
pub fn gemm(sizes: Sizes, a: Mat<'_>, b: Mat<'_>, start: Start<'_>, c: &mut [f32], stride: usize) {
    // Taken out of its cell: a rayon thread that waits inside may pick up another product.
    let Sizes { n, k, .. } = sizes;
    let mut scratch = B_PANELS.take();
    pack_b(b, k, n, scratch.get(n.div_ceil(NR) * NR * k));
    let product = Factors { sizes, a, b: scratch.read(), start };
    product.multiply(c, stride, sizes.is_large());
    B_PANELS.set(scratch);
}

/// The same with B packed before.
pub fn gemm_packed(
    m: usize,
    a: Mat<'_>,
    b: &PackedB,
    start: Start<'_>,
    c: &mut [f32],
    stride: usize,
) {
    let sizes = Sizes { m, n: b.n, k: b.k };
    Factors { sizes, a, b: b.data.read(), start }.multiply(c, stride, sizes.is_large());
}

/// The same on this thread alone, for use inside parallel loops.
pub fn gemm_here(
    sizes: Sizes,
    a: Mat<'_>,
    b: Mat<'_>,
    start: Start<'_>,
    c: &mut [f32],
    stride: usize,
) {
    let Sizes { n, k, .. } = sizes;
    let mut scratch = B_PANELS.take();
    let panels = scratch.get(n.div_ceil(NR) * NR * k);
    for (p, out) in panels.chunks_mut((NR * k).max(1)).enumerate() {
        pack_panel(b, k, p * NR, NR.min(n - p * NR), out);
    }
    Factors { sizes, a, b: scratch.read(), start }.multiply(c, stride, false);
    B_PANELS.set(scratch);
}

/// A pointer that tasks writing disjoint tiles share.
#[derive(Clone, Copy)]
struct Out(*mut f32);
// SAFETY: every task writes its own tiles only.
unsafe impl Send for Out {}
// SAFETY: as above.
unsafe impl Sync for Out {}

/// A product whose right-hand matrix is in panels.
#[derive(Clone, Copy)]
struct Factors<'a> {
    sizes: Sizes,
    a: Mat<'a>,
    b: &'a [f32],
    start: Start<'a>,
}

impl Factors<'_> {
    fn multiply(self, c: &mut [f32], stride: usize, parallel: bool) {
        let Factors { sizes: Sizes { m, n, k }, a, b, start } = self;
        if m == 0 || n == 0 {
            return;
        }
        assert!(c.len() >= (m - 1) * stride + n, "gemm: the result does not fit its buffer");
        assert!(k == 0 || a.data.len() > (m - 1) * a.row + (k - 1) * a.col, "gemm: A is too short");
        assert!(b.len() >= n.div_ceil(NR) * NR * k, "gemm: B is too short");
        if k == 0 {
            for row in c.chunks_mut(stride).take(m) {
                match start {
                    Start::Zero => row[..n].fill(0.0),
                    Start::Old => {}
                    Start::Bias(bias) => row[..n].copy_from_slice(&bias[..n]),
                }
            }
            return;
        }
        let out = Out(c.as_mut_ptr());
        let panels = n.div_ceil(NR);
        let row_tasks = m.div_ceil(MC);
        let threads = rayon::current_num_threads();
        // Enough tasks to keep every thread busy, split by rows first: splitting columns packs A
        // again.
        let column_tasks = if parallel {
            (4 * threads).div_ceil(row_tasks).clamp(1, panels.div_ceil(2))
        } else {
            1
        };
        let wide = panels.div_ceil(column_tasks);
        let task = |t: usize| {
            let (rt, ct) = (t / column_tasks, t % column_tasks);
            let (i0, p0) = (rt * MC, ct * wide);
            let (rows, p1) = (MC.min(m - i0), (p0 + wide).min(panels));
            if p0 < p1 {
                self.block(i0..i0 + rows, p0..p1, out, stride);
            }
        };
        if parallel && row_tasks * column_tasks > 1 {
            (0..row_tasks * column_tasks).into_par_iter().with_max_len(1).for_each(task);
        } else {
            (0..row_tasks * column_tasks).for_each(task);
        }
    }

    /// These rows of the result in these panels.
    fn block(&self, rows: Range<usize>, panels: Range<usize>, out: Out, stride: usize) {
        let Factors { sizes: Sizes { n, k, .. }, a, b, start } = *self;
        let (i0, rows) = (rows.start, rows.len());
        // Rows are spread evenly over the tiles: 16 rows are two tiles of 8, not 14 and 2.
        let tiles = rows.div_ceil(MR);
        let cut = |t: usize| t * rows / tiles;
        // Rows that are contiguous are read where they are. The others are packed: strides that are
        // powers of two would otherwise fight for the same lines of the cache.
        let pack = a.col != 1;
        let mut scratch = A_PANEL.take();
        let packed = scratch.get(if pack { rows * KC.min(k) } else { 0 });
        for k0 in (0..k).step_by(KC) {
            let depth = KC.min(k - k0);
            for t in (0..tiles).filter(|_| pack) {
                let (r0, r1) = (cut(t), cut(t + 1));
                pack_a(a, i0 + r0, r1 - r0, k0, depth, &mut packed[r0 * depth..r1 * depth]);
            }
            for p in panels.clone() {
                let panel = &b[p * NR * k + k0 * NR..][..depth * NR];
                let width = NR.min(n - p * NR);
                for t in 0..tiles {
                    let (r0, r1) = (cut(t), cut(t + 1));
                    let height = r1 - r0;
                    let left = if pack {
                        Left { data: packed[r0 * depth..r1 * depth].as_ptr(), row: 1, col: height }
                    } else {
                        Left { data: a.data[(i0 + r0) * a.row + k0..].as_ptr(), row: a.row, col: 1 }
                    };
                    // SAFETY: the tile lies inside C (asserted by the caller) and belongs to this
                    // task.
                    let tile = unsafe { out.0.add((i0 + r0) * stride + p * NR) };
                    let first = k0 == 0;
                    if width == NR {
                        if first {
                            // SAFETY: a full tile of `height` rows and NR columns.
                            unsafe { begin(tile, stride, height, NR, p * NR, start) };
                        }
                        // SAFETY: as above; the panels are `depth` deep.
                        unsafe { kernel(height, depth, left, panel.as_ptr(), tile, stride) };
                    } else {
                        let mut edge = [0.0f32; MR * NR];
                        // SAFETY: only `width` columns of C are touched; the kernel works in the
                        // local tile.
                        unsafe {
                            if first {
                                begin(tile, stride, height, width, p * NR, start);
                            }
                            for r in 0..height {
                                std::ptr::copy_nonoverlapping(
                                    tile.add(r * stride),
                                    edge.as_mut_ptr().add(r * NR),
                                    width,
                                );
                            }
                            kernel(height, depth, left, panel.as_ptr(), edge.as_mut_ptr(), NR);
                            for r in 0..height {
                                std::ptr::copy_nonoverlapping(
                                    edge.as_ptr().add(r * NR),
                                    tile.add(r * stride),
                                    width,
                                );
                            }
                        }
                    }
                }
            }
        }
        A_PANEL.set(scratch);
    }
}

/// Writes the start of each sum into the tile.
unsafe fn begin(
    tile: *mut f32,
    stride: usize,
    height: usize,
    width: usize,
    column: usize,
    start: Start<'_>,
) {
    for r in 0..height {
        // SAFETY: the caller's tile has this many rows and columns.
        let row = unsafe { std::slice::from_raw_parts_mut(tile.add(r * stride), width) };
        match start {
            Start::Zero => row.fill(0.0),
            Start::Old => {}
            Start::Bias(bias) => row.copy_from_slice(&bias[column..column + width]),
        }
    }
}

/// Rearranges `height` rows of A into `[depth][height]`.
fn pack_a(a: Mat<'_>, i0: usize, height: usize, k0: usize, depth: usize, out: &mut [f32]) {
    debug_assert!(a.row == 1 && out.len() == depth * height);
    for (j, out) in out.chunks_exact_mut(height).enumerate() {
        out.copy_from_slice(&a.data[i0 + (k0 + j) * a.col..][..height]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catamount_search::Stream;

    fn random(len: usize, seed: u64) -> Vec<f32> {
        (0..len as u64).map(|i| Stream::new(seed).uniform(i) as f32 - 0.5).collect()
    }

    #[test]
    fn every_element_is_summed_in_one_order() {
        for (m, n, k) in
            [(1, 1, 1), (3, 5, 7), (14, 32, 256), (15, 33, 300), (130, 70, 513), (29, 100, 64)]
        {
            let (a, b, bias) = (random(m * k, 1), random(k * n, 2), random(n, 3));
            let sizes = Sizes { m, n, k };
            let mut c = vec![f32::NAN; m * n];
            gemm(sizes, Mat::rows(&a, k), Mat::rows(&b, n), Start::Bias(&bias), &mut c, n);
            let mut here = vec![f32::NAN; m * n];
            let bt: Vec<f32> = (0..n * k).map(|i| b[(i % k) * n + i / k]).collect();
            gemm_here(
                sizes,
                Mat::rows(&a, k),
                Mat::columns(&bt, k),
                Start::Bias(&bias),
                &mut here,
                n,
            );
            let at: Vec<f32> = (0..m * k).map(|i| a[(i % m) * k + i / m]).collect();
            let mut old = c.clone();
            let packed = PackedB::new(Mat::columns(&bt, k), k, n);
            gemm_packed(m, Mat::columns(&at, m), &packed, Start::Old, &mut old, n);
            for i in 0..m {
                for j in 0..n {
                    let chain = |s: f32| {
                        let term = |s: f32, l: usize| a[i * k + l].mul_add(b[l * n + j], s);
                        (0..k).step_by(KC).fold(s, |s, k0| s + (k0..k.min(k0 + KC)).fold(0.0, term))
                    };
                    let want = chain(bias[j]);
                    assert_eq!(
                        (c[i * n + j], here[i * n + j]),
                        (want, want),
                        "{m} {n} {k} at {i},{j}"
                    );
                    assert_eq!(old[i * n + j], chain(want));
                }
            }
        }
    }
}
