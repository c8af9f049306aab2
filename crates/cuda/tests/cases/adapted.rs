//! Linear maps with an adapter, followed by the operations that read their results: as a model
//! calls them, few rows at a time and many.

use catamount_model::{
    Affine, Backend, Direction, Dropout, Heads, Kind, Lora, Norm, Normed, Shape,
};

use super::{Bench, Results, random, random_indices};

/// Every chain, in ranks and numbers of rows that take every path.
pub fn adapted<B: Backend>(b: &B) -> Results {
    let mut bench = Bench::new(b);
    for n in [1, 40, 130, 1100] {
        for rank in [8, 16, 32, 6] {
            swiglu(&mut bench, n, rank, None);
            norm(&mut bench, n, rank);
            rotation(&mut bench, n, rank);
        }
    }
    swiglu(&mut bench, 300, 16, Some(Dropout { p: 0.25, key: 0x1234_5678_9abc_def0 }));
    bench.results
}

/// `y = x Wᵀ`, and the adapter's part on top of it.
fn linear<B: Backend>(
    t: &Bench<B>,
    n: usize,
    parts: &[std::ops::Range<usize>],
    outputs: usize,
    rank: usize,
    dropout: Option<Dropout>,
) -> B::Tensor {
    let (inputs, width, rows) =
        (96, parts.len() * rank, parts.iter().map(|p| p.len()).sum::<usize>());
    let scaled =
        |len, seed, factor: f32| random(len, seed).iter().map(|x| x * factor).collect::<Vec<f32>>();
    let a = t.tensor(&scaled(width * inputs, 1, 0.25), Kind::Trained);
    let b = t.tensor(&scaled(rows * rank, 2, 0.5), Kind::Trained);
    let (x, weight) =
        (t.activation(n * inputs, 3), t.tensor(&scaled(outputs * inputs, 4, 0.125), Kind::Frozen));
    let (mut inner, mut y) =
        (t.output(n * width, Kind::Activation), t.output(n * outputs, Kind::Activation));
    let lora = Lora { a: &a, b: &b, rank, scale: 2.0, inputs, outputs, parts, dropout };
    let map = Affine { shape: Shape { outputs, inputs }, weight: &weight, bias: None, fp8: false };
    t.b.linear(n, map, &x, &mut y).unwrap();
    t.b.lora(n, &lora, &x, &mut inner, &mut y).unwrap();
    y
}

fn swiglu<B: Backend>(t: &mut Bench<B>, n: usize, rank: usize, dropout: Option<Dropout>) {
    let f = 160;
    for (what, parts) in
        [("gate and up", &[0..f, f..2 * f][..]), ("up", std::slice::from_ref(&(f..2 * f)))]
    {
        let gate_up = linear(t, n, parts, 2 * f, rank, dropout);
        let mut out = t.output(n * f, Kind::Activation);
        t.b.swiglu(n, f, &gate_up, &mut out).unwrap();
        t.keep(format!("adapted {what} {n}x{f} r{rank}: swiglu"), &out);
        t.keep(format!("adapted {what} {n}x{f} r{rank}: its input"), &gate_up);
    }
}

fn norm<B: Backend>(t: &mut Bench<B>, n: usize, rank: usize) {
    let d = 224;
    let delta = linear(t, n, std::slice::from_ref(&(0..d)), d, rank, None);
    let (x, weight) = (t.activation(n * d, 5), t.frozen(d, 6));
    let (mut sum, mut rstd) = (t.output(n * d, Kind::Activation), t.output(n, Kind::Exact));
    let mut out = t.output(n * d, Kind::Activation);
    let norm = Norm { d, eps: 1e-5, weight: &weight };
    let normed = Normed { rstd: &mut rstd, out: &mut out };
    t.b.add_rms_norm(n, norm, &x, &delta, &mut sum, normed).unwrap();
    let what = format!("adapted {n}x{d} r{rank}");
    t.keep(format!("{what}: norm"), &out);
    t.keep(format!("{what}: sum"), &sum);
    t.keep(format!("{what}: its input"), &delta);
}

fn rotation<B: Backend>(t: &mut Bench<B>, n: usize, rank: usize) {
    let heads = Heads { heads: 4, kv_heads: 2, dim: 32 };
    let (q, kv, width) = (heads.q(), heads.kv(), heads.qkv());
    // Queries and values are adapted, keys are not.
    let table: Vec<f32> = random(50 * heads.dim, 7);
    let (table, positions) = (t.tensor(&table, Kind::Exact), t.index(&random_indices(n, 50, 8)));
    // Every fifth row is kept nowhere; the others attend to up to three rows, their own the last.
    let capacity = n + 30;
    let slots: Vec<u32> =
        (0..n as u32).map(|i| if i % 5 == 3 { u32::MAX } else { i + 17 }).collect();
    let own = |i: u32| {
        if i % 5 == 4 { [0, 0, i + 17, 1] } else { [0, 0, i - i % 5 + 17, (i % 5 + 1).min(3)] }
    };
    let (slots, spans) =
        (t.index(&slots), t.index(&(0..n as u32).flat_map(own).collect::<Vec<u32>>()));
    for cached in [true, false] {
        let mut qkv = linear(t, n, &[0..q, q + kv..width], width, rank, None);
        let direction = if cached { Direction::Forward } else { Direction::Backward };
        t.b.rope(n, heads, direction, &positions, &table, &mut qkv).unwrap();
        let what = format!("adapted {n}x{width} r{rank}");
        if cached {
            let mut cache = t.activation(capacity * 2 * kv, 9);
            t.b.cache_write(n, heads, &qkv, &slots, &mut cache).unwrap();
            let mut out = t.output(n * q, Kind::Activation);
            t.b.cache_attention(n, heads, &qkv, &cache, &spans, &mut out).unwrap();
            t.keep(format!("{what}: attention to what was kept"), &out);
        }
        t.keep(format!("{what}: rotated, cached {cached}"), &qkv);
    }
}
