//! The GPU as a backend: what it holds, and how its operations reach for buffers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use catamount_model::{Error, Result};
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use crate::address::{Address, Computed};
use crate::device::{Buffer, Device};
use crate::head::Remembered;
use crate::kernels::{Kernels, RANDOMIZE};
use crate::launch::{Grid, Kernel, Parameters};
use crate::matmul::{Matmul, Product, Tools, WORKSPACE};
use crate::pending::Pending;
use crate::profile::Profile;
use crate::side::Queue;
use crate::staging::Staging;
use crate::tensor::{CudaIndex, CudaTensor, Format};
use crate::turn::{Live, Ready};

const COUNTERS: usize = 16_384;

/// The precision of activations and of the weights that products read. Sums are always f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// What training and sampling use.
    Bf16,
    /// Slow and exact: for comparison with the processor.
    F32,
}

/// One NVIDIA GPU. Rows of a result depend on their own inputs alone, given the same batch shape:
/// another shape may be computed by another algorithm, with different rounding.
pub struct Cuda {
    pub(crate) device: Arc<Device>,
    pub(crate) precision: Precision,
    kernels: Kernels,
    workspace: Buffer,
    /// Zeros between kernels: blocks count themselves here to find out which finishes last.
    counters: Buffer,
    state: ReentrantMutex<RefCell<State>>,
}

/// What operations share; whoever holds the turn uses it.
pub(crate) struct State {
    pub matmul: Matmul,
    scratch: HashMap<&'static str, Buffer>,
    pub staging: Staging,
    pub logits: Option<Remembered>,
    pub profile: Option<Profile>,
    pub pending: Option<Pending>,
    /// The buffers that work left on a side reads.
    pub read_beside: [u64; 3],
    /// Whether there is a turn that can queue.
    pub live: Live,
}

/// Fails where there is no driver.
fn driver() -> Result<()> {
    // SAFETY: only asks whether the library can be loaded.
    if unsafe { cudarc::driver::sys::is_culib_present() } {
        return Ok(());
    }
    Err(Error::Device(
        "no NVIDIA driver (libcuda.so) on this machine; install the driver, version 525 or newer, \
         or use the processor"
            .into(),
    ))
}

impl Cuda {
    /// Opens GPU `ordinal` in bf16. The error says which library is missing or too old, and what to
    /// install.
    pub fn new(ordinal: usize) -> Result<Self> {
        Self::with_precision(ordinal, Precision::Bf16)
    }

    /// Whether this machine seems to have a GPU, usable or not: the driver's library is there, or
    /// the kernel's part of the driver is.
    pub fn is_expected() -> bool {
        // SAFETY: only asks whether the library can be loaded.
        let library = unsafe { cudarc::driver::sys::is_culib_present() };
        library || ["/dev/nvidia0", "/dev/nvidiactl"].iter().any(|node| Path::new(node).exists())
    }

    /// How many GPUs there are.
    pub fn count() -> Result<usize> {
        driver()?;
        Device::count()
    }

    /// Bytes of memory of each of them.
    pub fn memories() -> Result<Vec<u64>> {
        driver()?;
        Device::memories()
    }

    /// Opens GPU `ordinal`.
    pub fn with_precision(ordinal: usize, precision: Precision) -> Result<Self> {
        driver()?;
        let device = Device::new(ordinal as i32)?;
        let matmul = Matmul::new(&device)?;
        let kernels = Kernels::load(&device, precision == Precision::Bf16)?;
        let workspace = Buffer::new(&device, WORKSPACE)?;
        let counters = Buffer::zeros(&device, 4 * COUNTERS)?;
        let state = State {
            matmul,
            scratch: HashMap::new(),
            staging: Staging::new()?,
            logits: None,
            profile: None,
            pending: None,
            read_beside: [0; 3],
            live: Live::default(),
        };
        Ok(Cuda {
            device,
            precision,
            kernels,
            workspace,
            counters,
            state: ReentrantMutex::new(RefCell::new(state)),
        })
    }

    /// Fills a tensor with normal numbers made on the device: weights for measurements, too large
    /// to come from the host.
    pub fn randomize(&self, to: &mut CudaTensor, std: f32, key: u64) -> Result<()> {
        let turn = self.turn()?;
        if to.working.is_some() {
            return Err(Error::Input(
                "only tensors without a master copy can be randomized on the device".into(),
            ));
        }
        let (len, pointer) = (to.len, self.write(to, to.len)?);
        self.launch(&turn, RANDOMIZE, len.div_ceil(256), 256, (len as u64, key, std, pointer))
    }

    /// Waits for everything queued so far.
    pub fn synchronize(&self) -> Result<()> {
        let _turn = self.turn()?;
        self.device.synchronize()
    }

    /// Bytes of device memory that are free, and in all.
    pub fn memory(&self) -> Result<(u64, u64)> {
        let _turn = self.turn()?;
        Ok((self.device.free(), self.device.total as u64))
    }

