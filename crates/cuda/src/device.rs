//! One GPU: its context, its stream, its memory.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use catamount_model::{Error, Result};
use cudarc::driver::{DriverError, result, sys};
use parking_lot::Mutex;

use crate::address::Address;
use crate::graph::Graphs;
use crate::side::Side;

/// Turns the driver's answer into an error that says what was being done.
pub(crate) trait Explain<T> {
    fn explain(self, doing: &str) -> Result<T>;
}

impl<T> Explain<T> for std::result::Result<T, DriverError> {
    fn explain(self, doing: &str) -> Result<T> {
        self.map_err(|e| {
            let advice = match e.0 {
                sys::CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE => {
                    "; another process may hold the \
                 GPU exclusively"
                }
                sys::CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => "; update the NVIDIA driver",
                sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
                | sys::CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
                | sys::CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
                | sys::CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
                | sys::CUresult::CUDA_ERROR_LAUNCH_FAILED
                | sys::CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
                | sys::CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
                | sys::CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
                | sys::CUresult::CUDA_ERROR_UNKNOWN => {
                    "; the GPU is lost to this process: start it again, it resumes from its last \
                     checkpoint"
                }
                _ => "",
            };
            let name = e.error_name().ok().and_then(|n| n.to_str().ok()).unwrap_or("unknown error");
            Error::Device(format!("{doing}: {name}{advice}"))
        })
    }
}

/// Devices that this process has open; the same card counts once for each that has it open.
static OPEN: AtomicUsize = AtomicUsize::new(0);

pub(crate) struct Device {
    pub ordinal: i32,
    pub name: String,
    pub capability: (i32, i32),
    /// Multiprocessors.
    pub processors: usize,
    pub total: usize,
    handle: sys::CUdevice,
    context: sys::CUcontext,
    pub stream: sys::CUstream,
    /// Where work runs beside the stream's.
    sides: [sys::CUstream; 2],
    /// The points where a side leaves the stream, and where each is waited for.
    fork: sys::CUevent,
    joins: [sys::CUevent; 2],
    /// What a thread sleeps for.
    idle: sys::CUevent,
    next: AtomicU64,
    /// Whether the stream is recording a graph; allocations and copies to the host cannot be part
    /// of one.
    pub recording: AtomicBool,
    /// Whether operations wait to be launched together; their buffers must not go away before.
    pub pending: AtomicBool,
    /// Whether work was left on a side that nothing waits for yet; its buffers must not go away
    /// before.
    pub loose: AtomicBool,
    /// The buffers that the graph being recorded uses.
    pub touched: Mutex<HashSet<u64>>,
    /// Buffers given back while recording or while operations wait; freed afterwards.
    deferred: Mutex<Vec<sys::CUdeviceptr>>,
    pub graphs: Mutex<Graphs>,
}

