//! Every operation, forward and backward, on random inputs: run on two backends, then compared.

mod adapted;
mod few;
mod fp8;
mod network;
mod operations;
mod sampling;
mod tally;

use catamount_model::{Backend, Kind};
use catamount_search::Stream;

pub use adapted::adapted;
pub use few::{few, few_alone};
pub use fp8::fp8;
pub use network::{adapter_training, recording, training};
pub use operations::operations;
pub use sampling::sampling;
pub use tally::Tally;

/// Named results of a run.
pub type Results = Vec<(String, Vec<f32>)>;

/// Uniform numbers in -1..1, with only as many bits as bf16 keeps, so that both precisions start
/// from the same numbers.
pub fn random(len: usize, seed: u64) -> Vec<f32> {
    let stream = Stream::new(seed);
    (0..len as u64).map(|i| half::bf16::from_f64(2.0 * stream.uniform(i) - 1.0).to_f32()).collect()
}

/// Random indices below `most`.
pub fn random_indices(len: usize, most: usize, seed: u64) -> Vec<u32> {
    let stream = Stream::new(seed);
    (0..len as u64).map(|i| (stream.uniform(i) * most as f64) as u32).collect()
}

/// A backend and what the cases need of it.
pub struct Bench<'a, B: Backend> {
    pub b: &'a B,
    pub results: Results,
}

impl<'a, B: Backend> Bench<'a, B> {
    pub fn new(b: &'a B) -> Self {
        Bench { b, results: Vec::new() }
    }

    pub fn tensor(&self, values: &[f32], kind: Kind) -> B::Tensor {
        let mut t = self.b.zeros(values.len(), kind).unwrap();
        self.b.upload(values, &mut t, 0).unwrap();
        t
    }

    pub fn activation(&self, len: usize, seed: u64) -> B::Tensor {
        self.tensor(&random(len, seed), Kind::Activation)
    }

    pub fn frozen(&self, len: usize, seed: u64) -> B::Tensor {
        self.tensor(&random(len, seed), Kind::Frozen)
    }

    pub fn exact(&self, len: usize, seed: u64) -> B::Tensor {
        self.tensor(&random(len, seed), Kind::Exact)
    }

    /// An output full of numbers that must all be overwritten.
    pub fn output(&self, len: usize, kind: Kind) -> B::Tensor {
        self.tensor(&vec![777.0; len], kind)
    }

    pub fn index(&self, values: &[u32]) -> B::Index {
        let mut index = self.b.indices(values.len()).unwrap();
        self.b.upload_indices(values, &mut index).unwrap();
        index
    }

    pub fn host(&self, t: &B::Tensor) -> Vec<f32> {
        let mut out = vec![0.0; self.b.len(t)];
        self.b.download(t, 0, &mut out).unwrap();
        out
    }

    pub fn keep(&mut self, name: impl Into<String>, t: &B::Tensor) {
        let host = self.host(t);
        self.results.push((name.into(), host));
    }
}

/// One comparison: the relative error in the Euclidean norm.
pub struct Compared {
    pub name: String,
    pub error: f64,
}

/// Compares two runs; a NaN or a missing result counts as an infinite error.
pub fn compare(reference: &Results, got: &Results) -> Vec<Compared> {
    assert_eq!(reference.len(), got.len(), "both runs give the same results");
    reference
        .iter()
        .zip(got)
        .map(|((name, r), (other, g))| {
            assert_eq!((name, r.len()), (other, g.len()));
            let square = |x: &mut dyn Iterator<Item = f64>| x.map(|v| v * v).sum::<f64>().sqrt();
            let off = square(&mut r.iter().zip(g).map(|(r, g)| f64::from(*r) - f64::from(*g)));
            let size = square(&mut r.iter().map(|r| f64::from(*r)));
            let error = off / size.max(1e-30);
            Compared {
                name: name.clone(),
                error: if error.is_finite() { error } else { f64::INFINITY },
            }
        })
        .collect()
}
