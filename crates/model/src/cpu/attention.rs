//! Causal attention over packed sequences, a block of queries at a time: scores exist for one block
//! only.

use rayon::prelude::*;

use super::gemm::{Mat, Sizes, Start, gemm_here};
use super::parallel::Shared;
use super::simd::{dot, exp_sum, max, simd};
use crate::Heads;

/// Queries in a block.
const BLOCK: usize = 56;

/// One sequence and one key/value head: the unit of parallel work.
#[derive(Clone, Copy)]
struct Task {
    sequence: usize,
    /// The sequence's first row, and its rows.
    first: usize,
    len: usize,
    /// The key/value head.
    kv: usize,
}

fn tasks(heads: Heads, starts: &[u32]) -> Vec<Task> {
    let sequences = starts.windows(2).map(|w| (w[0] as usize, (w[1] - w[0]) as usize));
    let mut tasks: Vec<Task> = sequences
        .enumerate()
        .flat_map(|(sequence, (first, len))| {
            (0..heads.kv_heads).map(move |kv| Task { sequence, first, len, kv })
        })
        .collect();
    // The longest first, so that the cores finish together.
    tasks.sort_by_key(|task| (std::cmp::Reverse(task.len), task.first, task.kv));
    tasks
}

fn each(parallel: bool, tasks: &[Task], f: impl Fn(Task) + Sync) {
    if parallel {
        tasks.par_iter().with_max_len(1).for_each(|&task| f(task));
    } else {
        tasks.iter().for_each(|&task| f(task));
    }
}

/// Whether attention over these sequences is worth waking another thread.
fn worth_it(heads: Heads, starts: &[u32]) -> bool {
    let pairs: usize = starts.windows(2).map(|w| ((w[1] - w[0]) as usize).pow(2)).sum();
    pairs * heads.q() > 1 << 18
}

simd! {
    /// Causal softmax of a block of scores, in place; row `i` sees `first + i + 1` keys. Leaves
    /// zeros beyond and returns the log-sum-exp of each row's scaled scores.
    pub fn softmax(scores: &mut [f32], keys: usize, first: usize, scale: f32, lse: &mut [f32]) {
        for (i, (row, lse)) in scores.chunks_exact_mut(keys).zip(lse).enumerate() {
            let (seen, hidden) = row.split_at_mut(first + i + 1);
            seen.iter_mut().for_each(|s| *s *= scale);
            let top = max(seen);
            let sum = exp_sum(seen, top);
            let inverse = 1.0 / sum;
            seen.iter_mut().for_each(|s| *s *= inverse);
            hidden.fill(0.0);
            *lse = top + sum.ln();
        }
    }
}

/// The keys and values that one head of queries looks at: rows `stride` apart, of which the first
/// `known` come before the queries' own.
#[derive(Clone, Copy)]
struct Past<'a> {
    keys: &'a [f32],
    values: &'a [f32],
    stride: usize,
    known: usize,
}

/// What the query heads of one task make of their past: `put` is given the row, the head, its part
/// of the result and its log-sum-exp. A row's numbers are the same however many come before it in
/// its block.
fn look(
    heads: Heads,
    task: Task,
    qkv: &[f32],
    past: Past<'_>,
    mut put: impl FnMut(usize, usize, &[f32], f32),
) {
    let (dim, width, group) = (heads.dim, heads.qkv(), heads.heads / heads.kv_heads);
    let (scale, Task { first: row0, len, kv, .. }) = (1.0 / (dim as f32).sqrt(), task);
    let mut scores = vec![0.0; BLOCK.min(len) * (past.known + len)];
    let (mut block_out, mut block_lse) = (vec![0.0; BLOCK * dim], vec![0.0; BLOCK]);
    for head in kv * group..(kv + 1) * group {
        for first in (0..len).step_by(BLOCK) {
            let queries = BLOCK.min(len - first);
            let keys = past.known + first + queries;
            let q = &qkv[(row0 + first) * width + head * dim..];
            let s = &mut scores[..queries * keys];
            gemm_here(
                Sizes { m: queries, n: keys, k: dim },
                Mat::rows(q, width),
                Mat::columns(past.keys, past.stride),
                Start::Zero,
                s,
                keys,
            );
            softmax(s, keys, past.known + first, scale, &mut block_lse[..queries]);
            gemm_here(
                Sizes { m: queries, n: dim, k: keys },
                Mat::rows(s, keys),
                Mat::rows(past.values, past.stride),
                Start::Zero,
                &mut block_out,
                dim,
            );
            for i in 0..queries {
                put(row0 + first + i, head, &block_out[i * dim..][..dim], block_lse[i]);
            }
        }
    }
}

/// `out` and `lse` as [`crate::Layers::attention`] describes them.
pub fn forward(heads: Heads, starts: &[u32], qkv: &[f32], out: &mut [f32], lse: &mut [f32]) {
    let (dim, width) = (heads.dim, heads.qkv());
    let (out, lse) = (Shared::new(out), Shared::new(lse));
    each(worth_it(heads, starts), &tasks(heads, starts), |task| {
        let keys = &qkv[task.first * width + heads.q() + task.kv * dim..];
        let past = Past { keys, values: &keys[heads.kv()..], stride: width, known: 0 };
        look(heads, task, qkv, past, |row, head, result, log| {
            // SAFETY: this row and head belong to this task.
            unsafe {
                out.part(row * heads.q() + head * dim, dim).copy_from_slice(result);
                lse.part(row * heads.heads + head, 1)[0] = log;
            }
        });
    });
}

