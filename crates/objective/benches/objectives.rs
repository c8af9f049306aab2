//! One trace of five steps at N = 256, and one epoch of the paper (40,660 traces, mean length
//! 1.87), on one core.

use std::hint::black_box;

use catamount_objective::{Objective, Surrogate};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// Traces with the paper's mean length and ordinary probabilities, from a small linear congruential
/// generator.
fn epoch() -> Vec<Vec<f64>> {
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    (0..40_660)
        .map(|_| {
            let mut length = 1;
            while length < 20 && uniform() < 0.465 {
                length += 1;
            }
            (0..length).map(|_| 2.0 * uniform().ln()).collect()
        })
        .collect()
}

fn objectives(c: &mut Criterion) {
    let trace = [-0.7, -2.3, -0.1, -4.0, -1.2];
    let mut group = c.benchmark_group("trace of 5 steps, N = 256");
    for objective in Objective::ALL {
        let surrogate = Surrogate::new(objective, 256);
        group.bench_function(BenchmarkId::from_parameter(objective), |b| {
            b.iter(|| surrogate.weigh(black_box(&trace)))
        });
    }
    group.finish();

    let epoch = epoch();
    let traces: Vec<&[f64]> = epoch.iter().map(Vec::as_slice).collect();
    let mut group = c.benchmark_group("epoch of 40,660 traces, N = 256");
    group.sample_size(10);
    for objective in Objective::ALL {
        let surrogate = Surrogate::new(objective, 256);
        group.bench_function(BenchmarkId::from_parameter(objective), |b| {
            b.iter(|| {
                surrogate
                    .weigh_all(&traces)
                    .into_iter()
                    .map(|weighed| weighed.unwrap().weights[0])
                    .sum::<f64>()
            })
        });
    }
    group.finish();
}

criterion_group!(benches, objectives);
criterion_main!(benches);
