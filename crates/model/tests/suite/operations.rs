//! Every operation's backward against finite differences of its forward, along random directions
//! and single coordinates.

use catamount_model::{
    AdamW, Affine, Attended, Batch, Cpu, CpuTensor, Decode, Direction, Dropout, Head,
    HeadGradients, Heads, Inner, Kind, Layers, Lora, LoraGradients, Memory, Norm, NormInput,
    Normed, Optimize, Packed, Reference, Scores, Shape, Update,
};
use catamount_search::Stream;

const CPU: Cpu = Cpu;

fn random(len: usize, seed: u64) -> Vec<f32> {
    let stream = Stream::new(seed);
    (0..len as u64).map(|i| 2.0 * stream.uniform(i) as f32 - 1.0).collect()
}

fn tensor(data: &[f32]) -> CpuTensor {
    let mut t = CPU.zeros(data.len(), Kind::Exact).unwrap();
    CPU.upload(data, &mut t, 0).unwrap();
    t
}

fn zeros(len: usize) -> CpuTensor {
    CPU.zeros(len, Kind::Exact).unwrap()
}

fn host(t: &CpuTensor) -> Vec<f32> {
    let mut out = vec![0.0; CPU.len(t)];
    CPU.download(t, 0, &mut out).unwrap();
    out
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// `gradient` must be the gradient at `x` of `loss`.
fn check(what: &str, x: &[f32], gradient: &[f32], loss: impl Fn(&[f32]) -> f64) {
    assert!(gradient.iter().any(|g| *g != 0.0), "{what}: the gradient is all zero");
    let step = 4e-3f32;
    for trial in 0..14u64 {
        let direction: Vec<f32> = if trial < 6 {
            random(x.len(), 1000 + trial)
        } else {
            let at = (Stream::new(trial).uniform(0) * x.len() as f64) as usize;
            (0..x.len()).map(|i| if i == at { 2.0 } else { 0.0 }).collect()
        };
        let moved =
            |s: f32| -> Vec<f32> { x.iter().zip(&direction).map(|(x, u)| x + s * u).collect() };
        let numeric = (loss(&moved(step)) - loss(&moved(-step))) / (2.0 * f64::from(step));
        let exact = dot(gradient, &direction);
        let size = dot(gradient, gradient).sqrt() / (gradient.len() as f64).sqrt();
        let error = (numeric - exact).abs() / (exact.abs() + 0.3 * size + 1e-3);
        assert!(
            error < 0.01,
            "{what}, direction {trial}: {exact} by hand, {numeric} by differences"
        );
    }
}

#[test]
fn embedding() {
    let (n, d, v) = (5, 6, 4);
    let (weight, dout, tokens) = (random(v * d, 1), random(n * d, 2), vec![3, 1, 3, 0, 3]);
    let mut dweight = zeros(v * d);
    CPU.embed_backward(n, d, &tensor(&dout), &tokens, &mut dweight).unwrap();
    check("embedding", &weight, &host(&dweight), |w| {
        let mut out = zeros(n * d);
        CPU.embed(n, d, &tensor(w), &tokens, &mut out).unwrap();
        dot(&host(&out), &dout)
    });
}

#[test]
fn residual_and_norm() {
    let (n, d, eps) = (70, 37, 1e-5);
    let (x, delta, w) = (random(n * d, 1), random(n * d, 2), random(d, 3));
    let (dout, dsum) = (random(n * d, 4), random(n * d, 5));
    let loss = |x: &[f32], w: &[f32]| {
        let (mut sum, mut rstd, mut out) = (zeros(n * d), zeros(n), zeros(n * d));
        let (w, normed) = (tensor(w), Normed { rstd: &mut rstd, out: &mut out });
        let norm = Norm { d, eps, weight: &w };
        CPU.add_rms_norm(n, norm, &tensor(x), &tensor(&delta), &mut sum, normed).unwrap();
        (dot(&host(&out), &dout) + dot(&host(&sum), &dsum), sum, rstd, out)
    };
    let (_, sum, rstd, out) = loss(&x, &w);
    let (mut plain, mut rstd2) = (zeros(n * d), zeros(n));
    let weight = tensor(&w);
    let norm = Norm { d, eps, weight: &weight };
    CPU.rms_norm(n, norm, &sum, Normed { rstd: &mut rstd2, out: &mut plain }).unwrap();
    assert_eq!(
        (host(&plain), host(&rstd2)),
        (host(&out), host(&rstd)),
        "with and without the addition"
    );
    // The residual path's gradient is in dx before, and the norm's is added to it.
    let (mut dx, mut dw) = (tensor(&dsum), zeros(d));
    let input = NormInput { x: &sum, rstd: &rstd };
    CPU.rms_norm_backward(n, norm, input, &tensor(&dout), &mut dx, Some(&mut dw)).unwrap();
    check("norm, input", &x, &host(&dx), |x| loss(x, &w).0);
    check("norm, weight", &w, &host(&dw), |w| loss(&x, w).0);
}

#[test]
fn linear() {
    let (n, o, i) = (9, 35, 13);
    let shape = Shape { outputs: o, inputs: i };
    let (x, w, bias, dy) = (random(n * i, 1), random(o * i, 2), random(o, 3), random(n * o, 4));
    let loss = |x: &[f32], w: &[f32], bias: &[f32]| {
        let (w, bias, mut y) = (tensor(w), tensor(bias), zeros(n * o));
        let map = Affine { shape, weight: &w, bias: Some(&bias), fp8: false };
        CPU.linear(n, map, &tensor(x), &mut y).unwrap();
        dot(&host(&y), &dy)
    };
    let (mut dx, mut dw, mut db) = (zeros(n * i), zeros(o * i), zeros(o));
    let (weight, tdy) = (tensor(&w), tensor(&dy));
    let map = Affine { shape, weight: &weight, bias: None, fp8: false };
    CPU.linear_backward_input(n, map, &tdy, &mut dx).unwrap();
    CPU.linear_backward_weight(n, shape, &tdy, &tensor(&x), &mut dw, Some(&mut db)).unwrap();
    check("linear, input", &x, &host(&dx), |x| loss(x, &w, &bias));
    check("linear, weight", &w, &host(&dw), |w| loss(&x, w, &bias));
    check("linear, bias", &bias, &host(&db), |b| loss(&x, &w, b));
}

#[test]
fn a_changed_weight_is_seen_by_the_next_product() {
    let (mut w, x, mut y) = (tensor(&[1.0, 2.0]), tensor(&[3.0, 4.0]), zeros(1));
    let shape = Shape { outputs: 1, inputs: 2 };
    CPU.linear(1, Affine { shape, weight: &w, bias: None, fp8: false }, &x, &mut y).unwrap();
    assert_eq!(host(&y), [11.0]);
    CPU.upload(&[10.0], &mut w, 1).unwrap();
    CPU.linear(1, Affine { shape, weight: &w, bias: None, fp8: false }, &x, &mut y).unwrap();
    assert_eq!(host(&y), [43.0]);
}

#[test]
fn lora_with_dropout_on_two_of_three_parts() {
    let (n, i, o, r) = (8, 11, 15, 3);
    let parts = [0..4, 9..15];
    let rows = 10;
    let (a, b, x, dy) =
        (random(2 * r * i, 1), random(rows * r, 2), random(n * i, 3), random(n * o, 4));
    for dropout in [None, Some(Dropout { p: 0.3, key: 77 })] {
        let run = |a: &[f32], b: &[f32], x: &[f32]| {
            let (a, b) = (tensor(a), tensor(b));
            let lora = Lora {
                a: &a,
                b: &b,
                rank: r,
                scale: 1.7,
                inputs: i,
                outputs: o,
                parts: &parts,
                dropout,
            };
            let (mut t, mut y) = (zeros(n * 2 * r), tensor(&vec![0.5; n * o]));
            CPU.lora(n, &lora, &tensor(x), &mut t, &mut y).unwrap();
            assert!(
                host(&y).chunks(o).all(|row| row[4..9].iter().all(|v| *v == 0.5)),
                "a part that is no target changed"
            );
            (dot(&host(&y), &dy), t)
        };
        let (_, t) = run(&a, &b, &x);
        let (ta, tb) = (tensor(&a), tensor(&b));
        let lora = Lora {
            a: &ta,
            b: &tb,
            rank: r,
            scale: 1.7,
            inputs: i,
            outputs: o,
            parts: &parts,
            dropout,
        };
        let (mut dx, mut da, mut db) = (zeros(n * i), zeros(2 * r * i), zeros(rows * r));
        let gradients = LoraGradients { da: &mut da, db: &mut db };
        let inner = Inner { x: &tensor(&x), t: &t };
        CPU.lora_backward(n, &lora, inner, &tensor(&dy), &mut dx, gradients).unwrap();
        check("lora, input", &x, &host(&dx), |x| run(&a, &b, x).0);
        check("lora, A", &a, &host(&da), |a| run(a, &b, &x).0);
        check("lora, B", &b, &host(&db), |b| run(&a, b, &x).0);
    }
}

#[test]
fn dropout_keeps_the_right_share() {
    for p in [0.05f32, 0.5] {
        let dropped =
            (0..100_000).filter(|&i| !Dropout { p, key: 0xdead_beef_1234 }.keeps(i)).count() as f32;
        // Five standard deviations.
        assert!(
            (dropped / 1e5 - p).abs() < 5.0 * (p * (1.0 - p) / 1e5).sqrt(),
            "{dropped} of 100000 at {p}"
        );
    }
    let mask = |key| -> Vec<bool> { (0..64).map(|i| Dropout { p: 0.5, key }.keeps(i)).collect() };
    assert!(mask(1) != mask(2) && mask(1) != mask(1 << 40), "both halves of the key matter");
}

fn packed(starts: &[u32]) -> Packed<Cpu> {
    let positions: Vec<u32> = starts.windows(2).flat_map(|w| 0..w[1] - w[0]).collect();
    let longest = starts.windows(2).map(|w| w[1] - w[0]).max().unwrap() as usize;
    let n = positions.len();
    Packed {
        n,
        sequences: starts.len() - 1,
        longest,
        tokens: vec![0; n],
        positions,
        starts: starts.to_vec(),
    }
}

#[test]
fn rotation() {
    let heads = Heads { heads: 4, kv_heads: 2, dim: 6 };
    let (p, n) = (packed(&[0, 3, 5]), 5);
    let (qkv, dout) = (random(n * heads.qkv(), 1), random(n * heads.qkv(), 2));
    let mut config = catamount_model::Config::small(8, 24, 1, 16);
    config.heads = heads;
    let table = tensor(&config.rope_table(16));
    let mut dqkv = tensor(&dout);
    CPU.rope(n, heads, Direction::Backward, &p.positions, &table, &mut dqkv).unwrap();
    check("rotation", &qkv, &host(&dqkv), |qkv| {
        let mut out = tensor(qkv);
        CPU.rope(n, heads, Direction::Forward, &p.positions, &table, &mut out).unwrap();
        dot(&host(&out), &dout)
    });
}

#[test]
fn attention_over_packed_sequences() {
    let heads = Heads { heads: 4, kv_heads: 2, dim: 6 };
    let p = packed(&[0, 1, 60, 65]);
    let (qkv, dout) = (random(p.n * heads.qkv(), 1), random(p.n * heads.q(), 2));
    let run = |qkv: &[f32]| {
        let (mut out, mut lse) = (zeros(p.n * heads.q()), zeros(p.n * heads.heads));
        CPU.attention(heads, &p, &tensor(qkv), &mut out, &mut lse).unwrap();
        (dot(&host(&out), &dout), out, lse)
    };
    let (_, out, lse) = run(&qkv);
    let mut dqkv = zeros(p.n * heads.qkv());
    let attended = Attended { qkv: &tensor(&qkv), out: &out, lse: &lse };
    CPU.attention_backward(heads, &p, attended, &tensor(&dout), &mut dqkv).unwrap();
    check("attention", &qkv, &host(&dqkv), |qkv| run(qkv).0);

    // Against the definition, one query at a time.
    let (out, w, dim) = (host(&out), heads.qkv(), heads.dim);
    for (row, head) in [(0, 0), (1, 3), (30, 1), (59, 2), (64, 3)] {
        let start = *p.starts.iter().rfind(|s| **s <= row as u32).unwrap() as usize;
        let q = &qkv[row * w + head * dim..][..dim];
        let at = |j: usize, part: usize| {
            &qkv[j * w + (heads.heads + part * heads.kv_heads + head / 2) * dim..][..dim]
        };
        let e: Vec<f64> =
            (start..=row).map(|j| (dot(q, at(j, 0)) / (dim as f64).sqrt()).exp()).collect();
        for i in 0..dim {
            let want: f64 =
                e.iter().zip(start..).map(|(e, j)| e * f64::from(at(j, 1)[i])).sum::<f64>()
                    / e.iter().sum::<f64>();
            assert!((want - f64::from(out[row * heads.q() + head * dim + i])).abs() < 1e-5);
        }
    }

    // The cache gives the same attention: the last row of a sequence over its past in two runs.
    let mut cache = zeros(80 * 2 * heads.kv());
    let slots: Vec<u32> = (0..65).map(|i| if i < 30 { i + 40 } else { i - 30 }).collect();
    CPU.cache_write(p.n, heads, &tensor(&qkv), &slots, &mut cache).unwrap();
    let (last, mut decoded) = (tensor(&qkv[59 * w..60 * w]), zeros(heads.q()));
    CPU.cache_attention(1, heads, &last, &cache, &vec![41, 29, 0, 30], &mut decoded).unwrap();
    for (a, b) in host(&decoded).iter().zip(&out[59 * heads.q()..]) {
        assert!((a - b).abs() < 1e-5, "{a} from the cache, {b} packed");
    }
}

/// The end of a prompt has the numbers that it has in the whole prompt, to the last bit, and about
/// those of the plain reference.
#[test]
fn ends_of_prompts() {
    let heads = Heads { heads: 4, kv_heads: 2, dim: 16 };
    // Longer than a block of queries, and than a block of a product's sums.
    let lengths = [300usize, 64, 2];
    let (known, width) = ([290usize, 1, 0], heads.qkv());
    let n = lengths.iter().sum();
    let qkv = random(n * width, 6);
    let packed = |lengths: &[usize]| {
        let mut batch = Batch::new();
        lengths.iter().for_each(|&len| batch.push_end(0, &vec![0; len]));
        Packed::<Cpu> {
            n: batch.len(),
            sequences: batch.sequences(),
            longest: batch.longest(),
            tokens: batch.tokens,
            positions: batch.positions,
            starts: batch.starts,
        }
    };
    let (mut whole, mut lse) = (zeros(n * heads.q()), zeros(n * heads.heads));
    CPU.attention(heads, &packed(&lengths), &tensor(&qkv), &mut whole, &mut lse).unwrap();

    // All keys and values some way into a cache, the first prompt's beginning copied there.
    let at = 400u32;
    let mut cache = zeros((at as usize + n) * 2 * heads.kv());
    let slots: Vec<u32> = (0..n as u32).map(|i| if i < 290 { i } else { at + i }).collect();
    CPU.cache_write(n, heads, &tensor(&qkv), &slots, &mut cache).unwrap();
    CPU.cache_copy(1, heads, &vec![at, 300, 0, 290], &mut cache).unwrap();
    let (mut ends, mut rows, mut places, mut first) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for (len, known) in lengths.iter().zip(known) {
        places.extend([at + first as u32, *len as u32, 0, 0]);
        rows.extend(first + known..first + len);
        ends.extend_from_slice(&qkv[(first + known) * width..(first + len) * width]);
        first += len;
    }
    let lens: Vec<usize> = lengths.iter().zip(known).map(|(len, known)| len - known).collect();
    let mut out = zeros(rows.len() * heads.q());
    let p = packed(&lens);
    CPU.prompt_attention(heads, &p, &tensor(&ends), &cache, &places, &mut out).unwrap();
    let (out, whole) = (host(&out), host(&whole));
    for (out, row) in out.chunks_exact(heads.q()).zip(&rows) {
        assert_eq!(out, &whole[row * heads.q()..][..heads.q()], "row {row}");
    }

    let mut plain = vec![0.0; (at as usize + n) * 2 * heads.kv()];
    Reference.cache_write(n, heads, &qkv, &slots, &mut plain).unwrap();
    Reference.cache_copy(1, heads, &vec![at, 300, 0, 290], &mut plain).unwrap();
    let mut wanted = vec![0.0; out.len()];
    let Packed { n, sequences, longest, tokens, positions, starts } = p;
    let p = Packed::<Reference> { n, sequences, longest, tokens, positions, starts };
    Reference.prompt_attention(heads, &p, &ends, &plain, &places, &mut wanted).unwrap();
    for (a, b) in out.iter().zip(&wanted) {
        assert!((a - b).abs() < 1e-5, "{a}, and {b} of the reference");
    }
}

#[test]
fn swiglu() {
    let (n, f) = (3, 21);
    let (x, dout) =
        (random(n * 2 * f, 1).iter().map(|v| 4.0 * v).collect::<Vec<_>>(), random(n * f, 2));
    let mut dx = zeros(n * 2 * f);
    CPU.swiglu_backward(n, f, &tensor(&x), &tensor(&dout), &mut dx).unwrap();
    check("swiglu", &x, &host(&dx), |x| {
        let mut out = zeros(n * f);
        CPU.swiglu(n, f, &tensor(x), &mut out).unwrap();
        dot(&host(&out), &dout)
    });
}

#[test]
fn head_and_log_probabilities() {
    [1.0, 0.7, 1.3].into_iter().for_each(head_at);
}

/// A head but for its weight.
struct Asked<'a> {
    m: usize,
    v: usize,
    d: usize,
    rows: &'a Vec<u32>,
    targets: &'a Vec<u32>,
    temperature: f32,
}