/// `out` as [`crate::Decode::prompt_attention`] describes it.
pub fn ends(
    heads: Heads,
    starts: &[u32],
    qkv: &[f32],
    cache: &[f32],
    places: &[u32],
    out: &mut [f32],
) {
    let (dim, capacity) = (heads.dim, cache.len() / (2 * heads.kv()));
    let out = Shared::new(out);
    each(worth_it(heads, starts), &tasks(heads, starts), |task| {
        let [first, rows] = [0, 1].map(|i| places[4 * task.sequence + i] as usize);
        let plane = |p: usize| &cache[(p * capacity + first) * dim..][..rows * dim];
        let (keys, values) = (plane(task.kv), plane(heads.kv_heads + task.kv));
        let past = Past { keys, values, stride: dim, known: rows - task.len };
        look(heads, task, qkv, past, |row, head, result, _| {
            // SAFETY: this row and head belong to this task.
            unsafe { out.part(row * heads.q() + head * dim, dim) }.copy_from_slice(result);
        });
    });
}

simd! {
    /// Turns scores into probabilities `p` and `dp` into the scores' gradient, both zero where a
    /// key is hidden. The mean of `dp` is taken over these very numbers: where one key has nearly
    /// all the probability, almost everything cancels.
    pub fn softmax_backward(
        p: &mut [f32], dp: &mut [f32], keys: usize, first: usize, scale: f32, lse: &[f32],
    ) {
        for (i, (p, dp)) in p.chunks_exact_mut(keys).zip(dp.chunks_exact_mut(keys)).enumerate() {
            let seen = first + i + 1;
            p[seen..].fill(0.0);
            dp[seen..].fill(0.0);
            let (p, dp) = (&mut p[..seen], &mut dp[..seen]);
            p.iter_mut().for_each(|p| *p = *p * scale - lse[i]);
            let mean = { let sum = exp_sum(p, 0.0); dot(p, dp) / sum };
            for (p, dp) in p.iter().zip(dp) {
                *dp = p * (*dp - mean) * scale;
            }
        }
    }
}

/// The gradient with respect to `qkv`.
pub fn backward(
    heads: Heads,
    starts: &[u32],
    qkv: &[f32],
    lse: &[f32],
    dout: &[f32],
    dqkv: &mut [f32],
) {
    let (dim, width, group) = (heads.dim, heads.qkv(), heads.heads / heads.kv_heads);
    let scale = 1.0 / (dim as f32).sqrt();
    let dqkv = Shared::new(dqkv);
    each(
        worth_it(heads, starts),
        &tasks(heads, starts),
        |Task { first: row0, len, kv, .. }| {
            let k = &qkv[row0 * width + heads.q() + kv * dim..];
            let v = &qkv[row0 * width + heads.q() + heads.kv() + kv * dim..];
            let (mut dk, mut dv) = (vec![0.0; len * dim], vec![0.0; len * dim]);
            let mut dq = vec![0.0; BLOCK * dim];
            let (mut p, mut dp) =
                (vec![0.0; BLOCK.min(len) * len], vec![0.0; BLOCK.min(len) * len]);
            let mut block_lse = [0.0; BLOCK];
            for head in kv * group..(kv + 1) * group {
                for first in (0..len).step_by(BLOCK) {
                    let queries = BLOCK.min(len - first);
                    let keys = first + queries;
                    let row = row0 + first;
                    let q = Mat::rows(&qkv[row * width + head * dim..], width);
                    let dout_at = &dout[row * heads.q() + head * dim..];
                    let go = Mat::rows(dout_at, heads.q());
                    for i in 0..queries {
                        block_lse[i] = lse[(row + i) * heads.heads + head];
                    }
                    let (p, dp) = (&mut p[..queries * keys], &mut dp[..queries * keys]);
                    gemm_here(
                        Sizes { m: queries, n: keys, k: dim },
                        q,
                        Mat::columns(k, width),
                        Start::Zero,
                        p,
                        keys,
                    );
                    gemm_here(
                        Sizes { m: queries, n: keys, k: dim },
                        go,
                        Mat::columns(v, width),
                        Start::Zero,
                        dp,
                        keys,
                    );
                    softmax_backward(p, dp, keys, first, scale, &block_lse);
                    gemm_here(
                        Sizes { m: keys, n: dim, k: queries },
                        Mat::columns(p, keys),
                        go,
                        Start::Old,
                        &mut dv,
                        dim,
                    );
                    gemm_here(
                        Sizes { m: keys, n: dim, k: queries },
                        Mat::columns(dp, keys),
                        q,
                        Start::Old,
                        &mut dk,
                        dim,
                    );
                    gemm_here(
                        Sizes { m: queries, n: dim, k: keys },
                        Mat::rows(dp, keys),
                        Mat::rows(k, width),
                        Start::Zero,
                        &mut dq,
                        dim,
                    );
                    for i in 0..queries {
                        // SAFETY: this row's query head belongs to this task.
                        unsafe { dqkv.part((row + i) * width + head * dim, dim) }
                            .copy_from_slice(&dq[i * dim..][..dim]);
                    }
                }
            }
            for i in 0..len {
                let at = (row0 + i) * width + heads.q() + kv * dim;
                // SAFETY: this row's key and value heads belong to this task.
                unsafe {
                    dqkv.part(at, dim).copy_from_slice(&dk[i * dim..][..dim]);
                    dqkv.part(at + heads.kv(), dim).copy_from_slice(&dv[i * dim..][..dim]);
                }
            }
        },
    );
}
