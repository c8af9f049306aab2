//! Single operations.

use catamount_model::{
    AdamW, Affine, Attended, Backend, Batch, Direction, Dropout, Head, HeadGradients, Heads, Inner,
    Kind, Lora, LoraGradients, Norm, NormInput, Normed, Packed, Scores, Shape, Update,
};

use super::{Bench, Results, random, random_indices};

/// Runs every operation, forward and backward, in shapes that take every path of a fast backend;
/// products of more than `most` multiplications are left out for slow ones.
pub fn operations<B: Backend>(b: &B, most: usize) -> Results {
    let mut bench = Bench::new(b);
    for (n, d) in [(70, 256), (33, 37), (5, 3584)] {
        embedding(&mut bench, n, d);
        norm(&mut bench, n, d);
    }
    for (n, outputs, inputs) in [(70, 96, 256), (33, 41, 37), (1, 128, 64)] {
        linear(&mut bench, n, outputs, inputs);
    }
    for dropout in [None, Some(Dropout { p: 0.25, key: 0x1234_5678_9abc_def0 })] {
        lora(&mut bench, 70, 128, 16, &[0..128, 128..192, 192..256], 256, dropout);
        lora(&mut bench, 300, 256, 8, std::slice::from_ref(&(0..96)), 96, dropout);
        lora(&mut bench, 129, 96, 32, &[0..64, 96..160], 160, dropout);
        // Enough inputs for the inner product to be cut into slices, with few rows and with many.
        lora(&mut bench, 40, 4864, 16, &[0..64, 64..96], 96, dropout);
        if 1100 * 1024 * 2048 <= most {
            lora(&mut bench, 1100, 1024, 16, &[0..1024, 1024..2048], 2048, dropout);
        }
        lora(&mut bench, 33, 24, 3, &[0..10, 15..20], 20, dropout);
    }
    for heads in [
        Heads { heads: 4, kv_heads: 2, dim: 64 },
        Heads { heads: 3, kv_heads: 3, dim: 64 },
        Heads { heads: 7, kv_heads: 1, dim: 128 },
        Heads { heads: 2, kv_heads: 2, dim: 128 },
        Heads { heads: 4, kv_heads: 2, dim: 32 },
        Heads { heads: 2, kv_heads: 1, dim: 80 },
    ] {
        attention(&mut bench, heads, [1, 64, 65, 130, 7, 200]);
        decode(&mut bench, heads);
        ends(&mut bench, heads);
    }
    for (n, f) in [(70, 96), (33, 37)] {
        swiglu(&mut bench, n, f);
    }
    for vocab in [1000, 1003] {
        head(&mut bench, vocab);
    }
    optimizer(&mut bench);
    bench.results
}

fn embedding<B: Backend>(t: &mut Bench<B>, n: usize, d: usize) {
    let vocab = 19;
    let (weight, tokens) = (t.frozen(vocab * d, 1), t.index(&random_indices(n, vocab, 2)));
    let mut out = t.output(n * d, Kind::Activation);
    t.b.embed(n, d, &weight, &tokens, &mut out).unwrap();
    t.keep(format!("embed {n}x{d}"), &out);
    let (dout, mut dweight) = (t.activation(n * d, 3), t.exact(vocab * d, 4));
    t.b.embed_backward(n, d, &dout, &tokens, &mut dweight).unwrap();
    t.keep(format!("embed_backward {n}x{d}"), &dweight);
    let mut out = t.output(2 * d, Kind::Activation);
    t.b.gather(2, d, &dout, &t.index(&[3, 1]), &mut out).unwrap();
    t.keep(format!("gather {n}x{d}"), &out);
}