impl Asked<'_> {
    fn of<'a>(&'a self, weight: &'a CpuTensor) -> Head<'a, CpuTensor, Vec<u32>> {
        let Asked { m, v: vocab, d, rows, targets, temperature } = *self;
        Head { m, vocab, d, weight, rows, targets, temperature }
    }
}

fn head_at(temperature: f32) {
    let (n, d, v, m) = (7, 10, 41, 4);
    let (x, w) = (random(n * d, 1), random(v * d, 2));
    let (rows, targets, c) = (vec![1, 2, 4, 6], vec![40, 0, 7, 7], random(m, 3));
    let head = Asked { m, v, d, rows: &rows, targets: &targets, temperature };
    let run = |x: &[f32], w: &[f32]| {
        let (mut log_p, mut lse) = (zeros(m), zeros(m));
        let (x, w) = (tensor(x), tensor(w));
        let scores = Scores { log_p: &mut log_p, lse: &mut lse };
        CPU.head(&head.of(&w), &x, scores).unwrap();
        (dot(&host(&log_p), &c), log_p, lse)
    };
    let (_, log_p, lse) = run(&x, &w);
    for j in 0..m {
        let row = &x[rows[j] as usize * d..][..d];
        let logit = |t: usize| dot(row, &w[t * d..][..d]) / f64::from(temperature);
        let logits: Vec<f64> = (0..v).map(logit).collect();
        let want = logits[targets[j] as usize] - logits.iter().map(|l| l.exp()).sum::<f64>().ln();
        assert!((want - f64::from(host(&log_p)[j])).abs() < 1e-5);
    }
    let (mut dx, mut dw) = (tensor(&vec![9.0; n * d]), zeros(v * d));
    let (tx, tw, tc) = (tensor(&x), tensor(&w), tensor(&c));
    let gradients = HeadGradients { dx: &mut dx, dweight: Some(&mut dw) };
    CPU.head_backward(n, &head.of(&tw), &tx, &lse, &tc, gradients).unwrap();
    check("head, input", &x, &host(&dx), |x| run(x, &w).0);
    check("head, weight", &w, &host(&dw), |w| run(&x, w).0);
}

