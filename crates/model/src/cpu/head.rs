//! The head: log-probabilities of targets, a chunk of rows at a time.

use super::CpuTensor;
use super::elementwise::add;
use super::gemm::{Mat, Sizes, Start, gemm, gemm_packed};
use super::parallel::{Shared, rows as each_row};
use super::simd::{exp, exp_sum, max, simd};
use crate::{Head, HeadGradients, Scores};

/// Logits that exist at once.
const LOGITS: usize = 1 << 21;

/// Rows in a chunk: as many as fit, but enough that packing the weight is worth it.
fn chunk(vocab: usize) -> usize {
    (LOGITS / vocab).max(112)
}

simd! {
    /// Divides logits by the temperature; at 1 they stay as they are, bit for bit.
    pub fn temper(row: &mut [f32], temperature: f32) {
        let scale = 1.0 / temperature;
        for x in row.iter_mut() {
            *x *= scale;
        }
    }
}

simd! {
    /// The log-sum-exp of a row of logits, which is overwritten.
    pub fn log_sum_exp(row: &mut [f32]) -> f32 {
        let top = max(row);
        top + exp_sum(row, top).ln()
    }
}

simd! {
    /// Replaces logits by `coefficient * (one-hot(target) - softmax)`.
    pub fn gradient_row(row: &mut [f32], target: usize, lse: f32, coefficient: f32) {
        for x in row.iter_mut() {
            *x = -coefficient * exp(*x - lse);
        }
        row[target] += coefficient;
    }
}

pub fn gather(m: usize, d: usize, x: &[f32], rows: &[u32], out: &mut [f32]) {
    for (out, &r) in out.chunks_exact_mut(d).zip(&rows[..m]) {
        out.copy_from_slice(&x[r as usize * d..][..d]);
    }
}

/// The head on the processor.
type OnCpu<'a> = Head<'a, CpuTensor, Vec<u32>>;

pub fn forward(head: &OnCpu<'_>, x: &[f32], Scores { log_p, lse }: Scores<'_, [f32]>) {
    let &Head { m, vocab, d, weight, rows, targets, temperature } = head;
    let weight = weight.packed(vocab, d);
    let most = chunk(vocab).min(m);
    let (mut gathered, mut logits) = (vec![0.0; most * d], vec![0.0; most * vocab]);
    for first in (0..m).step_by(most) {
        let len = most.min(m - first);
        gather(len, d, x, &rows[first..], &mut gathered);
        gemm_packed(len, Mat::rows(&gathered, d), weight, Start::Zero, &mut logits, vocab);
        let (logits, log_p, lse) = (Shared::new(&mut logits), Shared::new(log_p), Shared::new(lse));
        each_row(len, vocab, |range| {
            for i in range {
                // SAFETY: each row belongs to one task.
                let (row, log_p, lse) = unsafe {
                    (
                        logits.part(i * vocab, vocab),
                        log_p.part(first + i, 1),
                        lse.part(first + i, 1),
                    )
                };
                temper(row, temperature);
                let target = row[targets[first + i] as usize];
                lse[0] = log_sum_exp(row);
                log_p[0] = target - lse[0];
            }
        });
    }
}

pub fn backward(
    n: usize,
    head: &OnCpu<'_>,
    x: &[f32],
    lse: &[f32],
    coefficients: &[f32],
    HeadGradients { dx, mut dweight }: HeadGradients<'_, [f32]>,
) {
    let &Head { m, vocab, d, weight, rows, targets, temperature } = head;
    let packed = weight.packed(vocab, d);
    dx[..n * d].fill(0.0);
    let most = chunk(vocab).min(m.max(1));
    let (mut gathered, mut logits, mut dgathered) =
        (vec![0.0; most * d], vec![0.0; most * vocab], vec![0.0; most * d]);
    for first in (0..m).step_by(most) {
        let len = most.min(m - first);
        gather(len, d, x, &rows[first..], &mut gathered);
        gemm_packed(len, Mat::rows(&gathered, d), packed, Start::Zero, &mut logits, vocab);
        let shared = Shared::new(&mut logits);
        each_row(len, vocab, |range| {
            for i in range {
                // SAFETY: each row belongs to one task.
                let row = unsafe { shared.part(i * vocab, vocab) };
                let j = first + i;
                temper(row, temperature);
                gradient_row(row, targets[j] as usize, lse[j], coefficients[j] / temperature);
            }
        });
        gemm(
            Sizes { m: len, n: d, k: vocab },
            Mat::rows(&logits, vocab),
            Mat::rows(&weight.data, d),
            Start::Zero,
            &mut dgathered,
            d,
        );
        for (row, &r) in dgathered.chunks_exact(d).zip(&rows[first..first + len]) {
            add(&mut dx[r as usize * d..][..d], row);
        }
        if let Some(dweight) = &mut dweight {
            gemm(
                Sizes { m: vocab, n: d, k: len },
                Mat::columns(&logits, vocab),
                Mat::rows(&gathered, d),
                Start::Old,
                dweight,
                d,
            );
        }
    }
}