    pub(crate) fn lock(&self) -> ReentrantMutexGuard<'_, RefCell<State>> {
        self.state.lock()
    }

    /// The format of activations and of the weights that operations read.
    pub(crate) fn format(&self) -> Format {
        match self.precision {
            Precision::Bf16 => Format::Bf16,
            Precision::F32 => Format::F32,
        }
    }

    /// The address of at least `len` activations or weights.
    pub(crate) fn read(&self, tensor: &CudaTensor, len: usize) -> Result<Address<Computed>> {
        long_enough(tensor.len, len)?;
        let (pointer, format) = tensor.computed();
        if format != self.format() {
            return Err(Error::Input(format!(
                "a buffer of kind {format:?} where {:?} is needed",
                self.format()
            )));
        }
        Ok(pointer.cast())
    }

    /// The address of at least `len` activations, to be written.
    pub(crate) fn write(&self, tensor: &mut CudaTensor, len: usize) -> Result<Address<Computed>> {
        tensor.version += 1;
        self.read(tensor, len)
    }

    /// The address of at least `len` f32 numbers.
    pub(crate) fn read_exact(&self, tensor: &CudaTensor, len: usize) -> Result<Address<f32>> {
        long_enough(tensor.len, len)?;
        match tensor.format {
            Format::F32 => Ok(tensor.numbers.address()),
            Format::Bf16 => Err(Error::Input(
                "a bf16 buffer where f32 is needed: allocate it as Kind::Exact".into(),
            )),
            Format::Fp8 => Err(Error::Input("a matrix in fp8 where f32 is needed".into())),
        }
    }

    /// The address of at least `len` f32 numbers, to be written.
    pub(crate) fn write_exact(&self, tensor: &mut CudaTensor, len: usize) -> Result<Address<f32>> {
        tensor.version += 1;
        self.read_exact(tensor, len)
    }

    /// The address of at least `len` indices.
    pub(crate) fn index(&self, index: &CudaIndex, len: usize) -> Result<Address<u32>> {
        long_enough(index.len, len)?;
        Ok(index.numbers.address())
    }

    /// How many counters there are.
    pub(crate) fn counters(&self) -> usize {
        COUNTERS
    }

    pub(crate) fn counter_address(&self) -> Address<u32> {
        self.counters.address()
    }

    /// Scratch memory that keeps its content until the same name is asked for again.
    pub(crate) fn scratch<T>(
        &self,
        at: &dyn Queue,
        name: &'static str,
        bytes: usize,
    ) -> Result<Address<T>> {
        let mut state = at.state();
        if let Some(buffer) = state.scratch.get(name).filter(|b| b.bytes >= bytes) {
            return Ok(buffer.address());
        }
        // Given back first: the two need not fit at once. What was remembered in it is gone.
        let grown = state.scratch.remove(name).map_or(0, |b| b.bytes + b.bytes / 4);
        state.logits = None;
        let buffer = Buffer::new(&self.device, bytes.max(grown.min(bytes * 2)))?;
        let address = buffer.address();
        state.scratch.insert(name, buffer);
        Ok(address)
    }

    /// Queues a kernel over a row of blocks.
    pub(crate) fn launch<P: Parameters>(
        &self,
        at: &dyn Queue,
        kernel: Kernel<P>,
        blocks: usize,
        threads: usize,
        args: P,
    ) -> Result<()> {
        self.launch_box(at, kernel, Grid::row(blocks, threads), args)
    }

    /// Queues a kernel over a box of blocks, with shared memory.
    pub(crate) fn launch_box<P: Parameters>(
        &self,
        at: &dyn Queue,
        kernel: Kernel<P>,
        grid: Grid,
        args: P,
    ) -> Result<()> {
        let (args, count) = args.args();
        self.timed(
            at,
            || kernel.name.to_string_lossy().into_owned(),
            || self.kernels.launch(at.stream(), kernel.name, grid, &args[..count]),
        )
    }

    /// Finds the algorithm for a product that will overwrite its result.
    pub(crate) fn prepare(&self, turn: &Ready<'_>, product: &Product) -> Result<()> {
        let apart = self.without_scales(turn, product)?;
        let product = apart.as_ref().unwrap_or(product);
        turn.state().matmul.prepare(self.tools(), product)
    }

    /// What products are computed with.
    pub(crate) fn tools(&self) -> Tools<'_> {
        let workspace = self.workspace.address();
        Tools { device: &self.device, kernels: &self.kernels, workspace }
    }

    /// Queues a matrix product, on the main stream: products share a workspace.
    pub(crate) fn product(&self, turn: &Ready<'_>, product: &Product) -> Result<()> {
        let name = |p: &Product| {
            let eighth = if p.x.format == Format::Fp8 { " in fp8" } else { "" };
            format!("product [{}, {}] x [{}, {}]{eighth}", p.rows, p.inner, p.inner, p.columns)
        };
        let run = |p: &Product| {
            let work = || turn.state().matmul.run(self.tools(), p);
            self.timed(turn, || name(p), work)
        };
        match self.without_scales(turn, product)? {
            None => match run(product) {
                // What it has planned, such as a sum, the library may still refuse.
                Err(refusal) if product.is_scaled() => {
                    turn.state().matmul.refuse(product, &refusal);
                    self.product(turn, product)
                }
                ran => ran,
            },
            Some(raw) => {
                run(&raw)?;
                self.apply_scales(turn, &raw, product)
            }
        }
    }

    /// Queues `work`, timing it if a profile is being taken.
    fn timed(
        &self,
        at: &dyn Queue,
        name: impl FnOnce() -> String,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let profiling =
            at.state().profile.as_ref().map(|p| p.timer.start(&self.device)).transpose()?.is_some();
        work()?;
        if profiling && let Some(profile) = &mut at.state().profile {
            profile.stop(&self.device, &name())?;
        }
        Ok(())
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // Page-locked memory and plans are given back in this GPU's context, after what still uses
        // them.
        let _ = self
            .device
            .bind()
            .and_then(|()| self.join_loose())
            .and_then(|()| self.device.synchronize());
    }
}

/// Refuses a buffer that an operation would overrun.
pub(crate) fn long_enough(have: usize, need: usize) -> Result<()> {
    if have < need {
        return Err(Error::Input(format!(
            "a buffer of {have} elements where the operation needs {need}"
        )));
    }
    Ok(())
}

/// Threads for a row of `d` numbers, eight a thread.
pub(crate) fn row_threads(d: usize) -> usize {
    (d.div_ceil(8)).next_multiple_of(32).clamp(32, 256)
}
