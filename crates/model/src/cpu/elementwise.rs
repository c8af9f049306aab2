//! Operations without a matrix product: embedding, norm, rotation, SwiGLU, the optimizer.

use super::parallel::{Shared, rows};
use super::simd::{LANES, dot, exp, simd};
use crate::{AdamW, Direction, Heads, Norm, NormInput, Normed};

/// Rows whose contributions to a parameter's gradient are summed together, so that the order does
/// not depend on threads.
const GROUP: usize = 64;

pub fn embed(n: usize, d: usize, weight: &[f32], tokens: &[u32], out: &mut [f32]) {
    for (out, &t) in out.chunks_exact_mut(d).zip(&tokens[..n]) {
        out.copy_from_slice(&weight[t as usize * d..][..d]);
    }
}

pub fn embed_backward(n: usize, d: usize, dout: &[f32], tokens: &[u32], dweight: &mut [f32]) {
    for (dout, &t) in dout.chunks_exact(d).zip(&tokens[..n]) {
        add(&mut dweight[t as usize * d..][..d], dout);
    }
}

simd! {
    /// `y += x`.
    pub fn add(y: &mut [f32], x: &[f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y += x;
        }
    }
}

simd! {
    /// `sum = x + delta`.
    pub fn add_to(sum: &mut [f32], x: &[f32], delta: &[f32]) {
        for ((s, x), d) in sum.iter_mut().zip(x).zip(delta) {
            *s = x + d;
        }
    }
}

simd! {
    pub fn norm_row(eps: f32, x: &[f32], weight: &[f32], out: &mut [f32]) -> f32 {
        let rstd = 1.0 / (dot(x, x) / x.len() as f32 + eps).sqrt();
        for ((o, x), w) in out.iter_mut().zip(x).zip(weight) {
            *o = x * rstd * w;
        }
        rstd
    }
}

pub fn rms_norm(n: usize, norm: Norm<'_, [f32]>, x: &[f32], normed: Normed<'_, [f32]>) {
    let Norm { d, eps, weight } = norm;
    let (rstd, out) = (Shared::new(normed.rstd), Shared::new(normed.out));
    rows(n, d, |range| {
        for i in range {
            // SAFETY: each row belongs to one task.
            let (rstd, out) = unsafe { (rstd.part(i, 1), out.part(i * d, d)) };
            rstd[0] = norm_row(eps, &x[i * d..][..d], &weight[..d], out);
        }
    });
}

pub fn add_rms_norm(
    n: usize,
    norm: Norm<'_, [f32]>,
    x: &[f32],
    delta: &[f32],
    sum: &mut [f32],
    normed: Normed<'_, [f32]>,
) {
    let Norm { d, eps, weight } = norm;
    let (sum, rstd, out) = (Shared::new(sum), Shared::new(normed.rstd), Shared::new(normed.out));
    rows(n, d, |range| {
        for i in range {
            // SAFETY: each row belongs to one task.
            let (sum, rstd, out) =
                unsafe { (sum.part(i * d, d), rstd.part(i, 1), out.part(i * d, d)) };
            add_to(sum, &x[i * d..][..d], &delta[i * d..][..d]);
            rstd[0] = norm_row(eps, sum, &weight[..d], out);
        }
    });
}

simd! {
    /// One row: `dx += rstd * (w dout - x rstd² mean(x w dout))`, and the row's share of dweight.
    pub fn norm_row_backward(
        x: &[f32], weight: &[f32], rstd: f32, dout: &[f32], dx: &mut [f32], dweight: &mut [f32],
    ) {
        let mut lanes = [0.0f32; LANES];
        for ((x, w), d) in x.chunks(LANES).zip(weight.chunks(LANES)).zip(dout.chunks(LANES)) {
            for (((lane, x), w), d) in lanes.iter_mut().zip(x).zip(w).zip(d) {
                *lane = (x * w).mul_add(*d, *lane);
            }
        }
        let mean = super::simd::fold(lanes) * rstd * rstd * rstd / x.len() as f32;
        for (((dx, x), w), d) in dx.iter_mut().zip(x).zip(weight).zip(dout) {
            *dx += (w * d).mul_add(rstd, -x * mean);
        }
        for ((dw, x), dout) in dweight.iter_mut().zip(x).zip(dout) {
            *dw = (x * rstd).mul_add(*dout, *dw);
        }
    }
}

pub fn rms_norm_backward(
    n: usize,
    norm: Norm<'_, [f32]>,
    input: NormInput<'_, [f32]>,
    dout: &[f32],
    dx: &mut [f32],
    dweight: Option<&mut [f32]>,
) {
    let (Norm { d, weight, .. }, NormInput { x, rstd }) = (norm, input);
    let groups = n.div_ceil(GROUP);
    let width = if dweight.is_some() { d } else { 0 };
    let mut partial = vec![0.0; groups * width];
    let (dx, parts) = (Shared::new(dx), Shared::new(&mut partial));
    rows(groups, GROUP * d, |range| {
        for g in range {
            // SAFETY: each group, and so each row, belongs to one task.
            let part = unsafe { parts.part(g * width, width) };
            for i in g * GROUP..((g + 1) * GROUP).min(n) {
                // SAFETY: as above.
                let dx = unsafe { dx.part(i * d, d) };
                norm_row_backward(
                    &x[i * d..][..d],
                    &weight[..d],
                    rstd[i],
                    &dout[i * d..][..d],
                    dx,
                    part,
                );
            }
        }
    });
    if let Some(dweight) = dweight {
        partial.chunks_exact(d).for_each(|part| add(&mut dweight[..d], part));
    }
}