fn norm<B: Backend>(t: &mut Bench<B>, n: usize, d: usize) {
    let (x, delta, weight) = (t.activation(n * d, 1), t.activation(n * d, 2), t.frozen(d, 3));
    let (mut sum, mut rstd) = (t.output(n * d, Kind::Activation), t.output(n, Kind::Exact));
    let mut out = t.output(n * d, Kind::Activation);
    let norm = Norm { d, eps: 1e-5, weight: &weight };
    t.b.rms_norm(n, norm, &x, Normed { rstd: &mut rstd, out: &mut out }).unwrap();
    t.keep(format!("rms_norm {n}x{d}"), &out);
    let normed = Normed { rstd: &mut rstd, out: &mut out };
    t.b.add_rms_norm(n, norm, &x, &delta, &mut sum, normed).unwrap();
    t.keep(format!("add_rms_norm {n}x{d} sum"), &sum);
    t.keep(format!("add_rms_norm {n}x{d} rstd"), &rstd);
    t.keep(format!("add_rms_norm {n}x{d}"), &out);
    let (dout, mut dx, mut dweight) =
        (t.activation(n * d, 4), t.activation(n * d, 5), t.exact(d, 6));
    let input = NormInput { x: &sum, rstd: &rstd };
    t.b.rms_norm_backward(n, norm, input, &dout, &mut dx, Some(&mut dweight)).unwrap();
    t.keep(format!("rms_norm_backward {n}x{d} dx"), &dx);
    t.keep(format!("rms_norm_backward {n}x{d} dweight"), &dweight);
}

fn linear<B: Backend>(t: &mut Bench<B>, n: usize, outputs: usize, inputs: usize) {
    let size = Shape { outputs, inputs };
    let shape = format!("{n}x{inputs} to {outputs}");
    let (x, weight, bias) =
        (t.activation(n * inputs, 1), t.frozen(outputs * inputs, 2), t.frozen(outputs, 3));
    let mut y = t.output(n * outputs, Kind::Activation);
    let map = Affine { shape: size, weight: &weight, bias: Some(&bias), fp8: false };
    t.b.linear(n, map, &x, &mut y).unwrap();
    t.keep(format!("linear with bias {shape}"), &y);
    let mut logits = t.output(n * outputs, Kind::Exact);
    t.b.linear(n, Affine { bias: None, ..map }, &x, &mut logits).unwrap();
    t.keep(format!("linear to f32 {shape}"), &logits);
    let (dy, mut dx) = (t.activation(n * outputs, 4), t.output(n * inputs, Kind::Activation));
    t.b.linear_backward_input(n, map, &dy, &mut dx).unwrap();
    t.keep(format!("linear_backward_input {shape}"), &dx);
    let (mut dweight, mut dbias) = (t.exact(outputs * inputs, 5), t.exact(outputs, 6));
    t.b.linear_backward_weight(n, size, &dy, &x, &mut dweight, Some(&mut dbias)).unwrap();
    t.keep(format!("linear_backward_weight {shape} dweight"), &dweight);
    t.keep(format!("linear_backward_weight {shape} dbias"), &dbias);
}

fn lora<B: Backend>(
    t: &mut Bench<B>,
    n: usize,
    inputs: usize,
    rank: usize,
    parts: &[std::ops::Range<usize>],
    outputs: usize,
    dropout: Option<Dropout>,
) {
    let what = format!("lora r{rank} {} parts dropout {}", parts.len(), dropout.is_some());
    let (width, rows) = (parts.len() * rank, parts.iter().map(|p| p.len()).sum::<usize>());
    let a = t.tensor(&random(width * inputs, 1), Kind::Trained);
    let b = t.tensor(&random(rows * rank, 2), Kind::Trained);
    let lora = Lora { a: &a, b: &b, rank, scale: 0.5, inputs, outputs, parts, dropout };
    let (x, mut y) = (t.activation(n * inputs, 3), t.activation(n * outputs, 4));
    let mut inner = t.output(n * width, Kind::Activation);
    t.b.lora(n, &lora, &x, &mut inner, &mut y).unwrap();
    t.keep(format!("{what}: t"), &inner);
    t.keep(format!("{what}: y"), &y);
    let (dy, mut dx) = (t.activation(n * outputs, 5), t.activation(n * inputs, 6));
    let (mut da, mut db) = (t.exact(width * inputs, 7), t.exact(rows * rank, 8));
    let gradients = LoraGradients { da: &mut da, db: &mut db };
    t.b.lora_backward(n, &lora, Inner { x: &x, t: &inner }, &dy, &mut dx, gradients).unwrap();
    // With the linear maps that adapters add to, as a model calls them.
    let weight = t.frozen(outputs * inputs, 9);
    let map = Affine { shape: Shape { outputs, inputs }, weight: &weight, bias: None, fp8: false };
    t.b.linear(n, map, &x, &mut y).unwrap();
    t.b.lora(n, &lora, &x, &mut inner, &mut y).unwrap();
    t.keep(format!("{what}: adapted y"), &y);
    let (mut adapted, mut da2, mut db2) = (
        t.output(n * inputs, Kind::Activation),
        t.exact(width * inputs, 7),
        t.exact(rows * rank, 8),
    );
    t.b.linear_backward_input(n, map, &dy, &mut adapted).unwrap();
    let gradients = LoraGradients { da: &mut da2, db: &mut db2 };
    t.b.lora_backward(n, &lora, Inner { x: &x, t: &inner }, &dy, &mut adapted, gradients).unwrap();
    t.keep(format!("{what}: adapted dx"), &adapted);
    t.keep(format!("{what}: dx"), &dx);
    t.keep(format!("{what}: da"), &da);
    t.keep(format!("{what}: db"), &db);
}

