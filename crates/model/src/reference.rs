//! The operations as their definitions: one thread, plain loops over vectors, sums in f64. It is
//! slow and nothing is clever; what an operation means is read off here, and [`crate::Cpu`] and the
//! GPU are held to it by tests. `i` goes over token rows, `j` over columns, `o` over outputs.

// Indices are written out, as in the formulas.
#![allow(clippy::needless_range_loop)]

use std::borrow::Cow;
use std::ops::Range;

use crate::{
    AdamW, Affine, Attended, Decode, Direction, Draws, Dropout, Head, HeadGradients, Heads, Inner,
    Kind, Layers, Lora, LoraGradients, Memory, Norm, NormInput, Normed, Optimize, Packed, Result,
    Sampling, Scores, Shape, Update,
};

/// The plain backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

/// A product of two numbers, exact.
fn times(a: f32, b: f32) -> f64 {
    f64::from(a) * f64::from(b)
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| times(*a, *b)).sum()
}

/// `sums += factor * row`.
fn add(sums: &mut [f64], factor: f64, row: &[f32]) {
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum += factor * f64::from(*x);
    }
}

/// Row `i` of a matrix whose rows are `width` long.
fn row(matrix: &[f32], i: usize, width: usize) -> &[f32] {
    &matrix[i * width..][..width]
}

fn row_mut(matrix: &mut [f32], i: usize, width: usize) -> &mut [f32] {
    &mut matrix[i * width..][..width]
}