pub fn rope(
    n: usize,
    heads: Heads,
    direction: Direction,
    positions: &[u32],
    table: &[f32],
    qkv: &mut [f32],
) {
    let (dim, width, sign) = (heads.dim, heads.qkv(), direction.sign());
    let half = dim / 2;
    let qkv = Shared::new(qkv);
    rows(n, width, |range| {
        for i in range {
            // SAFETY: each row belongs to one task.
            let row = unsafe { qkv.part(i * width, (heads.heads + heads.kv_heads) * dim) };
            let angles = &table[positions[i] as usize * dim..][..dim];
            let (cos, sin) = angles.split_at(half);
            row.chunks_exact_mut(dim).for_each(|head| rotate(head, cos, sin, sign));
        }
    });
}

simd! {
    pub fn rotate(head: &mut [f32], cos: &[f32], sin: &[f32], sign: f32) {
        let (first, second) = head.split_at_mut(cos.len());
        for (((a, b), c), s) in first.iter_mut().zip(second).zip(cos).zip(sin) {
            let (x, y, s) = (*a, *b, s * sign);
            *a = x * c - y * s;
            *b = y * c + x * s;
        }
    }
}

simd! {
    pub fn swiglu_row(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((o, g), u) in out.iter_mut().zip(gate).zip(up) {
            *o = g / (1.0 + exp(-g)) * u;
        }
    }
}

simd! {
    pub fn swiglu_row_backward(
        gate: &[f32], up: &[f32], dout: &[f32], dgate: &mut [f32], dup: &mut [f32],
    ) {
        for ((((g, u), d), dg), du) in gate.iter().zip(up).zip(dout).zip(dgate).zip(dup) {
            let s = 1.0 / (1.0 + exp(-g));
            *du = d * g * s;
            *dg = d * u * s * (1.0 + g * (1.0 - s));
        }
    }
}

pub fn swiglu(n: usize, f: usize, gate_up: &[f32], out: &mut [f32]) {
    let out = Shared::new(out);
    rows(n, 2 * f, |range| {
        for i in range {
            // SAFETY: each row belongs to one task.
            let out = unsafe { out.part(i * f, f) };
            let (gate, up) = gate_up[i * 2 * f..][..2 * f].split_at(f);
            swiglu_row(gate, up, out);
        }
    });
}

pub fn swiglu_backward(n: usize, f: usize, gate_up: &[f32], dout: &[f32], dgate_up: &mut [f32]) {
    let dgate_up = Shared::new(dgate_up);
    rows(n, 2 * f, |range| {
        for i in range {
            // SAFETY: each row belongs to one task.
            let (dgate, dup) = unsafe { dgate_up.part(i * 2 * f, 2 * f) }.split_at_mut(f);
            let (gate, up) = gate_up[i * 2 * f..][..2 * f].split_at(f);
            swiglu_row_backward(gate, up, &dout[i * f..][..f], dgate, dup);
        }
    });
}

/// Adds the column sums of `dy` to `dbias`.
pub fn column_sums(n: usize, outputs: usize, dy: &[f32], dbias: &mut [f32]) {
    dy.chunks_exact(outputs).take(n).for_each(|row| add(&mut dbias[..outputs], row));
}

simd! {
    pub fn adamw_part(step: &AdamW, grad: &[f32], m: &mut [f32], v: &mut [f32], value: &mut [f32]) {
        let c1 = 1.0 / (1.0 - (step.beta1 as f64).powf(step.step as f64)) as f32;
        let c2 = 1.0 / (1.0 - (step.beta2 as f64).powf(step.step as f64)) as f32;
        let keep = 1.0 - step.lr * step.weight_decay;
        for (((w, g), m), v) in value.iter_mut().zip(grad).zip(m).zip(v) {
            let g = g * step.grad_scale;
            *m = step.beta1 * *m + (1.0 - step.beta1) * g;
            *v = step.beta2 * *v + (1.0 - step.beta2) * g * g;
            *w = keep * *w - step.lr * (*m * c1) / ((*v * c2).sqrt() + step.eps);
        }
    }
}

pub fn adamw(step: &AdamW, grad: &[f32], m: &mut [f32], v: &mut [f32], value: &mut [f32]) {
    let len = value.len();
    let (m, v, value) = (Shared::new(m), Shared::new(v), Shared::new(value));
    rows(len.div_ceil(1024), 1024, |range| {
        let (first, end) = (range.start * 1024, (range.end * 1024).min(len));
        // SAFETY: the ranges of different tasks do not overlap.
        let (m, v, value) = unsafe {
            (m.part(first, end - first), v.part(first, end - first), value.part(first, end - first))
        };
        adamw_part(step, &grad[first..end], m, v, value);
    });
}

/// The sum of squares in double precision, in a fixed order.
pub fn sum_of_squares(x: &[f32]) -> f64 {
    x.chunks(4096).map(|c| f64::from(square_sum(c))).sum()
}

simd! {
    pub fn square_sum(x: &[f32]) -> f32 {
        dot(x, x)
    }
}