/// Sequences that begin so far on and are so long.
fn packed<B: Backend>(t: &Bench<B>, sequences: &[(usize, usize)]) -> Packed<B> {
    let mut batch = Batch::new();
    sequences.iter().for_each(|&(first, len)| batch.push_end(first, &vec![0; len]));
    Packed {
        n: batch.len(),
        sequences: batch.sequences(),
        longest: batch.longest(),
        tokens: t.index(&batch.tokens),
        positions: t.index(&batch.positions),
        starts: t.index(&batch.starts),
    }
}

fn attention<B: Backend, const N: usize>(t: &mut Bench<B>, heads: Heads, lengths: [usize; N]) {
    let what = format!("{}/{}x{}", heads.heads, heads.kv_heads, heads.dim);
    let packed = packed(t, &lengths.map(|len| (0, len)));
    let n = packed.n;
    let mut qkv = t.activation(n * heads.qkv(), 1);
    let table: Vec<f32> = (0..200 * heads.dim)
        .map(|i| {
            if (i / (heads.dim / 2)).is_multiple_of(2) {
                (i as f32).cos()
            } else {
                (i as f32).sin()
            }
        })
        .collect();
    let table = t.tensor(&table, Kind::Exact);
    t.b.rope(n, heads, Direction::Forward, &packed.positions, &table, &mut qkv).unwrap();
    t.keep(format!("rope {what}"), &qkv);
    let (mut out, mut lse) =
        (t.output(n * heads.q(), Kind::Activation), t.output(n * heads.heads, Kind::Exact));
    t.b.attention(heads, &packed, &qkv, &mut out, &mut lse).unwrap();
    t.keep(format!("attention {what}"), &out);
    t.keep(format!("attention {what} lse"), &lse);
    let (dout, mut dqkv) =
        (t.activation(n * heads.q(), 2), t.output(n * heads.qkv(), Kind::Activation));
    let attended = Attended { qkv: &qkv, out: &out, lse: &lse };
    t.b.attention_backward(heads, &packed, attended, &dout, &mut dqkv).unwrap();
    let all = t.host(&dqkv);
    let rows = |from: usize, to: usize| {
        all.chunks(heads.qkv()).flat_map(|r| r[from..to].to_vec()).collect::<Vec<f32>>()
    };
    let (q, k) = (heads.q(), heads.q() + heads.kv());
    for (name, part) in [("dq", rows(0, q)), ("dk", rows(q, k)), ("dv", rows(k, heads.qkv()))] {
        t.results.push((format!("attention_backward {what} {name}"), part));
    }
    t.b.rope(n, heads, Direction::Backward, &packed.positions, &table, &mut dqkv).unwrap();
    t.keep(format!("rope inverse {what}"), &dqkv);
}

