//! Drawing a token from logits.

use super::head::log_sum_exp;
use super::parallel::rows;
use super::simd::{exp, simd};
use crate::{Draws, Sampling};

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

/// One token per row; see [`crate::Decode::sample`].
pub fn sample(vocab: usize, logits: &[f32], sampling: Sampling, draws: &mut Draws) {
    draws.make_room();
    let (n, asked) = (draws.len(), &*draws);
    let drawn: Vec<std::sync::OnceLock<(Drawn, f32)>> =
        (0..n).map(|_| Default::default()).collect();
    rows(n, vocab, |range| {
        let mut scratch = vec![0.0; vocab];
        for i in range {
            let row = &logits[i * vocab..][..vocab];
            let token = draw(row, sampling, asked.uniforms[i], asked.scarce_of(i), &mut scratch);
            scratch.copy_from_slice(row);
            let log_p = row[token.token] - log_sum_exp(&mut scratch);
            let _ = drawn[i].set((token, log_p));
        }
    });
    for (i, drawn) in drawn.into_iter().enumerate() {
        let (Drawn { token, p, rest }, log_p) = drawn.into_inner().expect("every row was drawn");
        draws.tokens[i] = token as u32;
        (draws.log_p[i], draws.p[i], draws.rest[i]) = (log_p, p as f32, rest as f32);
    }
}

/// A token, its probability under the whole distribution, and what is left of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Drawn {
    token: usize,
    p: f64,
    rest: f64,
}

fn draw(
    logits: &[f32],
    sampling: Sampling,
    uniform: f32,
    (scarce, left): (&[u32], &[f32]),
    w: &mut [f32],
) -> Drawn {
    if sampling.temperature <= 0.0 {
        let token =
            (0..logits.len()).fold(0, |best, i| if logits[i] > logits[best] { i } else { best });
        return Drawn { token, p: 1.0, rest: 0.0 };
    }
    weights(logits, 1.0 / sampling.temperature, w);
    if sampling.top_p < 1.0 {
        cut(w, sampling.top_p);
    }
    // Sums of 64 first, so that the walk is short.
    let mut sums = vec![0.0; w.len().div_ceil(64)];
    block_sums(w, &mut sums);
    let all: f64 = sums.iter().sum();
    // (weight, what is left of it), by scarce token; the others are drawn among themselves.
    let mut few: Vec<(f32, f64)> = Vec::with_capacity(scarce.len());
    if !scarce.is_empty() {
        for (&token, &left) in scarce.iter().zip(left) {
            let whole = std::mem::take(&mut w[token as usize]);
            few.push((whole, f64::from(whole * left)));
        }
        block_sums(w, &mut sums);
    }
    let many: f64 = sums.iter().sum();
    let total = many + few.iter().map(|(_, left)| left).sum::<f64>();
    let aim = f64::from(uniform) * total;
    let (token, whole, left) = match pick_scarce(&few, aim - many) {
        Some(at) => (scarce[at] as usize, f64::from(few[at].0), few[at].1),
        None => {
            let token = pick(w, &sums, aim);
            (token, f64::from(w[token]), f64::from(w[token]))
        }
    };
    // Sums of single-precision numbers in double precision: where a single token is left, the
    // difference is zero, exactly.
    Drawn { token, p: whole / all, rest: (total - left).max(0.0) / all }
}

/// The scarce token that holds `aim`, if it is not among the others; the last that has anything
/// left, where rounding leaves none.
fn pick_scarce(few: &[(f32, f64)], mut aim: f64) -> Option<usize> {
    let last = few.iter().rposition(|(_, left)| *left > 0.0).filter(|_| aim >= 0.0)?;
    let held = few[..last].iter().position(|(_, left)| {
        aim -= left;
        aim < 0.0
    });
    Some(held.unwrap_or(last))
}

fn pick(w: &[f32], sums: &[f64], mut left: f64) -> usize {
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
    // Only rounding leads here: the last token with any probability; the very last, as on a GPU,
    // where nothing is left at all.
    if w[last] > 0.0 { last } else { w.iter().rposition(|&x| x > 0.0).unwrap_or(w.len() - 1) }
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

    const NONE: (&[u32], &[f32]) = (&[], &[]);

    fn frequencies(logits: &[f32], sampling: Sampling, draws: usize) -> Vec<usize> {
        with_scarce(logits, sampling, draws, NONE)
    }

    fn with_scarce(
        logits: &[f32],
        sampling: Sampling,
        draws: usize,
        scarce: (&[u32], &[f32]),
    ) -> Vec<usize> {
        let mut counts = vec![0; logits.len()];
        let mut scratch = vec![0.0; logits.len()];
        for i in 0..draws {
            let uniform = (i as f32 + 0.5) / draws as f32;
            counts[draw(logits, sampling, uniform, scarce, &mut scratch).token] += 1;
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
            let drawn =
                draw(&logits, Sampling { temperature: 1.0, top_p: 1.0 }, u, NONE, &mut scratch);
            assert_eq!(drawn, Drawn { token: 700, p: 1.0, rest: 0.0 });
        }
    }

    #[test]
    fn scarce_tokens_are_drawn_by_what_is_left_of_them() {
        let p = [0.1f32, 0.4, 0.2, 0.3];
        let logits: Vec<f32> = p.iter().map(|p| p.ln() - 1.0).collect();
        let all = Sampling { temperature: 1.0, top_p: 1.0 };
        // A quarter of token 1 is left, nothing of token 3: 0.1 + 0.1 + 0.2.
        let scarce: (&[u32], &[f32]) = (&[3, 1], &[0.0, 0.25]);
        assert_eq!(with_scarce(&logits, all, 400, scarce), [100, 100, 200, 0]);
        // The set that reaches 0.65 is that of the whole distribution: tokens 1 and 3.
        let cut = Sampling { top_p: 0.65, ..all };
        assert_eq!(with_scarce(&logits, cut, 100, (&[1], &[0.25])), [0, 25, 0, 75]);
        let mut scratch = vec![0.0; 4];
        let mut one = |uniform, scarce| draw(&logits, all, uniform, scarce, &mut scratch);
        let near = |x: f64, y: f64| (x - y).abs() < 1e-6;
        // Scarce tokens come last, in their order.
        let Drawn { token, p, rest } = one(0.99, scarce);
        assert!(token == 1 && near(p, 0.4) && near(rest, 0.3), "{token} {p} {rest}");
        let Drawn { token, p, rest } = one(0.0, scarce);
        assert!(token == 0 && near(p, 0.1) && near(rest, 0.3), "{token} {p} {rest}");
        // Of the last token that is left, nothing is left beside it, exactly.
        for uniform in [0.0, 0.5, 0.999_999] {
            let drawn = one(uniform, (&[0, 1, 3], &[0.0, 0.0, 0.0]));
            assert_eq!((drawn.token, drawn.rest), (2, 0.0));
            let drawn = one(uniform, (&[0, 1, 2, 3], &[0.0, 1e-8, 0.0, 0.0]));
            assert_eq!((drawn.token, drawn.rest), (1, 0.0));
        }
    }
}
