//! Drawing a token from logits.

use super::head::log_sum_exp;
use super::parallel::rows;
use super::simd::{exp, simd};
use crate::Sampling;

simd! {
    /// The row's tokens' unnormalised probabilities at a temperature.
    pub fn weights(logits: &[f32], inverse_temperature: f32, out: &mut [f32]) {
        let top = super::simd::max(logits);
        for (o, l) in out.iter_mut().zip(logits) {
            *o = exp((l - top) * inverse_temperature);
        }
    }
}

simd! {
    /// Sums of 64, in double precision, so that no token is favoured.
    pub fn block_sums(w: &[f32], sums: &mut [f64]) {
        for (block, sum) in w.chunks(64).zip(sums) {
            let mut lanes = [0.0f64; 8];
            for x in block.chunks(8) {
                x.iter().zip(&mut lanes).for_each(|(&x, lane)| *lane += f64::from(x));
            }
            *sum = lanes.iter().sum();
        }
    }
}

/// One token per row; see [`crate::Backend::sample`].
pub fn sample(
    n: usize,
    vocab: usize,
    logits: &[f32],
    sampling: Sampling,
    uniforms: &[f32],
    tokens: &mut [u32],
    log_p: &mut [f32],
) {
    let drawn: Vec<std::sync::OnceLock<(u32, f32)>> = (0..n).map(|_| Default::default()).collect();
    rows(n, vocab, |range| {
        let mut scratch = vec![0.0; vocab];
        for i in range {
            let row = &logits[i * vocab..][..vocab];
            let token = draw(row, sampling, uniforms[i], &mut scratch);
            scratch.copy_from_slice(row);
            let _ = drawn[i].set((token as u32, row[token] - log_sum_exp(&mut scratch)));
        }
    });
    for (i, drawn) in drawn.into_iter().enumerate() {
        (tokens[i], log_p[i]) = drawn.into_inner().expect("every row was drawn");
    }
}

fn draw(logits: &[f32], sampling: Sampling, uniform: f32, weights_out: &mut [f32]) -> usize {
    if sampling.temperature <= 0.0 {
        return (0..logits.len())
            .fold(0, |best, i| if logits[i] > logits[best] { i } else { best });
    }
    let w = weights_out;
    weights(logits, 1.0 / sampling.temperature, w);
    if sampling.top_p < 1.0 {
        cut(w, sampling.top_p);
    }
    // Sums of 64 first, so that the walk is short.
    let mut sums = vec![0.0; w.len().div_ceil(64)];
    block_sums(w, &mut sums);
    let total: f64 = sums.iter().sum();
    let mut left = f64::from(uniform) * total;
    let mut last = 0;
    for (block, sum) in sums.iter().enumerate() {
        if left >= *sum && block + 1 < sums.len() {
            left -= sum;
            continue;
        }
        for (i, &x) in w.iter().enumerate().skip(block * 64) {
            if x > 0.0 {
                last = i;
                left -= f64::from(x);
                if left < 0.0 {
                    return i;
                }
            }
        }
        break;
    }
    // Only rounding leads here: the last token with any probability.
    if w[last] > 0.0 { last } else { w.iter().rposition(|&x| x > 0.0).unwrap_or(0) }
}

/// Zeroes all but the smallest set of most probable tokens whose share reaches `top_p`.
fn cut(w: &mut [f32], top_p: f32) {
    let mut order: Vec<u32> = (0..w.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| w[b as usize].total_cmp(&w[a as usize]).then(a.cmp(&b)));
    let total: f64 = w.iter().map(|&x| f64::from(x)).sum();
    let mut sum = 0.0;
    let mut kept = 0;
    while kept < order.len() && (kept == 0 || sum < f64::from(top_p) * total) {
        sum += f64::from(w[order[kept] as usize]);
        kept += 1;
    }
    order[kept..].iter().for_each(|&i| w[i as usize] = 0.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frequencies(logits: &[f32], sampling: Sampling, draws: usize) -> Vec<usize> {
        let mut counts = vec![0; logits.len()];
        let mut scratch = vec![0.0; logits.len()];
        for i in 0..draws {
            counts[draw(logits, sampling, (i as f32 + 0.5) / draws as f32, &mut scratch)] += 1;
        }
        counts
    }

    #[test]
    fn evenly_spread_uniforms_give_exact_proportions() {
        let p = [0.1f32, 0.4, 0.2, 0.3];
        let logits: Vec<f32> = p.iter().map(|p| p.ln() + 3.0).collect();
        let all = Sampling { temperature: 1.0, top_p: 1.0 };
        assert_eq!(frequencies(&logits, all, 1000), [100, 400, 200, 300]);
        // The two most probable tokens reach 0.65 and share the draws 4 : 3.
        assert_eq!(frequencies(&logits, Sampling { top_p: 0.65, ..all }, 700), [0, 400, 0, 300]);
        assert_eq!(frequencies(&logits, Sampling { temperature: 0.0, ..all }, 10), [0, 10, 0, 0]);
        // At temperature 1/2 probabilities are squared: 1 : 16 : 4 : 9.
        assert_eq!(
            frequencies(&logits, Sampling { temperature: 0.5, ..all }, 300),
            [10, 160, 40, 90]
        );
    }

    #[test]
    fn wide_rows_and_extreme_uniforms_stay_inside() {
        let mut logits = vec![f32::NEG_INFINITY; 1000];
        logits[700] = 0.0;
        let mut scratch = vec![0.0; 1000];
        for u in [0.0, 0.5, 1.0] {
            assert_eq!(
                draw(&logits, Sampling { temperature: 1.0, top_p: 1.0 }, u, &mut scratch),
                700
            );
        }
    }
}
