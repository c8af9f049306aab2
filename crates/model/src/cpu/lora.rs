//! The low-rank correction of a linear map.

use std::borrow::Cow;

use super::gemm::{Mat, Sizes, Start, gemm};
use super::parallel::{Shared, rows};
use crate::{Dropout, Inner, Lora, LoraGradients};

/// The adapter's input: `x` itself, or what dropout leaves of it.
fn dropped<'a>(n: usize, inputs: usize, dropout: Option<Dropout>, x: &'a [f32]) -> Cow<'a, [f32]> {
    let Some(dropout) = dropout else { return Cow::Borrowed(&x[..n * inputs]) };
    let mut out = x[..n * inputs].to_vec();
    mask(n, inputs, dropout, &mut out);
    Cow::Owned(out)
}

fn mask(n: usize, inputs: usize, dropout: Dropout, x: &mut [f32]) {
    let keep = 1.0 / (1.0 - dropout.p);
    let x = Shared::new(x);
    rows(n, inputs, |range| {
        for i in range {
            // SAFETY: each row belongs to one task.
            let row = unsafe { x.part(i * inputs, inputs) };
            for (j, v) in row.iter_mut().enumerate() {
                *v = if dropout.keeps((i * inputs + j) as u64) { *v * keep } else { 0.0 };
            }
        }
    });
}

/// `t = drop(x) Aᵀ`, `y += scale * t Bᵀ` part by part.
pub fn forward(n: usize, l: &Lora<'_, [f32]>, x: &[f32], t: &mut [f32], y: &mut [f32]) {
    let (a, b, r, inputs, width) = (l.a, l.b, l.rank, l.inputs, l.width());
    let x = dropped(n, inputs, l.dropout, x);
    gemm(
        Sizes { m: n, n: width, k: inputs },
        Mat::rows(&x, inputs),
        Mat::columns(a, inputs),
        Start::Zero,
        t,
        width,
    );
    let scaled: Vec<f32> = t[..n * width].iter().map(|v| v * l.scale).collect();
    let mut row = 0;
    for (i, part) in l.parts.iter().enumerate() {
        let (t, b) = (Mat::rows(&scaled[i * r..], width), Mat::columns(&b[row * r..], r));
        gemm(
            Sizes { m: n, n: part.len(), k: r },
            t,
            b,
            Start::Old,
            &mut y[part.start..],
            l.outputs,
        );
        row += part.len();
    }
}

/// The gradients; see [`crate::Layers::lora_backward`].
pub fn backward(
    n: usize,
    l: &Lora<'_, [f32]>,
    Inner { x, t }: Inner<'_, [f32]>,
    dy: &[f32],
    dx: &mut [f32],
    LoraGradients { da, db }: LoraGradients<'_, [f32]>,
) {
    let (a, b, r, inputs, outputs, width) = (l.a, l.b, l.rank, l.inputs, l.outputs, l.width());
    let scaled: Vec<f32> = t[..n * width].iter().map(|v| v * l.scale).collect();
    let mut dt = vec![0.0; n * width];
    let mut row = 0;
    for (i, part) in l.parts.iter().enumerate() {
        let dy = &dy[part.start..];
        let (b, db) = (&b[row * r..], &mut db[row * r..]);
        gemm(
            Sizes { m: n, n: r, k: part.len() },
            Mat::rows(dy, outputs),
            Mat::rows(b, r),
            Start::Zero,
            &mut dt[i * r..],
            width,
        );
        gemm(
            Sizes { m: part.len(), n: r, k: n },
            Mat::columns(dy, outputs),
            Mat::rows(&scaled[i * r..], width),
            Start::Old,
            db,
            r,
        );
        row += part.len();
    }
    dt.iter_mut().for_each(|v| *v *= l.scale);
    let dropped_x = dropped(n, inputs, l.dropout, x);
    gemm(
        Sizes { m: width, n: inputs, k: n },
        Mat::columns(&dt, width),
        Mat::rows(&dropped_x, inputs),
        Start::Old,
        da,
        inputs,
    );
    match l.dropout {
        None => gemm(
            Sizes { m: n, n: inputs, k: width },
            Mat::rows(&dt, width),
            Mat::rows(a, inputs),
            Start::Old,
            dx,
            inputs,
        ),
        Some(dropout) => {
            let mut through = vec![0.0; n * inputs];
            gemm(
                Sizes { m: n, n: inputs, k: width },
                Mat::rows(&dt, width),
                Mat::rows(a, inputs),
                Start::Zero,
                &mut through,
                inputs,
            );
            mask(n, inputs, dropout, &mut through);
            super::elementwise::add(&mut dx[..n * inputs], &through);
        }
    }
}