fn decode<B: Backend>(t: &mut Bench<B>, heads: Heads) {
    let what = format!("{}/{}x{}", heads.heads, heads.kv_heads, heads.dim);
    let (n, capacity) = (6, 400);
    let qkv = t.activation(n * heads.qkv(), 1);
    // Each backend keeps the cache in an order of its own, so it is filled and read through the
    // operations only.
    let mut cache = t.output(capacity * 2 * heads.kv(), Kind::Activation);
    let past = t.activation(capacity * heads.qkv(), 2);
    t.b.cache_write(
        capacity,
        heads,
        &past,
        &t.index(&(0..capacity as u32).collect::<Vec<_>>()),
        &mut cache,
    )
    .unwrap();
    t.b.cache_write(n, heads, &qkv, &t.index(&[3, u32::MAX, 399, 17, 250, 251]), &mut cache)
        .unwrap();
    let spans = [
        [0, 0, 3, 1],
        [0, 0, 0, 0],
        [10, 100, 390, 10],
        [0, 17, 17, 1],
        [5, 0, 50, 201],
        [20, 131, 200, 52],
    ];
    let spans = t.index(spans.as_flattened());
    let mut out = t.output(n * heads.q(), Kind::Activation);
    t.b.cache_attention(n, heads, &qkv, &cache, &spans, &mut out).unwrap();
    let mut rows = t.host(&out);
    // The second row is padding: its result is nobody's business.
    rows.drain(heads.q()..2 * heads.q());
    t.results.push((format!("cache_attention {what}"), rows));
}

/// The ends of three prompts, the first of which begins like another one; and the same with all of
/// each prompt as its end, which has to give the same bits.
fn ends<B: Backend>(t: &mut Bench<B>, heads: Heads) {
    let what = format!("{}/{}x{}", heads.heads, heads.kv_heads, heads.dim);
    // Beginnings that are no multiple of anything, more than a block of queries, of keys.
    let (lengths, known, at) = ([300usize, 130, 2], [201usize, 1, 0], 400u32);
    let (width, n) = (heads.qkv(), lengths.iter().sum::<usize>());
    let numbers = t.host(&t.activation(n * width, 1));
    let mut results = Vec::new();
    for known in [known, [0; 3]] {
        // Rows that are known only from elsewhere, and rubbish where they will be copied.
        let mut cache = t.output((at as usize + n) * 2 * heads.kv(), Kind::Activation);
        let all = t.tensor(&numbers, Kind::Activation);
        let slots: Vec<u32> =
            (0..n as u32).map(|row| if row < known[0] as u32 { row } else { at + row }).collect();
        t.b.cache_write(n, heads, &all, &t.index(&slots), &mut cache).unwrap();
        let (mut places, mut rows, mut sequences, mut first) = (vec![], vec![], vec![], 0);
        for (i, (len, known)) in lengths.iter().zip(known).enumerate() {
            let copied = if i == 0 { known as u32 } else { 0 };
            places.extend([at + first as u32, *len as u32, 0, copied]);
            rows.extend_from_slice(&numbers[(first + known) * width..(first + len) * width]);
            sequences.push((known, len - known));
            first += len;
        }
        // A sequence of padding, as batches of one shape have it.
        sequences.push((0, 0));
        places.extend([0; 4]);
        let (places, rows) = (t.index(&places), t.tensor(&rows, Kind::Activation));
        let packed = packed(t, &sequences);
        t.b.cache_copy(4, heads, &places, &mut cache).unwrap();
        let mut out = t.output(packed.n * heads.q(), Kind::Activation);
        t.b.prompt_attention(heads, &packed, &rows, &cache, &places, &mut out).unwrap();
        results.push(t.host(&out));
    }
    let (whole, ends) = (results.pop().unwrap(), results.pop().unwrap());
    let (mut from, mut first, q) = (0, 0, heads.q());
    for (len, known) in lengths.iter().zip(known) {
        let (end, same) = (&ends[from * q..], &whole[(first + known) * q..(first + len) * q]);
        assert_eq!(&end[..same.len()], same, "{what}: the end of {len} tokens, {known} known");
        from += len - known;
        first += len;
    }
    t.results.push((format!("prompt_attention {what}"), ends));
}

