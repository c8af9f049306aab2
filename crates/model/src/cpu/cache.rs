//! The key/value cache as the processor reads it: one plane per head, `[2, kv heads, capacity,
//! dim]`, so that a head walks its past in the order of memory. Decoding reads the whole past of
//! every sample at every step; it is bound by memory, not by sums.

use super::parallel::{Shared, rows};
use super::simd::{LANES, dot, exp_sum, max, prefetch, simd};
use crate::{Heads, Span};

/// How far ahead of the sums rows are asked for, in numbers: the past of a batch does not fit a
/// cache.
const AHEAD: usize = 512;

/// Keys and values of `n` rows into their slots; `u32::MAX` is a row that is not kept.
pub fn write(n: usize, heads: Heads, qkv: &[f32], slots: &[u32], cache: &mut [f32]) {
    let (dim, capacity) = (heads.dim, cache.len() / (2 * heads.kv()));
    for (row, &slot) in qkv.chunks_exact(heads.qkv()).zip(&slots[..n]) {
        if slot != u32::MAX {
            for (plane, values) in row[heads.q()..].chunks_exact(dim).enumerate() {
                cache[(plane * capacity + slot as usize) * dim..][..dim].copy_from_slice(values);
            }
        }
    }
}

/// Copies what is known of prompts; see [`crate::Decode::cache_copy`].
pub fn copy(heads: Heads, places: &[u32], cache: &mut [f32]) {
    let (dim, capacity) = (heads.dim, cache.len() / (2 * heads.kv()));
    for place in places.chunks_exact(4).filter(|place| place[3] > 0) {
        let [to, from, known] = [place[0], place[2], place[3]].map(|rows| rows as usize * dim);
        for plane in cache.chunks_exact_mut(capacity * dim) {
            plane.copy_within(from..from + known, to);
        }
    }
}

simd! {
    /// One query head over its past, given as two runs of keys and values; `out` is overwritten.
    pub fn attend(q: &[f32], runs: [(&[f32], &[f32]); 2], scores: &mut [f32], out: &mut [f32]) {
        let dim = q.len();
        let scale = 1.0 / (dim as f32).sqrt();
        let mut at = 0;
        for (keys, _) in runs {
            for key in keys.chunks_exact(dim) {
                prefetch(key, AHEAD);
                scores[at] = dot(q, key) * scale;
                at += 1;
            }
        }
        let top = max(scores);
        let inverse = 1.0 / exp_sum(scores, top);
        // A few columns at a time, whose sums stay in registers while all rows go by.
        let mut first = 0;
        while first < dim {
            first += match dim - first {
                64.. => mix::<4>(scores, runs, dim, first, out),
                16.. => mix::<1>(scores, runs, dim, first, out),
                _ => mix_one(scores, runs, dim, first, out),
            };
        }
        out.iter_mut().for_each(|o| *o *= inverse);
    }
}

/// `16 V` columns from `first` on of the sum of values weighted by `scores`; returns how many.
#[inline(always)]
fn mix<const V: usize>(
    scores: &[f32],
    runs: [(&[f32], &[f32]); 2],
    dim: usize,
    first: usize,
    out: &mut [f32],
) -> usize {
    let mut sums = [[0.0f32; LANES]; V];
    let mut at = 0;
    for (_, values) in runs {
        for value in values.chunks_exact(dim) {
            let value = &value[first..first + V * LANES];
            prefetch(value, AHEAD);
            let p = scores[at];
            for v in 0..V {
                for i in 0..LANES {
                    sums[v][i] = p.mul_add(value[v * LANES + i], sums[v][i]);
                }
            }
            at += 1;
        }
    }
    out[first..first + V * LANES].copy_from_slice(sums.as_flattened());
    V * LANES
}

/// The same for one column: widths that are no multiple of a vector's end so.
fn mix_one(
    scores: &[f32],
    runs: [(&[f32], &[f32]); 2],
    dim: usize,
    first: usize,
    out: &mut [f32],
) -> usize {
    let values = runs.iter().flat_map(|(_, values)| values.iter().skip(first).step_by(dim));
    out[first] = scores.iter().zip(values).fold(0.0, |sum, (p, v)| p.mul_add(*v, sum));
    1
}

/// Attention of single rows over their cached past.
pub fn attention(
    n: usize,
    heads: Heads,
    qkv: &[f32],
    cache: &[f32],
    spans: &[u32],
    out: &mut [f32],
) {
    let (dim, group, capacity) =
        (heads.dim, heads.heads / heads.kv_heads, cache.len() / (2 * heads.kv()));
    let spans: Vec<Span> = spans[..4 * n]
        .chunks_exact(4)
        .map(|s| Span { prefix: s[0], prefix_len: s[1], own: s[2], own_len: s[3] })
        .collect();
    let past: usize = spans.iter().map(|s| (s.prefix_len + s.own_len) as usize).sum();
    let out = Shared::new(out);
    rows(n, past * heads.q() / n.max(1), |range| {
        let mut scores = Vec::new();
        for i in range {
            let span = spans[i];
            scores.resize((span.prefix_len + span.own_len) as usize, 0.0);
            // SAFETY: each row belongs to one task.
            let out = unsafe { out.part(i * heads.q(), heads.q()) };
            for (head, out) in out.chunks_exact_mut(dim).enumerate() {
                let plane = |p: usize, first: u32, len: u32| {
                    &cache[(p * capacity + first as usize) * dim..][..len as usize * dim]
                };
                let (k, v) = (head / group, heads.kv_heads + head / group);
                let run = |first: u32, len: u32| (plane(k, first, len), plane(v, first, len));
                let runs = [run(span.prefix, span.prefix_len), run(span.own, span.own_len)];
                attend(&qkv[i * heads.qkv() + head * dim..][..dim], runs, &mut scores, out);
            }
        }
    });
}