#[test]
fn adamw_follows_its_definition() {
    let (grad, mut value) = (tensor(&[0.5, -2.0]), tensor(&[1.0, 1.0]));
    let (mut m, mut v) = (zeros(2), zeros(2));
    let (mut wm, mut wv, mut want) = ([0.0f64; 2], [0.0f64; 2], [1.0f64; 2]);
    for step in 1..=3 {
        let adamw = AdamW {
            lr: 0.1,
            beta1: 0.9,
            beta2: 0.99,
            eps: 1e-8,
            weight_decay: 0.01,
            step,
            grad_scale: 0.5,
        };
        let update = Update { grad: &grad, m: &mut m, v: &mut v, value: &mut value };
        CPU.adamw(&adamw, &mut [update]).unwrap();
        for (i, g) in [0.25f64, -1.0].into_iter().enumerate() {
            wm[i] = 0.9 * wm[i] + 0.1 * g;
            wv[i] = 0.99 * wv[i] + 0.01 * g * g;
            let (mh, vh) = (
                wm[i] / (1.0 - 0.9f64.powi(step as i32)),
                wv[i] / (1.0 - 0.99f64.powi(step as i32)),
            );
            want[i] = want[i] * (1.0 - 0.1 * 0.01) - 0.1 * mh / (vh.sqrt() + 1e-8);
        }
    }
    assert!(
        host(&value).iter().zip(want).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-5),
        "{:?} {want:?}",
        host(&value)
    );
}

#[test]
fn small_vector_operations() {
    let (mut x, mut y) = (tensor(&[1.0, 2.0, 3.0]), tensor(&[6.0, 7.0, 16.0]));
    assert_eq!(CPU.sum_of_squares(&[&x, &y]).unwrap(), 14.0 + 36.0 + 49.0 + 256.0);
    CPU.clear(2, &mut y).unwrap();
    assert_eq!(host(&y), [0.0, 0.0, 16.0]);
    CPU.clear_all(&mut [&mut x, &mut y]).unwrap();
    assert_eq!((host(&x), host(&y)), (vec![0.0; 3], vec![0.0; 3]));
    let mut out = zeros(4);
    CPU.gather(2, 2, &tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), &vec![2, 0], &mut out).unwrap();
    assert_eq!(host(&out), [5.0, 6.0, 1.0, 2.0]);
}
