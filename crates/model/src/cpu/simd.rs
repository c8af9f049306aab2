//! Plain loops for [`simd!`], which compiles them once per instruction set: sums have a fixed
//! number of lanes and multiply-adds are explicit, so that every version computes the same numbers.

pub(crate) use catamount_simd::{Level, level, simd};

/// Lanes of a sum.
pub const LANES: usize = 16;

/// e^x to about 2 units in the last place; 0 below -87 and no overflow above 88.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let negligible = x < -87.3;
    let x = x.clamp(-87.3, 88.3);
    // x = n ln 2 + r with |r| <= ln 2 / 2; adding 1.5 * 2^23 rounds to an integer that sits in the
    // low bits.
    let shifted = x.mul_add(std::f32::consts::LOG2_E, 12_582_912.0);
    let n = shifted - 12_582_912.0;
    let r = n.mul_add(-0.693_145_75, x);
    let r = n.mul_add(-1.428_606_8e-6, r);
    let mut p = 1.388_888_9e-3f32;
    for c in [8.333_334e-3, 4.166_666_7e-2, 1.666_666_7e-1, 0.5, 1.0, 1.0] {
        p = p.mul_add(r, c);
    }
    let scale = f32::from_bits((shifted.to_bits().wrapping_shl(23)).wrapping_add(0x3f80_0000));
    if negligible { 0.0 } else { p * scale }
}

/// The sum of the lanes, in a fixed order.
#[inline(always)]
pub fn fold(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Asks for the memory `ahead` numbers beyond each line of `x`; a hint, which may point anywhere.
#[inline(always)]
pub fn prefetch(x: &[f32], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in x.chunks(16) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().wrapping_add(ahead).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (x, ahead);
}

/// The inner product.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (a16, b16) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (ra, rb) = (a16.remainder(), b16.remainder());
    for (a, b) in a16.zip(b16) {
        for i in 0..LANES {
            lanes[i] = a[i].mul_add(b[i], lanes[i]);
        }
    }
    for (i, (a, b)) in ra.iter().zip(rb).enumerate() {
        lanes[i] = a.mul_add(*b, lanes[i]);
    }
    fold(lanes)
}

/// The largest element; minus infinity of nothing.
#[inline(always)]
pub fn max(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder();
    for c in chunks {
        for i in 0..LANES {
            lanes[i] = if c[i] > lanes[i] { c[i] } else { lanes[i] };
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |m, &v| if v > m { v } else { m })
}

/// Replaces x by e^(x - shift) and returns the sum.
#[inline(always)]
pub fn exp_sum(x: &mut [f32], shift: f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let mut chunks = x.chunks_exact_mut(LANES);
    for c in &mut chunks {
        for i in 0..LANES {
            c[i] = exp(c[i] - shift);
            lanes[i] += c[i];
        }
    }
    for (i, v) in chunks.into_remainder().iter_mut().enumerate() {
        *v = exp(*v - shift);
        lanes[i] += *v;
    }
    fold(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_everywhere() {
        for i in -87_000..88_000 {
            let x = i as f32 * 1e-3 + 1e-4;
            let (got, want) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got / want - 1.0).abs() < 3e-7, "exp({x}) = {got}, not {want}");
        }
        assert!(exp(-1e30) == 0.0 && exp(f32::NEG_INFINITY) == 0.0 && exp(1e30).is_finite());
    }

    #[test]
    fn sums_are_right_at_every_length() {
        for n in 0..70 {
            let a: Vec<f32> = (0..n).map(|i| i as f32 - 20.0).collect();
            let want: f32 = a.iter().map(|v| v * v).sum();
            assert_eq!(dot(&a, &a), want);
            assert_eq!(max(&a), a.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        }
    }
}
