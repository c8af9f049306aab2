//! The innermost loop of a matrix product: one tile held in registers.

use super::simd::{Level, level};

/// Columns of a tile and of a packed panel.
pub const NR: usize = 32;
/// Most rows of a tile: 14 rows of two 512-bit vectors leave registers for the operands.
pub const MR: usize = 14;

/// The rows of A that a tile reads: element (i, j) is `data[i * row + j * col]`.
#[derive(Clone, Copy)]
pub struct Left {
    /// Element (0, 0).
    pub data: *const f32,
    /// From one row to the next.
    pub row: usize,
    /// From one column to the next.
    pub col: usize,
}

/// `c += a b` for one tile of up to [`MR`] rows and [`NR`] columns, the sum over `depth` computed
/// first.
///
/// # Safety
/// `a` must have `height` rows and `depth` columns, `b` be a packed panel that deep, and `c` a tile
/// of `height` rows.
pub unsafe fn kernel(
    height: usize,
    depth: usize,
    a: Left,
    b: *const f32,
    c: *mut f32,
    stride: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if level() == Level::Avx512 {
        macro_rules! dispatch {
            ($($h:literal)*) => {
                match height {
                    // SAFETY: the caller's promise, and the features were detected.
                    $($h => unsafe { avx512::<$h>(depth, a, b, c, stride) },)*
                    _ => unreachable!("tiles have 1 to 14 rows"),
                }
            };
        }
        return dispatch!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
    }
    for r0 in (0..height).step_by(4) {
        let rows = 4.min(height - r0);
        for half in [0, 16] {
            // SAFETY: the caller's promise; this is a part of the tile.
            unsafe {
                let a = Left { data: a.data.add(r0 * a.row), ..a };
                quarter(rows, depth, a, b.add(half), c.add(r0 * stride + half), stride);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const M: usize>(
    depth: usize,
    a: Left,
    mut b: *const f32,
    c: *mut f32,
    stride: usize,
) {
    use std::arch::x86_64::*;
    // SAFETY: the caller promises a tile of M rows and panels of this depth.
    unsafe {
        let mut acc = [[_mm512_setzero_ps(); 2]; M];
        let mut column = a.data;
        for _ in 0..depth {
            let b0 = _mm512_loadu_ps(b);
            let b1 = _mm512_loadu_ps(b.add(16));
            for (r, acc) in acc.iter_mut().enumerate() {
                let v = _mm512_set1_ps(*column.add(r * a.row));
                acc[0] = _mm512_fmadd_ps(v, b0, acc[0]);
                acc[1] = _mm512_fmadd_ps(v, b1, acc[1]);
            }
            column = column.add(a.col);
            b = b.add(NR);
        }
        for (r, acc) in acc.iter().enumerate() {
            let (left, right) = (c.add(r * stride), c.add(r * stride + 16));
            _mm512_storeu_ps(left, _mm512_add_ps(_mm512_loadu_ps(left), acc[0]));
            _mm512_storeu_ps(right, _mm512_add_ps(_mm512_loadu_ps(right), acc[1]));
        }
    }
}

/// Up to four rows and sixteen columns, in plain code that vectorises for AVX2 and NEON.
unsafe fn quarter(rows: usize, depth: usize, a: Left, b: *const f32, c: *mut f32, stride: usize) {
    #[inline(always)]
    unsafe fn body<const M: usize>(
        depth: usize,
        a: Left,
        b: *const f32,
        c: *mut f32,
        stride: usize,
    ) {
        // SAFETY: the caller promises a tile of M rows and sixteen columns, and panels of this
        // depth.
        unsafe {
            let mut acc = [[0.0f32; 16]; M];
            for j in 0..depth {
                let b = b.add(j * NR).cast::<[f32; 16]>().read_unaligned();
                for (r, acc) in acc.iter_mut().enumerate() {
                    let v = *a.data.add(r * a.row + j * a.col);
                    for i in 0..16 {
                        acc[i] = v.mul_add(b[i], acc[i]);
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate() {
                let at = c.add(r * stride).cast::<[f32; 16]>();
                let old = at.read_unaligned();
                at.write_unaligned(std::array::from_fn(|i| old[i] + acc[i]));
            }
        }
    }
    #[inline(always)]
    unsafe fn by_rows(
        rows: usize,
        depth: usize,
        a: Left,
        b: *const f32,
        c: *mut f32,
        stride: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match rows {
                1 => body::<1>(depth, a, b, c, stride),
                2 => body::<2>(depth, a, b, c, stride),
                3 => body::<3>(depth, a, b, c, stride),
                _ => body::<4>(depth, a, b, c, stride),
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2(
            rows: usize,
            depth: usize,
            a: Left,
            b: *const f32,
            c: *mut f32,
            stride: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { by_rows(rows, depth, a, b, c, stride) }
        }
        if level() != Level::Baseline {
            // SAFETY: the features were detected.
            return unsafe { avx2(rows, depth, a, b, c, stride) };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { by_rows(rows, depth, a, b, c, stride) }
}