/// The probabilities of a row of logits, and their log-sum-exp.
fn softmax(logits: &[f64]) -> (Vec<f64>, f64) {
    let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lse = top + logits.iter().map(|l| (l - top).exp()).sum::<f64>().ln();
    (logits.iter().map(|l| (l - lse).exp()).collect(), lse)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl Memory for Reference {
    type Tensor = Vec<f32>;
    type Index = Vec<u32>;

    fn describe(&self) -> String {
        "the plain reference".into()
    }

    fn zeros(&self, len: usize, _: Kind) -> Result<Vec<f32>> {
        Ok(vec![0.0; len])
    }

    fn len(&self, tensor: &Vec<f32>) -> usize {
        tensor.len()
    }

    fn upload(&self, from: &[f32], to: &mut Vec<f32>, offset: usize) -> Result<()> {
        to[offset..offset + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn download(&self, from: &Vec<f32>, offset: usize, to: &mut [f32]) -> Result<()> {
        to.copy_from_slice(&from[offset..offset + to.len()]);
        Ok(())
    }

    fn clear(&self, len: usize, x: &mut Vec<f32>) -> Result<()> {
        x[..len].fill(0.0);
        Ok(())
    }

    fn indices(&self, len: usize) -> Result<Vec<u32>> {
        Ok(vec![0; len])
    }

    fn upload_indices(&self, from: &[u32], to: &mut Vec<u32>) -> Result<()> {
        to[..from.len()].copy_from_slice(from);
        Ok(())
    }
}

/// The nearest number of e4m3, a tie going to the even one: three bits after the leading one down
/// to 2^-6, steps of 2^-9 below that, and nothing above 448.
fn round_to_e4m3(x: f32) -> f32 {
    let exponent = (x.to_bits() >> 23 & 0xff) as i32 - 127;
    let step = 2f32.powi(exponent.max(-6) - 3);
    ((x / step).round_ties_even() * step).clamp(-448.0, 448.0)
}

/// A matrix as a map's products multiply it: in fp8, where it says so, each of its rows divided by
/// a scale of its own and rounded.
fn factor<'a>(map: Affine<'_, Vec<f32>>, matrix: &'a [f32], width: usize) -> Cow<'a, [f32]> {
    if !map.fp8 {
        return Cow::Borrowed(matrix);
    }
    let mut rounded = matrix.to_vec();
    for row in rounded.chunks_mut(width) {
        // A row of zeros stays one.
        let top = row.iter().map(|x| x.abs()).fold(1e-30, f32::max);
        let (scale, inverse) = (top * (1.0 / 448.0), 448.0 / top);
        row.iter_mut().for_each(|x| *x = round_to_e4m3(*x * inverse) * scale);
    }
    Cow::Owned(rounded)
}

fn transposed(matrix: &[f32], width: usize) -> Vec<f32> {
    let rows = matrix.len() / width;
    (0..matrix.len()).map(|at| matrix[at % rows * width + at / rows]).collect()
}

/// One element of what dropout leaves of a matrix, or of the gradient that goes back through it.
fn dropped(dropout: Option<Dropout>, i: usize, x: f64) -> f64 {
    match dropout {
        None => x,
        Some(d) if d.keeps(i as u64) => x / (1.0 - f64::from(d.p)),
        Some(_) => 0.0,
    }
}

/// The rows of `b` that belong to each part, beside the part's columns of the output.
fn parts<T: ?Sized>(lora: &Lora<'_, T>) -> Vec<(Range<usize>, Range<usize>)> {
    let mut next = 0;
    let rows = |part: &Range<usize>| {
        let first = next;
        next += part.len();
        (first..next, part.clone())
    };
    lora.parts.iter().map(rows).collect()
}

/// Where a query head, the key head that it reads, and that one's values are in a row of `qkv`.
fn head_columns(heads: Heads, head: usize) -> [Range<usize>; 3] {
    let kv = head / (heads.heads / heads.kv_heads);
    [head, heads.heads + kv, heads.heads + heads.kv_heads + kv]
        .map(|at| at * heads.dim..(at + 1) * heads.dim)
}

/// The logits of a scored row, at the head's temperature.
fn logits(head: &Head<'_, Vec<f32>, Vec<u32>>, x: &[f32], scored: usize) -> Vec<f64> {
    let x = row(x, head.rows[scored] as usize, head.d);
    let logit = |o: usize| dot(x, row(head.weight, o, head.d)) / f64::from(head.temperature);
    (0..head.vocab).map(logit).collect()
}

impl Layers for Reference {
    fn embed(
        &self,
        n: usize,
        d: usize,
        weight: &Vec<f32>,
        tokens: &Vec<u32>,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        for i in 0..n {
            row_mut(out, i, d).copy_from_slice(row(weight, tokens[i] as usize, d));
        }
        Ok(())
    }

    fn embed_backward(
        &self,
        n: usize,
        d: usize,
        dout: &Vec<f32>,
        tokens: &Vec<u32>,
        dweight: &mut Vec<f32>,
    ) -> Result<()> {
        for i in 0..n {
            for j in 0..d {
                dweight[tokens[i] as usize * d + j] += dout[i * d + j];
            }
        }
        Ok(())
    }

    fn rms_norm(
        &self,
        n: usize,
        norm: Norm<'_, Vec<f32>>,
        x: &Vec<f32>,
        normed: Normed<'_, Vec<f32>>,
    ) -> Result<()> {
        let Norm { d, eps, weight } = norm;
        for i in 0..n {
            let x = row(x, i, d);
            let rstd = 1.0 / (dot(x, x) / d as f64 + f64::from(eps)).sqrt();
            normed.rstd[i] = rstd as f32;
            for j in 0..d {
                normed.out[i * d + j] = (times(x[j], weight[j]) * rstd) as f32;
            }
        }
        Ok(())
    }

    fn add_rms_norm(
        &self,
        n: usize,
        norm: Norm<'_, Vec<f32>>,
        x: &Vec<f32>,
        delta: &Vec<f32>,
        sum: &mut Vec<f32>,
        normed: Normed<'_, Vec<f32>>,
    ) -> Result<()> {
        for at in 0..n * norm.d {
            sum[at] = x[at] + delta[at];
        }
        self.rms_norm(n, norm, sum, normed)
    }

    fn rms_norm_backward(
        &self,
        n: usize,
        norm: Norm<'_, Vec<f32>>,
        input: NormInput<'_, Vec<f32>>,
        dout: &Vec<f32>,
        dx: &mut Vec<f32>,
        mut dweight: Option<&mut Vec<f32>>,
    ) -> Result<()> {
        let Norm { d, weight, .. } = norm;
        for i in 0..n {
            let (x, dout, rstd) = (row(input.x, i, d), row(dout, i, d), f64::from(input.rstd[i]));
            let along = |j: usize| times(x[j], weight[j]) * f64::from(dout[j]);
            let mean = (0..d).map(along).sum::<f64>() / d as f64;
            for j in 0..d {
                let through = times(weight[j], dout[j]) - f64::from(x[j]) * rstd * rstd * mean;
                dx[i * d + j] += (rstd * through) as f32;
                if let Some(dweight) = &mut dweight {
                    dweight[j] += (times(x[j], dout[j]) * rstd) as f32;
                }
            }
        }
        Ok(())
    }

    fn linear(
        &self,
        n: usize,
        map: Affine<'_, Vec<f32>>,
        x: &Vec<f32>,
        y: &mut Vec<f32>,
    ) -> Result<()> {
        let Shape { outputs, inputs } = map.shape;
        let (x, weight) = (factor(map, x, inputs), factor(map, map.weight, inputs));
        for i in 0..n {
            for o in 0..outputs {
                let bias = map.bias.map_or(0.0, |bias| f64::from(bias[o]));
                let sum = dot(row(&x, i, inputs), row(&weight, o, inputs));
                y[i * outputs + o] = (bias + sum) as f32;
            }
        }
        Ok(())
    }

    fn check_fp8(&self) -> Result<()> {
        // Matrices are rounded in every product anew.
        Ok(())
    }

    fn linear_backward_input(
        &self,
        n: usize,
        map: Affine<'_, Vec<f32>>,
        dy: &Vec<f32>,
        dx: &mut Vec<f32>,
    ) -> Result<()> {
        let Shape { outputs, inputs } = map.shape;
        let columns = transposed(map.weight, inputs);
        let (dy, columns) = (factor(map, dy, outputs), factor(map, &columns, outputs));
        for i in 0..n {
            for j in 0..inputs {
                dx[i * inputs + j] = dot(row(&dy, i, outputs), row(&columns, j, outputs)) as f32;
            }
        }
        Ok(())
    }

    fn linear_backward_weight(
        &self,
        n: usize,
        shape: Shape,
        dy: &Vec<f32>,
        x: &Vec<f32>,
        dweight: &mut Vec<f32>,
        dbias: Option<&mut Vec<f32>>,
    ) -> Result<()> {
        let Shape { outputs, inputs } = shape;
        for o in 0..outputs {
            let mut sums = vec![0.0; inputs];
            for i in 0..n {
                add(&mut sums, f64::from(dy[i * outputs + o]), row(x, i, inputs));
            }
            for j in 0..inputs {
                dweight[o * inputs + j] += sums[j] as f32;
            }
        }
        if let Some(dbias) = dbias {
            for o in 0..outputs {
                dbias[o] += (0..n).map(|i| f64::from(dy[i * outputs + o])).sum::<f64>() as f32;
            }
        }
        Ok(())
    }

    fn lora(
        &self,
        n: usize,
        lora: &Lora<'_, Vec<f32>>,
        x: &Vec<f32>,
        t: &mut Vec<f32>,
        y: &mut Vec<f32>,
    ) -> Result<()> {
        let (inputs, rank, width) = (lora.inputs, lora.rank, lora.width());
        for i in 0..n {
            for k in 0..width {
                let input =
                    |j: usize| dropped(lora.dropout, i * inputs + j, f64::from(x[i * inputs + j]));
                let term = |j: usize| input(j) * f64::from(lora.a[k * inputs + j]);
                t[i * width + k] = (0..inputs).map(term).sum::<f64>() as f32;
            }
            for (p, (rows, columns)) in parts(lora).into_iter().enumerate() {
                let t = &row(t, i, width)[p * rank..][..rank];
                for (r, o) in rows.zip(columns) {
                    let sum = f64::from(lora.scale) * dot(t, row(lora.b, r, rank));
                    y[i * lora.outputs + o] += sum as f32;
                }
            }
        }
        Ok(())
    }

    fn lora_backward(
        &self,
        n: usize,
        lora: &Lora<'_, Vec<f32>>,
        inner: Inner<'_, Vec<f32>>,
        dy: &Vec<f32>,
        dx: &mut Vec<f32>,
        gradients: LoraGradients<'_, Vec<f32>>,
    ) -> Result<()> {
        let (inputs, rank, width) = (lora.inputs, lora.rank, lora.width());
        let (outputs, scale) = (lora.outputs, f64::from(lora.scale));
        let mut dt = vec![0.0f64; n * width];
        for (p, (rows, columns)) in parts(lora).into_iter().enumerate() {
            for k in 0..rank {
                for i in 0..n {
                    let pairs = rows.clone().zip(columns.clone());
                    let sum: f64 =
                        pairs.map(|(r, o)| times(dy[i * outputs + o], lora.b[r * rank + k])).sum();
                    dt[i * width + p * rank + k] = scale * sum;
                }
                for (r, o) in rows.clone().zip(columns.clone()) {
                    let term =
                        |i: usize| times(dy[i * outputs + o], inner.t[i * width + p * rank + k]);
                    gradients.db[r * rank + k] += (scale * (0..n).map(term).sum::<f64>()) as f32;
                }
            }
        }
        for j in 0..inputs {
            for k in 0..width {
                let input = |i: usize| {
                    dropped(lora.dropout, i * inputs + j, f64::from(inner.x[i * inputs + j]))
                };
                let sum: f64 = (0..n).map(|i| dt[i * width + k] * input(i)).sum();
                gradients.da[k * inputs + j] += sum as f32;
            }
            for i in 0..n {
                let term = |k: usize| dt[i * width + k] * f64::from(lora.a[k * inputs + j]);
                let through = (0..width).map(term).sum();
                dx[i * inputs + j] += dropped(lora.dropout, i * inputs + j, through) as f32;
            }
        }
        Ok(())
    }

    fn rope(
        &self,
        n: usize,
        heads: Heads,
        direction: Direction,
        positions: &Vec<u32>,
        table: &Vec<f32>,
        qkv: &mut Vec<f32>,
    ) -> Result<()> {
        let half = heads.dim / 2;
        for i in 0..n {
            let (cos, sin) = row(table, positions[i] as usize, heads.dim).split_at(half);
            for head in 0..heads.heads + heads.kv_heads {
                for j in 0..half {
                    let at = i * heads.qkv() + head * heads.dim + j;
                    let (x, y, sine) = (qkv[at], qkv[at + half], direction.sign() * sin[j]);
                    qkv[at] = (times(x, cos[j]) - times(y, sine)) as f32;
                    qkv[at + half] = (times(y, cos[j]) + times(x, sine)) as f32;
                }
            }
        }
        Ok(())
    }

    fn attention(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &Vec<f32>,
        out: &mut Vec<f32>,
        lse: &mut Vec<f32>,
    ) -> Result<()> {
        for (i, past) in queries(packed) {
            let rows: Vec<&[f32]> = past.map(|i| row(qkv, i, heads.qkv())).collect();
            for head in 0..heads.heads {
                let [q, k, v] = head_columns(heads, head);
                let (p, log) = attend(&row(qkv, i, heads.qkv())[q.clone()], &rows, k);
                lse[i * heads.heads + head] = log as f32;
                mix(&p, &rows, v, &mut row_mut(out, i, heads.q())[q]);
            }
        }
        Ok(())
    }

    fn attention_backward(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        attended: Attended<'_, Vec<f32>>,
        dout: &Vec<f32>,
        dqkv: &mut Vec<f32>,
    ) -> Result<()> {
        let (qkv, width) = (attended.qkv, heads.qkv());
        let scale = 1.0 / (heads.dim as f64).sqrt();
        let mut sums = vec![0.0f64; packed.n * width];
        for (i, past) in queries(packed) {
            let rows: Vec<&[f32]> = past.clone().map(|i| row(qkv, i, width)).collect();
            for head in 0..heads.heads {
                let [q, k, v] = head_columns(heads, head);
                let query = &row(qkv, i, width)[q.clone()];
                let dout = &row(dout, i, heads.q())[q.clone()];
                let (p, _) = attend(query, &rows, k.clone());
                let dp: Vec<f64> = rows.iter().map(|row| dot(dout, &row[v.clone()])).collect();
                let mean: f64 = p.iter().zip(&dp).map(|(p, dp)| p * dp).sum();
                for (s, from) in past.clone().enumerate() {
                    let dscore = p[s] * (dp[s] - mean) * scale;
                    for j in 0..heads.dim {
                        sums[i * width + q.start + j] += dscore * f64::from(rows[s][k.start + j]);
                        sums[from * width + k.start + j] += dscore * f64::from(query[j]);
                        sums[from * width + v.start + j] += p[s] * f64::from(dout[j]);
                    }
                }
            }
        }
        for (to, sum) in dqkv.iter_mut().zip(sums) {
            *to = sum as f32;
        }
        Ok(())
    }

    fn swiglu(&self, n: usize, f: usize, gate_up: &Vec<f32>, out: &mut Vec<f32>) -> Result<()> {
        for i in 0..n {
            let (gate, up) = row(gate_up, i, 2 * f).split_at(f);
            for j in 0..f {
                out[i * f + j] = (times(gate[j], up[j]) * sigmoid(f64::from(gate[j]))) as f32;
            }
        }
        Ok(())
    }

    fn swiglu_backward(
        &self,
        n: usize,
        f: usize,
        gate_up: &Vec<f32>,
        dout: &Vec<f32>,
        dgate_up: &mut Vec<f32>,
    ) -> Result<()> {
        for i in 0..n {
            let (gate, up) = row(gate_up, i, 2 * f).split_at(f);
            for j in 0..f {
                let (g, u, d) = (f64::from(gate[j]), f64::from(up[j]), f64::from(dout[i * f + j]));
                let s = sigmoid(g);
                dgate_up[i * 2 * f + j] = (d * u * s * (1.0 + g * (1.0 - s))) as f32;
                dgate_up[i * 2 * f + f + j] = (d * g * s) as f32;
            }
        }
        Ok(())
    }

    fn head(
        &self,
        head: &Head<'_, Vec<f32>, Vec<u32>>,
        x: &Vec<f32>,
        scores: Scores<'_, Vec<f32>>,
    ) -> Result<()> {
        for scored in 0..head.m {
            let logits = logits(head, x, scored);
            let (_, lse) = softmax(&logits);
            scores.lse[scored] = lse as f32;
            scores.log_p[scored] = (logits[head.targets[scored] as usize] - lse) as f32;
        }
        Ok(())
    }

    fn head_backward(
        &self,
        n: usize,
        head: &Head<'_, Vec<f32>, Vec<u32>>,
        x: &Vec<f32>,
        lse: &Vec<f32>,
        coefficients: &Vec<f32>,
        HeadGradients { dx, mut dweight }: HeadGradients<'_, Vec<f32>>,
    ) -> Result<()> {
        let (d, vocab) = (head.d, head.vocab);
        dx[..n * d].fill(0.0);
        for scored in 0..head.m {
            let (i, target) = (head.rows[scored] as usize, head.targets[scored] as usize);
            let lse = f64::from(lse[scored]);
            let p: Vec<f64> = logits(head, x, scored).iter().map(|z| (z - lse).exp()).collect();
            let factor = f64::from(coefficients[scored]) / f64::from(head.temperature);
            let dlogit = |o: usize| factor * (f64::from(u8::from(o == target)) - p[o]);
            let mut sums = vec![0.0; d];
            for o in 0..vocab {
                add(&mut sums, dlogit(o), row(head.weight, o, d));
                if let Some(dweight) = &mut dweight {
                    for j in 0..d {
                        dweight[o * d + j] += (dlogit(o) * f64::from(x[i * d + j])) as f32;
                    }
                }
            }
            for j in 0..d {
                dx[i * d + j] = sums[j] as f32;
            }
        }
        Ok(())
    }
}

/// Every query's row, with the rows it may see: its own and those before it in its sequence.
fn queries(packed: &Packed<Reference>) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
    let sequences = packed.starts[..packed.sequences + 1].windows(2);
    sequences.flat_map(|w| (w[0]..w[1]).map(move |i| (i as usize, w[0] as usize..i as usize + 1)))
}

/// The probabilities that a query gives to rows by their key, and the scores' log-sum-exp.
fn attend(query: &[f32], rows: &[&[f32]], key: Range<usize>) -> (Vec<f64>, f64) {
    let scale = 1.0 / (query.len() as f64).sqrt();
    let score = |row: &&[f32]| dot(query, &row[key.clone()]) * scale;
    softmax(&rows.iter().map(score).collect::<Vec<_>>())
}

/// The mean of the rows' values under these probabilities.
fn mix(p: &[f64], rows: &[&[f32]], value: Range<usize>, out: &mut [f32]) {
    for (out, at) in out.iter_mut().zip(value) {
        *out = p.iter().zip(rows).map(|(p, row)| p * f64::from(row[at])).sum::<f64>() as f32;
    }
}

impl Decode for Reference {
    fn gather(
        &self,
        m: usize,
        d: usize,
        x: &Vec<f32>,
        rows: &Vec<u32>,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        self.embed(m, d, x, rows, out)
    }

    /// A row of the cache is what follows the queries in a row of `qkv`: keys, then values.
    fn cache_write(
        &self,
        n: usize,
        heads: Heads,
        qkv: &Vec<f32>,
        slots: &Vec<u32>,
        cache: &mut Vec<f32>,
    ) -> Result<()> {
        for i in (0..n).filter(|i| slots[*i] != u32::MAX) {
            let kept = &row(qkv, i, heads.qkv())[heads.q()..];
            row_mut(cache, slots[i] as usize, 2 * heads.kv()).copy_from_slice(kept);
        }
        Ok(())
    }

    fn cache_attention(
        &self,
        n: usize,
        heads: Heads,
        qkv: &Vec<f32>,
        cache: &Vec<f32>,
        spans: &Vec<u32>,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        for i in 0..n {
            let [prefix, prefix_len, own, own_len] = [0, 1, 2, 3].map(|s| spans[4 * i + s]);
            let past = (prefix..prefix + prefix_len).chain(own..own + own_len);
            let rows: Vec<&[f32]> =
                past.map(|slot| row(cache, slot as usize, 2 * heads.kv())).collect();
            for head in 0..heads.heads {
                let [q, k, v] = head_columns(heads, head);
                let kept = |r: Range<usize>| (r.start - heads.q())..(r.end - heads.q());
                let (p, _) = attend(&row(qkv, i, heads.qkv())[q.clone()], &rows, kept(k));
                mix(&p, &rows, kept(v), &mut row_mut(out, i, heads.q())[q]);
            }
        }
        Ok(())
    }

    fn cache_copy(
        &self,
        sequences: usize,
        heads: Heads,
        places: &Vec<u32>,
        cache: &mut Vec<f32>,
    ) -> Result<()> {
        for place in places.chunks_exact(4).take(sequences) {
            for i in 0..place[3] {
                let kept = row(cache, (place[2] + i) as usize, 2 * heads.kv()).to_vec();
                row_mut(cache, (place[0] + i) as usize, 2 * heads.kv()).copy_from_slice(&kept);
            }
        }
        Ok(())
    }

    /// Each row of an end over its prompt up to itself.
    fn prompt_attention(
        &self,
        heads: Heads,
        packed: &Packed<Self>,
        qkv: &Vec<f32>,
        cache: &Vec<f32>,
        places: &Vec<u32>,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        let mut spans = Vec::new();
        for (i, end) in packed.starts[..packed.sequences + 1].windows(2).enumerate() {
            let (first, rows, after) = (places[4 * i], places[4 * i + 1], end[1]);
            spans.extend((end[0]..after).flat_map(|row| [first, rows - (after - row - 1), 0, 0]));
        }
        self.cache_attention(packed.n, heads, qkv, cache, &spans, out)
    }

    fn sample(
        &self,
        vocab: usize,
        logits: &Vec<f32>,
        sampling: Sampling,
        draws: &mut Draws,
    ) -> Result<()> {
        draws.make_room();
        for i in 0..draws.len() {
            let logits: Vec<f64> = row(logits, i, vocab).iter().map(|l| f64::from(*l)).collect();
            let (token, p, rest) =
                draw(&logits, sampling, f64::from(draws.uniforms[i]), draws.scarce_of(i));
            draws.tokens[i] = token as u32;
            draws.log_p[i] = (logits[token] - softmax(&logits).1) as f32;
            (draws.p[i], draws.rest[i]) = (p as f32, rest as f32);
        }
        Ok(())
    }
}

/// A token, its probability before any of it was gone, and what is left of all others.
fn draw(
    logits: &[f64],
    sampling: Sampling,
    uniform: f64,
    (scarce, left): (&[u32], &[f32]),
) -> (usize, f64, f64) {
    // The most probable first; of those that are equal, the first.
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    if sampling.temperature <= 0.0 {
        return (order[0], 1.0, 0.0);
    }
    let tempered: Vec<f64> = logits.iter().map(|l| l / f64::from(sampling.temperature)).collect();
    let (mut p, _) = softmax(&tempered);
    if sampling.top_p < 1.0 {
        let mut reached = 0.0;
        for token in order {
            if reached >= f64::from(sampling.top_p) {
                p[token] = 0.0;
            } else {
                reached += p[token];
            }
        }
    }
    let all: f64 = p.iter().sum();
    // What is left of each: the others in their order, then the scarce ones in theirs.
    let mut is_scarce = vec![false; p.len()];
    scarce.iter().for_each(|&token| is_scarce[token as usize] = true);
    let plenty = (0..p.len()).filter(|&token| !is_scarce[token]);
    let few = scarce.iter().zip(left).map(|(t, left)| (*t as usize, f64::from(*left)));
    let stock: Vec<(usize, f64)> = plenty
        .map(|token| (token, 1.0))
        .chain(few)
        .map(|(token, left)| (token, p[token] * left))
        .filter(|(_, share)| *share > 0.0)
        .collect();
    let total: f64 = stock.iter().map(|(_, share)| share).sum();
    let mut aim = uniform * total;
    let held = stock.iter().position(|(_, share)| {
        aim -= share;
        aim < 0.0
    });
    // Only rounding finds none; where nothing at all is left, the last token stands for it.
    match held.map(|at| &stock[at]).or(stock.last()) {
        Some(&(token, share)) => (token, p[token] / all, (total - share).max(0.0) / all),
        None => (p.len() - 1, 0.0, 0.0),
    }
}

impl Optimize for Reference {
    fn clear_all(&self, tensors: &mut [&mut Vec<f32>]) -> Result<()> {
        tensors.iter_mut().for_each(|x| x.fill(0.0));
        Ok(())
    }

    fn sum_of_squares(&self, tensors: &[&Vec<f32>]) -> Result<f64> {
        Ok(tensors.iter().map(|x| dot(x, x)).sum())
    }

    fn adamw(&self, step: &AdamW, updates: &mut [Update<'_, Vec<f32>>]) -> Result<()> {
        let AdamW { lr, beta1, beta2, eps, weight_decay, grad_scale, .. } = *step;
        let [lr, beta1, beta2, eps, decay] = [lr, beta1, beta2, eps, weight_decay].map(f64::from);
        let debias = |beta: f64| 1.0 - beta.powf(step.step as f64);
        for Update { grad, m, v, value } in updates {
            for i in 0..value.len() {
                let g = times(grad[i], grad_scale);
                m[i] = (beta1 * f64::from(m[i]) + (1.0 - beta1) * g) as f32;
                v[i] = (beta2 * f64::from(v[i]) + (1.0 - beta2) * g * g) as f32;
                let (first, second) =
                    (f64::from(m[i]) / debias(beta1), f64::from(v[i]) / debias(beta2));
                let old = f64::from(value[i]);
                value[i] = (old - lr * (decay * old + first / (second.sqrt() + eps))) as f32;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All numbers of e4m3 from their bits: the nearest of them is what rounding gives.
    #[test]
    fn rounding_finds_the_nearest() {
        let number = |bits: u32| {
            let (exponent, fraction) = (bits >> 3, (bits & 7) as f32);
            let power = 2f32.powi(exponent.max(1) as i32 - 7);
            if exponent == 0 { power * fraction / 8.0 } else { power * (1.0 + fraction / 8.0) }
        };
        let all: Vec<f32> = (0..0x7f).map(number).collect();
        assert_eq!((all[1], all[0x7e]), (2f32.powi(-9), 448.0));
        for pair in all.windows(2) {
            let (low, high) = (pair[0], pair[1]);
            assert_eq!(round_to_e4m3(low), low);
            assert_eq!(round_to_e4m3(-high), -high);
            let middle = (low + high) / 2.0;
            let even =
                if all.iter().position(|x| x == &low).unwrap() % 2 == 0 { low } else { high };
            assert_eq!(round_to_e4m3(middle), even, "a tie between {low} and {high}");
            assert_eq!(round_to_e4m3(middle * 0.999), low);
            assert_eq!(round_to_e4m3(middle * 1.001), high);
        }
        assert_eq!(round_to_e4m3(1e9), 448.0);
        assert!(round_to_e4m3(f32::NAN).is_nan());
    }
}