fn swiglu<B: Backend>(t: &mut Bench<B>, n: usize, f: usize) {
    let (gate_up, mut out) = (t.activation(2 * n * f, 1), t.output(n * f, Kind::Activation));
    t.b.swiglu(n, f, &gate_up, &mut out).unwrap();
    t.keep(format!("swiglu {n}x{f}"), &out);
    let (dout, mut dgate_up) = (t.activation(n * f, 2), t.output(2 * n * f, Kind::Activation));
    t.b.swiglu_backward(n, f, &gate_up, &dout, &mut dgate_up).unwrap();
    t.keep(format!("swiglu_backward {n}x{f}"), &dgate_up);
}

fn head<B: Backend>(t: &mut Bench<B>, vocab: usize) {
    let (n, d) = (50, 64);
    let rows: Vec<u32> = (0..n as u32).filter(|r| r % 3 != 1).collect();
    let m = rows.len();
    let (mut x, weight) = (t.activation(n * d, 1), t.frozen(vocab * d, 2));
    let (rows, targets) = (t.index(&rows), t.index(&random_indices(m, vocab, 3)));
    let (mut log_p, mut lse) = (t.output(m, Kind::Exact), t.output(m, Kind::Exact));
    let coefficients = t.exact(m, 4);
    // The second round changes x in between, so that nothing of the forward pass may be reused.
    let rounds = [("kept", 1.0), ("changed", 1.0), ("cooler", 0.8), ("warmer", 1.3)];
    for (round, temperature) in rounds {
        let head =
            Head { m, vocab, d, weight: &weight, rows: &rows, targets: &targets, temperature };
        t.b.head(&head, &x, Scores { log_p: &mut log_p, lse: &mut lse }).unwrap();
        t.keep(format!("head {vocab} log_p {round}"), &log_p);
        t.keep(format!("head {vocab} lse {round}"), &lse);
        if round == "changed" {
            let half: Vec<f32> = t.host(&x).iter().map(|x| 0.5 * x).collect();
            t.b.upload(&half, &mut x, 0).unwrap();
        }
        let (mut dx, mut dweight) = (t.output(n * d, Kind::Activation), t.exact(vocab * d, 5));
        let gradients = HeadGradients { dx: &mut dx, dweight: Some(&mut dweight) };
        t.b.head_backward(n, &head, &x, &lse, &coefficients, gradients).unwrap();
        t.keep(format!("head_backward {vocab} dx {round}"), &dx);
        t.keep(format!("head_backward {vocab} dweight {round}"), &dweight);
    }
}

fn optimizer<B: Backend>(t: &mut Bench<B>) {
    let len = 1000;
    let mut value = t.tensor(&random(len, 1), Kind::Trained);
    let (grad, mut m, mut v) =
        (t.exact(len, 2), t.exact(len, 3), t.tensor(&vec![0.5; len], Kind::Exact));
    for step in 1..4 {
        let adamw = AdamW {
            lr: 0.1,
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-8,
            weight_decay: 0.1,
            step,
            grad_scale: 0.7,
        };
        let update = Update { grad: &grad, m: &mut m, v: &mut v, value: &mut value };
        t.b.adamw(&adamw, &mut [update]).unwrap();
    }
    t.keep("adamw value", &value);
    t.keep("adamw m", &m);
    t.keep("adamw v", &v);
    // The copy that products read must have followed.
    let (x, mut y) = (t.activation(10, 4), t.output(100, Kind::Exact));
    let shape = Shape { outputs: 100, inputs: 10 };
    t.b.linear(1, Affine { shape, weight: &value, bias: None, fp8: false }, &x, &mut y).unwrap();
    t.keep("product with an updated parameter", &y);
    let mut z = t.exact(len, 5);
    t.b.clear(100, &mut z).unwrap();
    t.keep("clear", &z);
    let (mut one, mut other) = (t.exact(len, 7), t.activation(33, 8));
    t.b.clear_all(&mut [&mut one, &mut other]).unwrap();
    t.keep("clear_all, exact", &one);
    t.keep("clear_all, an activation", &other);
    let activation = t.activation(777, 6);
    let squares = t.b.sum_of_squares(&[&z, &grad, &activation]).unwrap();
    t.results.push(("sum_of_squares".into(), vec![squares as f32]));
}
