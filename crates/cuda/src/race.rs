//! The library's algorithms and our kernels, each timed on a product in fp8: for `gpu_bench`, which
//! prints what the choice between them rests on.

use catamount_model::{Affine, Memory, Result, Shape};
use cudarc::driver::{result, sys};

use crate::choice::Algorithm;
use crate::cuda::{Cuda, long_enough};
use crate::device::{Device, Explain};
use crate::fp8::Way;
use crate::matmul::{Matrix, Product};
use crate::plan::Plan;
use crate::profile::Timer;
use crate::tensor::CudaTensor;
use crate::turn::Ready;

/// How one algorithm did.
pub struct Raced {
    /// `library`, or how our kernels cut the product up.
    pub name: String,
    /// Of one product, among others with other weights, as a recording.
    pub seconds: f64,
    /// The largest difference to the library's result, of its largest number.
    pub error: f64,
    /// Whether running it again, and ours for the first row alone, gave the same bits.
    pub repeats: bool,
}

/// Products in fp8 that are raced.
pub struct Race<'a> {
    /// Rows of `x` that are multiplied.
    pub rows: usize,
    /// Of each matrix.
    pub shape: Shape,
    /// Several matrices, one after the other.
    pub weights: &'a CudaTensor,
    /// What each of them is multiplied with.
    pub x: &'a CudaTensor,
}

/// Recordings of each algorithm that are timed, and how often each goes through the matrices.
const ROUNDS: usize = 3;
const PASSES: usize = 4;

/// A run of an algorithm.
#[derive(Clone, Copy, PartialEq)]
enum Run {
    Timed,
    Again,
    FirstRow,
}

impl Cuda {
    /// Times the library's fastest algorithm, then those of our kernels that could be faster.
    pub fn race(&self, race: &Race<'_>, y: &mut CudaTensor) -> Result<Vec<Raced>> {
        let (candidates, plan) = {
            let turn = self.turn()?;
            let (products, _) = self.products(&turn, race, y)?;
            let matmul = &turn.state().matmul;
            let plan = Plan::new(&products[0]).map_err(|e| products[0].failed("describing", e))?;
            let all = matmul.candidates(&self.device, &products[0], &plan, true)?;
            let (library, ours): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|a| matches!(a, Algorithm::Library(_)));
            let fastest = matmul.fastest(self.tools(), &products[0], &plan, &library)?;
            let library = fastest.or(library.first().copied());
            (library.into_iter().chain(ours).collect::<Vec<_>>(), plan)
        };
        let mut reference = Vec::new();
        let alone = |a| self.run_alone(race, y, &plan, a, &mut reference);
        candidates.iter().map(alone).collect()
    }

    fn run_alone(
        &self,
        race: &Race<'_>,
        y: &mut CudaTensor,
        plan: &Plan,
        algorithm: &Algorithm,
        reference: &mut Vec<f32>,
    ) -> Result<Raced> {
        let (len, outputs) = (race.rows * race.shape.outputs, race.shape.outputs);
        let (name, runs): (_, &[Run]) = match algorithm {
            Algorithm::Library(_) => ("library".into(), &[Run::Timed, Run::Again]),
            Algorithm::Ours(cut) => (cut.name(), &[Run::Timed, Run::Again, Run::FirstRow]),
        };
        let (mut seconds, mut repeats, mut first) = (f64::NAN, true, Vec::new());
        for &run in runs {
            self.upload(&vec![777.0; len], y, 0)?;
            {
                let turn = self.turn()?;
                let (products, one) = self.products(&turn, race, y)?;
                let matmul = &turn.state().matmul;
                let work = |p: &Product| matmul.launch(self.tools(), p, plan, algorithm);
                if run == Run::Timed {
                    seconds = time(&self.device, &products, work)?;
                }
                work(if run == Run::FirstRow { &one } else { &products[0] })?;
            }
            let mut host = vec![0.0; len];
            self.download(y, 0, &mut host)?;
            if first.is_empty() {
                first.clone_from(&host);
            }
            let compared = if run == Run::FirstRow { outputs } else { len };
            let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
            repeats &= first[..compared].iter().zip(&host).all(same);
        }
        if reference.is_empty() {
            reference.clone_from(&first);
        }
        let top = reference.iter().fold(0f32, |top, r| top.max(r.abs()));
        let off = reference.iter().zip(&first);
        let off = off.map(|(r, y)| if y.is_finite() { (r - y).abs() } else { f32::INFINITY });
        let error = f64::from(off.fold(0f32, f32::max) / top);
        Ok(Raced { name, seconds, error, repeats })
    }

    /// The product with each of the matrices, and that of the first row alone with the first.
    fn products(
        &self,
        turn: &Ready<'_>,
        race: &Race<'_>,
        y: &mut CudaTensor,
    ) -> Result<(Vec<Product>, Product)> {
        let &Race { rows, shape: Shape { outputs, inputs }, weights, x } = race;
        let copies = weights.len / (outputs * inputs);
        let x = self.read(x, rows * inputs)?;
        long_enough(y.len, rows * outputs)?;
        let out = Matrix::new(y.computed(), outputs);
        let shape = Shape { outputs: outputs * copies, inputs };
        let map = Affine { shape, weight: weights, bias: None, fp8: true };
        let whole = self.fp8_product(turn, rows, map, Way::Forward, x, out)?;
        let of = |copy: usize| {
            let y = whole.y.skip(copy * outputs * inputs);
            Product { columns: outputs, y: y.scaled(y.scales.skip(copy * outputs)), ..whole }
        };
        Ok(((0..copies).map(of).collect(), Product { rows: 1, ..of(0) }))
    }
}

/// The least seconds of one of the products, recorded one after the other.
fn time(
    device: &Device,
    products: &[Product],
    work: impl Fn(&Product) -> Result<()>,
) -> Result<f64> {
    let timer = Timer::new()?;
    let recording =
        record(device, || (0..PASSES).try_for_each(|_| products.iter().try_for_each(&work)))?;
    let mut least = f32::INFINITY;
    for _ in 0..ROUNDS {
        timer.start(device)?;
        // SAFETY: instantiated below and not yet destroyed; its buffers are the caller's.
        unsafe { result::graph::launch(recording, device.stream) }
            .explain("launching a recording")?;
        least = least.min(timer.stop(device)?);
    }
    // SAFETY: as above; destroyed once.
    unsafe { result::graph::exec_destroy(recording) }.explain("ending a recording")?;
    Ok(f64::from(least) / 1e3 / (PASSES * products.len()) as f64)
}

fn record(device: &Device, body: impl FnOnce() -> Result<()>) -> Result<sys::CUgraphExec> {
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream is this device's, and the caller has the turn.
    unsafe { result::stream::begin_capture(device.stream, mode) }
        .explain("starting a recording")?;
    let ran = body();
    // SAFETY: started above; the executable form does not need the graph.
    unsafe {
        let graph = result::stream::end_capture(device.stream).explain("ending a recording")?;
        ran?;
        let executable = result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0))
            .explain("preparing a recording");
        let _ = result::graph::destroy(graph);
        executable
    }
}
