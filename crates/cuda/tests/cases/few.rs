//! Products of few rows in fp8, which may have kernels of their own: sizes at the limits of what
//! these take, with and without a bias, enough inputs to be shared out; and rows alone and among
//! others.

use catamount_model::{Affine, Backend, Kind, Shape};

use super::{Bench, Results, random};

pub fn few<B: Backend>(b: &B) -> Results {
    let mut bench = Bench::new(b);
    for (n, outputs, inputs) in
        [(1, 16, 16), (3, 208, 1104), (16, 400, 384), (64, 208, 1104), (33, 1040, 2064)]
    {
        linear(&mut bench, n, Shape { outputs, inputs });
    }
    bench.results
}

fn linear<B: Backend>(t: &mut Bench<B>, n: usize, shape: Shape) {
    let Shape { outputs, inputs } = shape;
    let mut weight = t.frozen(outputs * inputs, 1);
    t.b.round_to_fp8(shape, &mut weight).unwrap();
    let (x, bias) = (t.activation(n * inputs, 2), t.frozen(outputs, 3));
    for bias in [None, Some(&bias)] {
        let map = Affine { shape, weight: &weight, bias, fp8: true };
        let mut y = t.output(n * outputs, Kind::Activation);
        t.b.linear(n, map, &x, &mut y).unwrap();
        t.keep(format!("few {n}x{inputs} to {outputs}, bias {}", bias.is_some()), &y);
    }
}

/// The first rows of 64, and alone: the same bits, if one kernel computes both.
pub fn few_alone<B: Backend>(b: &B) -> bool {
    let t = Bench::new(b);
    let (shape, inputs) = (Shape { outputs: 208, inputs: 1104 }, 1104);
    let mut weight = t.frozen(shape.outputs * inputs, 1);
    b.round_to_fp8(shape, &mut weight).unwrap();
    let x = random(64 * inputs, 2);
    let map = Affine { shape, weight: &weight, bias: None, fp8: true };
    let rows = |n: usize| {
        let x = t.tensor(&x[..n * inputs], Kind::Activation);
        let mut y = t.output(n * shape.outputs, Kind::Activation);
        b.linear(n, map, &x, &mut y).unwrap();
        t.host(&y)
    };
    let all = rows(64);
    [1, 5].into_iter().all(|n| rows(n) == all[..n * shape.outputs]) && rows(64) == all
}