// SAFETY: the driver's handles may be used from any thread; `bind` makes the context current there
// first.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// How many the driver shows.
    pub fn count() -> Result<usize> {
        result::init().explain("starting the NVIDIA driver")?;
        let count = result::device::get_count().explain("counting GPUs")?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Bytes of memory of each GPU.
    pub fn memories() -> Result<Vec<u64>> {
        let of = |ordinal| -> Result<u64> {
            let handle = result::device::get(ordinal).explain("opening the GPU")?;
            // SAFETY: `handle` is a device of this driver.
            let total = unsafe { result::device::total_mem(handle) };
            Ok(total.explain("reading the GPU's memory")? as u64)
        };
        (0..Device::count()? as i32).map(of).collect()
    }

    pub fn new(ordinal: i32) -> Result<Arc<Self>> {
        let count = Device::count()?;
        if ordinal < 0 || ordinal as usize >= count {
            return Err(Error::Device(format!(
                "there is no GPU {ordinal}: the driver shows {count} (see nvidia-smi)"
            )));
        }
        let handle = result::device::get(ordinal).explain("opening the GPU")?;
        let name = result::device::get_name(handle).explain("reading the GPU's name")?;
        let attribute = |a| {
            // SAFETY: `handle` is a device of this driver.
            unsafe { result::device::get_attribute(handle, a) }
                .explain("reading the GPU's attributes")
        };
        use sys::CUdevice_attribute as A;
        let capability = (
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        if capability < (8, 0) {
            let (major, minor) = capability;
            return Err(Error::Device(format!(
                "{name} has compute capability {major}.{minor}; bf16 tensor cores need 8.0 \
                 (Ampere) or newer"
            )));
        }
        let processors = attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as usize;
        if attribute(A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 0 {
            return Err(Error::Device(format!(
                "{name} has no memory pools under this driver; update the NVIDIA driver"
            )));
        }
        // SAFETY: `handle` is a device of this driver; the context is released once, on drop.
        unsafe {
            let total = result::device::total_mem(handle).explain("reading the GPU's memory")?;
            let context =
                result::primary_ctx::retain(handle).explain("opening a context on the GPU")?;
            result::ctx::set_current(context).explain("using the GPU's context")?;
            let (least, greatest) =
                result::stream::get_priority_range().explain("reading the GPU's attributes")?;
            let create = |priority| {
                result::stream::create_with_priority(
                    result::stream::StreamKind::NonBlocking,
                    priority,
                )
                .explain("creating a stream")
            };
            let (stream, sides) =
                (create(least.midpoint(greatest))?, [create(greatest)?, create(least)?]);
            let event = || {
                result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
                    .explain("creating an event")
            };
            let (fork, joins) = (event()?, [event()?, event()?]);
            let idle = result::event::create(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC)
                .explain("creating an event")?;
            let pool =
                result::device::get_default_mem_pool(handle).explain("finding the memory pool")?;
            let mut keep = u64::MAX;
            let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            result::mem_pool::set_attribute(pool, attribute, (&raw mut keep).cast())
                .explain("setting up the memory pool")?;
            OPEN.fetch_add(1, Ordering::Relaxed);
            Ok(Arc::new(Device {
                ordinal,
                name,
                capability,
                processors,
                total,
                handle,
                context,
                stream,
                sides,
                fork,
                joins,
                idle,
                next: AtomicU64::new(1),
                recording: AtomicBool::new(false),
                pending: AtomicBool::new(false),
                loose: AtomicBool::new(false),
                touched: Mutex::default(),
                deferred: Mutex::default(),
                graphs: Mutex::default(),
            }))
        }
    }

    /// Makes this thread's calls go to this GPU.
    pub fn bind(&self) -> Result<()> {
        // SAFETY: the context lives as long as self.
        unsafe { result::ctx::set_current(self.context) }.explain("using the GPU's context")
    }

    /// Waits for all that was queued. The driver waits in a loop, which is the fastest to notice.
    /// Where several wait beside each other the card has work meanwhile, and their loops would take
    /// the processors from the provers: they sleep.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream and the event live as long as self.
        unsafe {
            if OPEN.load(Ordering::Relaxed) == 1 {
                return result::stream::synchronize(self.stream).explain("waiting for the GPU");
            }
            result::event::record(self.idle, self.stream)
                .and_then(|()| result::event::synchronize(self.idle))
                .explain("waiting for the GPU")
        }
    }

    /// The point that work beside the stream starts from: what is queued there before is done by
    /// then. What is queued afterwards, but before [`Device::beside`], is the first to be given
    /// room.
    pub fn fork(&self) -> Result<()> {
        // SAFETY: streams and events live as long as self.
        unsafe { result::event::record(self.fork, self.stream) }.explain("marking a fork")
    }

    /// Launches `work` beside the stream, from the last [`Device::fork`] on. What it uses must stay
    /// untouched until [`Device::join`].
    pub fn beside(&self, side: Side, work: impl FnOnce(sys::CUstream) -> Result<()>) -> Result<()> {
        let stream = self.sides[side as usize];
        // SAFETY: as above.
        unsafe {
            let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
            result::stream::wait_event(stream, self.fork, flags).explain("forking a stream")?;
        }
        let launched = work(stream);
        // Also after an error: a recording must not end with a stream left out.
        // SAFETY: as above.
        let marked = unsafe { result::event::record(self.joins[side as usize], stream) }
            .explain("marking a join");
        launched.and(marked)
    }

    /// Lets what follows on the stream wait for what [`Device::beside`] launched there.
    pub fn join(&self, side: Side) -> Result<()> {
        if let Side::Behind = side {
            self.loose.store(false, Ordering::Relaxed);
        }
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: as above.
        unsafe { result::stream::wait_event(self.stream, self.joins[side as usize], flags) }
            .explain("joining a stream")
    }

    pub fn is_recording(&self) -> bool {
        self.recording.load(Ordering::Relaxed)
    }

    pub fn refuse_while_recording(&self, what: &str) -> Result<()> {
        if self.recording.load(Ordering::Relaxed) {
            return Err(Error::Device(format!("{what} cannot be part of a recording")));
        }
        Ok(())
    }

    /// Bytes of device memory that are free, those this process keeps for reuse included.
    pub fn free(&self) -> u64 {
        let free = result::mem_get_info().map_or(0, |(free, _)| free as u64);
        // SAFETY: the pool is the device's own; both attributes are 64-bit counters.
        let pooled = unsafe {
            let read = |pool, attribute| {
                let mut value = 0u64;
                result::mem_pool::get_attribute(pool, attribute, (&raw mut value).cast())
                    .map(|()| value)
            };
            use sys::CUmemPool_attribute as A;
            result::device::get_default_mem_pool(self.handle)
                .and_then(|p| {
                    let reserved = read(p, A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
                    Ok(reserved.saturating_sub(read(p, A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?))
                })
                .unwrap_or(0)
        };
        free + pooled
    }

    fn release(&self, id: u64, pointer: sys::CUdeviceptr) {
        // A recording that uses this buffer must never run again.
        self.graphs.lock().forget_buffer(id);
        if [&self.recording, &self.pending, &self.loose].iter().any(|f| f.load(Ordering::Relaxed)) {
            self.deferred.lock().push(pointer);
            return;
        }
        // The process may be shutting down or the GPU lost: nothing can be done about an error
        // here.
        let _ = self.bind();
        // SAFETY: allocated by `Buffer::new` on this stream and given back once; kernels queued
        // before still see it.
        let _ = unsafe { result::free_async(pointer, self.stream) };
    }

    /// Frees what could not be freed when it was given back.
    pub fn release_deferred(&self) {
        for pointer in self.deferred.lock().drain(..) {
            // SAFETY: as in `release`.
            let _ = unsafe { result::free_async(pointer, self.stream) };
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.graphs.lock().clear();
        OPEN.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: nothing else holds the handles any more. Errors cannot be acted on here.
        unsafe {
            let _ = result::ctx::set_current(self.context);
            for stream in [self.stream, self.sides[0], self.sides[1]] {
                let _ = result::stream::synchronize(stream);
                let _ = result::stream::destroy(stream);
            }
            for event in [self.fork, self.joins[0], self.joins[1], self.idle] {
                let _ = result::event::destroy(event);
            }
            let _ = result::primary_ctx::release(self.handle);
        }
    }
}

/// Device memory.
pub(crate) struct Buffer {
    device: Arc<Device>,
    pointer: sys::CUdeviceptr,
    pub id: u64,
    pub bytes: usize,
}

impl Buffer {
    /// `bytes` of device memory holding whatever was there before.
    pub fn new(device: &Arc<Device>, bytes: usize) -> Result<Self> {
        device.refuse_while_recording("allocating memory")?;
        device.bind()?;
        // Room for sixteen-byte accesses to the last element.
        let size = bytes.next_multiple_of(256).max(256);
        // SAFETY: the stream lives as long as the device, which the buffer keeps alive.
        let pointer =
            unsafe { result::malloc_async(device.stream, size) }.map_err(|e| match e.0 {
                sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => out_of_memory(device, size as u64),
                _ => Err::<(), _>(e).explain("allocating memory").unwrap_err(),
            })?;
        let id = device.next.fetch_add(1, Ordering::Relaxed);
        Ok(Buffer { device: device.clone(), pointer, id, bytes: size })
    }

    pub fn zeros(device: &Arc<Device>, bytes: usize) -> Result<Self> {
        let buffer = Self::new(device, bytes)?;
        // SAFETY: the buffer has at least this many bytes.
        unsafe { result::memset_d8_async(buffer.pointer, 0, buffer.bytes, device.stream) }
            .explain("clearing memory")?;
        Ok(buffer)
    }

    /// The address, noted if a recording is in progress.
    pub fn address<T>(&self) -> Address<T> {
        if self.device.recording.load(Ordering::Relaxed) {
            self.device.touched.lock().insert(self.id);
        }
        Address::new(self.pointer)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.device.release(self.id, self.pointer);
    }
}

/// The error for an allocation that did not fit: how much is there, and what would need less.
fn out_of_memory(device: &Device, wanted: u64) -> Error {
    let free = device.free();
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    let advice = format!(
        "{} has {:.1} GiB in all and {:.1} GiB free, this allocation alone wants {:.1} GiB; use \
         smaller batches (at most {:.0} % of \
         this one's rows), recompute activations, take a smaller cache or model, or end other \
         processes on this GPU",
        device.name,
        gib(device.total as u64),
        gib(free),
        gib(wanted),
        100.0 * (free as f64 / wanted as f64).min(0.9),
    );
    Error::Memory { wanted, free, advice }
}
