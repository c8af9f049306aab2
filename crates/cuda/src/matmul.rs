//! Matrix products by cuBLASLt, or of few rows in fp8 by kernels of our own (`few.rs`). What suits
//! a shape is found out once: the library names candidates, the first of which is its guess; those
//! of products that wait for memory are timed, ours among them, and the fastest is noted for later
//! processes (`choice.rs`).

use std::collections::{BTreeSet, HashMap};
use std::ffi::c_void;

use catamount_model::{Error, Result};
use cudarc::cublaslt::{result, sys};
use cudarc::driver::result as driver;

use crate::address::{Address, Computed};
use crate::choice::{Algorithm, Choices};
use crate::device::{Device, Explain};
use crate::few::Cut;
use crate::kernels::Kernels;
use crate::plan::{Plan, Shape};
use crate::profile::Timer;
use crate::tensor::Format;

/// A row-major matrix in device memory, as one operand of a product.
#[derive(Clone, Copy)]
pub(crate) struct Matrix {
    pub address: Address<Computed>,
    pub format: Format,
    /// Elements from one row to the next.
    pub stride: usize,
    /// Whether the product takes it transposed.
    pub transposed: bool,
    /// Of a matrix in fp8, what each line along the inner dimension is multiplied by; null where
    /// that is left to others.
    pub scales: Address<f32>,
}

impl Matrix {
    pub fn new<T>((address, format): (Address<T>, Format), stride: usize) -> Self {
        Matrix { address: address.cast(), format, stride, transposed: false, scales: Address::NULL }
    }

    pub fn transposed(self) -> Self {
        Matrix { transposed: !self.transposed, ..self }
    }

    /// The same, with its scales.
    pub fn scaled(self, scales: Address<f32>) -> Self {
        Matrix { scales, ..self }
    }

    /// The matrix that starts `elements` further on.
    pub fn skip(self, elements: usize) -> Self {
        Matrix { address: self.address.skip_bytes(elements * self.format.bytes()), ..self }
    }
}

/// `out = alpha * x y + beta * out (+ bias)`, where x is `[rows, inner]` and y `[inner, columns]`
/// after transposition.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub rows: usize,
    pub columns: usize,
    pub inner: usize,
    pub x: Matrix,
    pub y: Matrix,
    pub out: Matrix,
    pub alpha: f32,
    pub beta: f32,
    /// A row that is added to every row of the result, in the format of `y`; in bf16 where that is
    /// fp8.
    pub bias: Option<Address<Computed>>,
    /// Whether products in fp8 may be summed in the tensor cores' own few bits more, which is
    /// quicker.
    pub fast: bool,
}

/// What products are computed with.
#[derive(Clone, Copy)]
pub(crate) struct Tools<'a> {
    pub device: &'a Device,
    pub kernels: &'a Kernels,
    pub workspace: Address<u8>,
}

pub(crate) struct Matmul {
    handle: sys::cublasLtHandle_t,
    plans: HashMap<Shape, (Plan, Algorithm)>,
    choices: Choices,
    /// For products in fp8 whose result the library does not scale, what it said.
    refused: HashMap<Shape, String>,
    /// Whether it is not asked to.
    pub apart: bool,
    /// The cut that every product takes that can, if one is to be tried out.
    pub tried: Option<Cut>,
}

// SAFETY: the handle may be used from any thread, one at a time: the owner is behind a lock.
unsafe impl Send for Matmul {}

/// Scratch memory that algorithms may use; larger than the cache of any GPU, which timing relies
/// on.
pub(crate) const WORKSPACE: usize = 128 << 20;

/// Plans kept before starting over: packed batches have many different lengths.
const PLANS: usize = 8192;
/// Candidates that are timed, and how often each.
const CANDIDATES: usize = 40;
const ROUNDS: usize = 3;
/// Only products of few rows are timed, whose weights are large: they wait for memory, of which the
/// library's guesses take little account. The speed of the others depends on how warm the GPU is,
/// more than on the choice.
const FEW: usize = 256;
const LARGE: usize = 4 << 20;

