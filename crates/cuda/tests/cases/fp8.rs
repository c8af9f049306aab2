//! Products in fp8, alone and as a model calls them: with a bias, through an adapter, few rows and
//! many, and numbers that are hard to round.

use catamount_model::{Affine, Backend, Kind, Lora, Norm, Normed, Shape};

use super::{Bench, Results, random};

/// Every way through a map in fp8.
pub fn fp8<B: Backend>(b: &B) -> Results {
    let mut bench = Bench::new(b);
    for (n, outputs, inputs) in
        [(1, 16, 16), (5, 48, 32), (8, 64, 1040), (70, 96, 256), (130, 2064, 64), (600, 256, 512)]
    {
        both_ways(&mut bench, n, outputs, inputs);
    }
    steep(&mut bench);
    for n in [3, 40, 600] {
        adapted(&mut bench, n, 96, 160);
        // Wider than its input: with many rows the product adds to the adapter's part.
        adapted(&mut bench, n, 64, 224);
    }
    bench.results
}

fn matrix<B: Backend>(t: &Bench<B>, shape: Shape, values: &[f32]) -> B::Tensor {
    let mut weight = t.tensor(values, Kind::Frozen);
    t.b.round_to_fp8(shape, &mut weight).unwrap();
    weight
}

fn both_ways<B: Backend>(t: &mut Bench<B>, n: usize, outputs: usize, inputs: usize) {
    let (shape, what) = (Shape { outputs, inputs }, format!("fp8 {n}x{inputs} to {outputs}"));
    let weight = matrix(t, shape, &random(outputs * inputs, 1));
    let (x, bias) = (t.activation(n * inputs, 2), t.frozen(outputs, 3));
    for bias in [None, Some(&bias)] {
        let map = Affine { shape, weight: &weight, bias, fp8: true };
        let mut y = t.output(n * outputs, Kind::Activation);
        t.b.linear(n, map, &x, &mut y).unwrap();
        t.keep(format!("{what}, bias {}", bias.is_some()), &y);
        let (dy, mut dx) = (t.activation(n * outputs, 4), t.output(n * inputs, Kind::Activation));
        t.b.linear_backward_input(n, map, &dy, &mut dx).unwrap();
        t.keep(format!("{what}, input's gradient, bias {}", bias.is_some()), &dx);
    }
}

/// Rows of very different sizes, rows of zeros, and one number that dwarfs the others of its row,
/// which come to few steps of 2^-9. It meets zeros alone: the others are what is seen.
fn steep<B: Backend>(t: &mut Bench<B>) {
    let (n, outputs, inputs) = (24, 80, 112);
    let (shape, what) = (Shape { outputs, inputs }, "fp8, steep");
    let scaled = |rows: usize, width: usize, sixth: f32, seed| {
        let mut values = random(rows * width, seed);
        for (i, row) in values.chunks_mut(width).enumerate() {
            let size = if i % 7 == 6 { 0.0 } else { 2f32.powi(4 * (i % 7) as i32 - 14) };
            row.iter_mut().for_each(|x| *x *= size);
            row[6] *= sixth;
        }
        values
    };
    let weight = matrix(t, shape, &scaled(outputs, inputs, 0.0, 5));
    let x = t.tensor(&scaled(n, inputs, 16384.0, 6), Kind::Activation);
    let dy = t.tensor(&scaled(n, outputs, 16384.0, 7), Kind::Activation);
    let map = Affine { shape, weight: &weight, bias: None, fp8: true };
    let mut y = t.output(n * outputs, Kind::Activation);
    let mut dx = t.output(n * inputs, Kind::Activation);
    t.b.linear(n, map, &x, &mut y).unwrap();
    t.b.linear_backward_input(n, map, &dy, &mut dx).unwrap();
    // Each row for itself: the large ones would hide the others.
    for (name, values, width) in
        [("row", t.host(&y), outputs), ("input's gradient, row", t.host(&dx), inputs)]
    {
        for (i, row) in values.chunks(width).enumerate().take(7) {
            t.results.push((format!("{what}, {name} {i}"), row.to_vec()));
        }
    }
}

/// A map with an adapter, then the operation that reads its result.
fn adapted<B: Backend>(t: &mut Bench<B>, n: usize, inputs: usize, outputs: usize) {
    let (shape, rank, whole) = (Shape { outputs, inputs }, 16, 0..outputs);
    let small = |len, seed| random(len, seed).iter().map(|x| 0.125 * x).collect::<Vec<f32>>();
    let weight = matrix(t, shape, &small(outputs * inputs, 1));
    let a = t.tensor(&small(rank * inputs, 2), Kind::Trained);
    let b = t.tensor(&small(outputs * rank, 3), Kind::Trained);
    let (parts, dropout) = (std::slice::from_ref(&whole), None);
    let lora = Lora { a: &a, b: &b, rank, scale: 2.0, inputs, outputs, parts, dropout };
    let map = Affine { shape, weight: &weight, bias: None, fp8: true };
    let (x, stream, scale) =
        (t.activation(n * inputs, 4), t.activation(n * outputs, 5), t.frozen(outputs, 6));
    let mut inner = t.output(n * rank, Kind::Activation);
    let mut y = t.output(n * outputs, Kind::Activation);
    t.b.linear(n, map, &x, &mut y).unwrap();
    t.b.lora(n, &lora, &x, &mut inner, &mut y).unwrap();
    let (mut sum, mut rstd) = (t.output(n * outputs, Kind::Activation), t.output(n, Kind::Exact));
    let mut out = t.output(n * outputs, Kind::Activation);
    let norm = Norm { d: outputs, eps: 1e-5, weight: &scale };
    let normed = Normed { rstd: &mut rstd, out: &mut out };
    t.b.add_rms_norm(n, norm, &stream, &y, &mut sum, normed).unwrap();
    let what = format!("fp8 adapted {n}x{inputs} to {outputs}");
    t.keep(format!("{what}: norm"), &out);
    t.keep(format!("{what}: its input"), &y);
    let (dy, mut dx) = (t.activation(n * outputs, 7), t.output(n * inputs, Kind::Activation));
    let (mut da, mut db) = (t.exact(rank * inputs, 8), t.exact(outputs * rank, 9));
    t.b.linear_backward_input(n, map, &dy, &mut dx).unwrap();
    let gradients = catamount_model::LoraGradients { da: &mut da, db: &mut db };
    let kept = catamount_model::Inner { x: &x, t: &inner };
    t.b.lora_backward(n, &lora, kept, &dy, &mut dx, gradients).unwrap();
    t.keep(format!("{what}: input's gradient"), &dx);
    t.keep(format!("{what}: A's gradient"), &da);
    t.keep(format!("{what}: B's gradient"), &db);
}