impl Matmul {
    pub fn new(device: &Device) -> Result<Self> {
        // SAFETY: only asks whether the library can be loaded.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::Device(
                "cuBLASLt (libcublasLt.so) is not on the loader's path; install the CUDA toolkit \
                 12 or 13, or \
                 `pip install nvidia-cublas` and put its lib folder on LD_LIBRARY_PATH"
                    .into(),
            ));
        }
        let handle = result::create_handle()
            .map_err(|e| Error::Device(format!("starting cuBLASLt: {:?}", e.0)))?;
        // SAFETY: the library is loaded.
        let version = unsafe { sys::cublasLtGetVersion() };
        Ok(Matmul {
            handle,
            plans: HashMap::new(),
            choices: Choices::open(device, version),
            refused: HashMap::new(),
            apart: false,
            tried: None,
        })
    }

    /// Whether the result of a product comes multiplied by its operands' scales: the library does
    /// that on some GPUs, in some versions.
    pub fn applies_scales(&mut self, tools: Tools<'_>, p: &Product) -> bool {
        if self.apart || self.refused.contains_key(&Shape::of(p)) {
            return false;
        }
        let planned = self.prepare(tools, p);
        planned.map_err(|refusal| self.refuse(p, &refusal)).is_ok()
    }

    /// Has every shape planned anew.
    pub fn forget_plans(&mut self) {
        self.plans.clear();
    }

    /// Notes that the library does not.
    pub fn refuse(&mut self, p: &Product, refusal: &Error) {
        if self.refused.len() >= PLANS {
            self.refused.clear();
        }
        self.refused.insert(Shape::of(p), refusal.to_string());
    }

    /// How the products in fp8 that were met are scaled.
    pub fn scaling(&self) -> Vec<String> {
        let refused = |shape: &&Shape| self.refused.contains_key(shape);
        let scaled = self.plans.iter().filter(|(s, _)| s.is_scaled() && !refused(s));
        let scaled = scaled.map(|(shape, (_, algorithm))| match algorithm {
            Algorithm::Library(_) => format!("{}: scaled by cuBLASLt", shape.bucket()),
            Algorithm::Ours(cut) => format!("{}: by our kernel {}", shape.bucket(), cut.name()),
        });
        let refused = self.refused.iter();
        let afterwards = refused
            .map(|(shape, refusal)| format!("{}: scaled afterwards ({refusal})", shape.bucket()));
        let lines: BTreeSet<String> = scaled.chain(afterwards).collect();
        lines.into_iter().collect()
    }

    /// Finds the algorithm for a product of this shape, unless it is known. What `out` holds is
    /// lost if the product overwrites it anyway: candidates are timed on the real operands.
    pub fn prepare(&mut self, tools: Tools<'_>, p: &Product) -> Result<()> {
        let shape = Shape::of(p);
        if p.rows == 0 || p.columns == 0 || self.plans.contains_key(&shape) {
            return Ok(());
        }
        if self.plans.len() >= PLANS {
            self.plans.clear();
        }
        let key = shape.bucket();
        let (plan, device) = (Plan::new(p).map_err(|e| p.failed("describing", e))?, tools.device);
        let usable = |algorithm: &Algorithm| match algorithm {
            Algorithm::Library(library) => plan.accepts(self.handle, library),
            Algorithm::Ours(_) => Cut::fit(device, p),
        };
        let tried = self.tried.map(Algorithm::Ours);
        let known = tried.or(self.choices.get(&key)).filter(usable);
        let waits = p.rows <= FEW && p.columns * p.inner >= LARGE;
        // Without a place for notes, what takes no timing.
        let untimed = || {
            let cut = Cut::untimed(device, p).filter(|_| waits && !self.choices.timed());
            cut.map(Algorithm::Ours)
        };
        let algorithm = match known.or_else(untimed) {
            Some(algorithm) => algorithm,
            None => {
                let timed =
                    waits && p.beta == 0.0 && self.choices.timed() && !device.is_recording();
                let candidates = self.candidates(device, p, &plan, timed)?;
                match self.fastest(tools, p, &plan, &candidates)? {
                    // What is noted under this name need not be able to compute this product.
                    Some(fastest) => {
                        Some(self.choices.note(&key, fastest)).filter(usable).unwrap_or(fastest)
                    }
                    None => candidates[0],
                }
            }
        };
        self.plans.insert(shape, (plan, algorithm));
        Ok(())
    }

    /// What could compute a product, at least one: the library's guess, and if they are to be
    /// timed, its other candidates and ours.
    pub fn candidates(
        &self,
        device: &Device,
        p: &Product,
        plan: &Plan,
        timed: bool,
    ) -> Result<Vec<Algorithm>> {
        let ours = if timed { Cut::candidates(device, p) } else { Vec::new() };
        let library = match plan.candidates(self.handle, p, if timed { CANDIDATES } else { 1 }) {
            // Some versions cannot scale.
            Err(_) if !ours.is_empty() => Vec::new(),
            found => found.map_err(|e| p.failed("planning", e))?,
        };
        let library = library.into_iter().map(Algorithm::Library);
        Ok(library.chain(ours.into_iter().map(Algorithm::Ours)).collect())
    }

    pub fn run(&mut self, tools: Tools<'_>, p: &Product) -> Result<()> {
        if p.rows == 0 || p.columns == 0 {
            return Ok(());
        }
        self.prepare(tools, p)?;
        let (plan, algorithm) = &self.plans[&Shape::of(p)];
        self.launch(tools, p, plan, algorithm).map_err(|e| {
            // If the GPU is lost, the driver says so more clearly.
            tools.device.synchronize().err().unwrap_or(e)
        })
    }

    /// The fastest of several algorithms, each timed a few times in turn with the operands out of
    /// the cache, as they are in a pass over a large model. The first stays unless another is
    /// clearly faster.
    pub fn fastest(
        &self,
        tools: Tools<'_>,
        p: &Product,
        plan: &Plan,
        candidates: &[Algorithm],
    ) -> Result<Option<Algorithm>> {
        if candidates.len() < 2 {
            return Ok(None);
        }
        let Tools { device, workspace, .. } = tools;
        let timer = Timer::new()?;
        let mut best = vec![f32::INFINITY; candidates.len()];
        for round in 0..=ROUNDS {
            for (algorithm, best) in candidates.iter().zip(&mut best) {
                // SAFETY: the workspace is that large, and between two products nothing in it is
                // needed.
                unsafe { driver::memset_d8_async(workspace.raw(), 0, WORKSPACE, device.stream) }
                    .explain("clearing memory")?;
                timer.start(device)?;
                let launched = self.launch(tools, p, plan, algorithm);
                let elapsed = timer.stop(device)?;
                // The first round loads the kernels.
                if launched.is_ok() && round > 0 {
                    *best = best.min(elapsed);
                }
            }
        }
        let fastest = (0..best.len()).min_by(|&i, &j| best[i].total_cmp(&best[j])).unwrap_or(0);
        Ok(Some(candidates[if best[fastest] < 0.985 * best[0] { fastest } else { 0 }]))
    }

    /// Queues a product that was planned in this way.
    pub fn launch(
        &self,
        Tools { device, kernels, workspace }: Tools<'_>,
        p: &Product,
        plan: &Plan,
        algorithm: &Algorithm,
    ) -> Result<()> {
        match algorithm {
            Algorithm::Ours(cut) => cut.launch(device, kernels, p),
            Algorithm::Library(library) => self
                .ask_library(device, workspace, p, plan, library)
                .map_err(|e| p.failed("queueing", e)),
        }
    }

    fn ask_library(
        &self,
        device: &Device,
        workspace: Address<u8>,
        p: &Product,
        plan: &Plan,
        algorithm: &sys::cublasLtMatmulAlgo_t,
    ) -> std::result::Result<(), result::CublasError> {
        // SAFETY: the operands were checked by the caller to lie inside their buffers; the plan
        // matches their layout.
        unsafe {
            if let Some(bias) = p.bias.map(Address::raw) {
                plan.set(
                    sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                    &bias,
                )?;
            }
            plan.point_to_scales(p)?;
            let [y, x, out] = plan.layouts;
            let at = |m: &Matrix| m.address.raw() as *const c_void;
            result::matmul(
                self.handle,
                plan.description,
                (&raw const p.alpha).cast(),
                (&raw const p.beta).cast(),
                at(&p.y),
                y,
                at(&p.x),
                x,
                at(&p.out),
                out,
                p.out.address.raw() as *mut c_void,
                out,
                algorithm,
                workspace.raw() as *mut c_void,
                WORKSPACE,
                device.stream.cast(),
            )
        }
    }
}

impl Product {
    /// `out = x y`, with `[rows, columns, inner]`.
    pub fn of([rows, columns, inner]: [usize; 3], x: Matrix, y: Matrix, out: Matrix) -> Self {
        Product { rows, columns, inner, x, y, out, alpha: 1.0, beta: 0.0, bias: None, fast: false }
    }

    /// Whether its operands have scales, which both or none have.
    pub fn is_scaled(&self) -> bool {
        !self.x.scales.is_null()
    }

    pub fn failed(&self, what: &str, e: result::CublasError) -> Error {
        let (rows, columns, inner) = (self.rows, self.columns, self.inner);
        Error::Device(format!(
            "cuBLASLt, {what} a product of [{rows}, {inner}] and [{inner}, {columns}]: {:?} ({})",
            e.0,
            Shape::of(self).bucket()
        ))
    }
}

impl Drop for Matmul {
    fn drop(&mut self) {
        self.plans.clear();
        // SAFETY: created by `new`, destroyed once.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}
