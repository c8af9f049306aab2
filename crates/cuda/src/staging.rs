//! Page-locked memory that copies pass through, so that they run while the processor goes on.

use catamount_model::Result;
use cudarc::driver::{result, sys};

use crate::address::Address;
use crate::device::{Device, Explain};

struct Slot {
    memory: *mut u8,
    free: sys::CUevent,
}

/// Slots of page-locked memory used in turn; a slot is reused when the copy from it is done.
struct Ring {
    bytes: usize,
    slots: Vec<Slot>,
    next: usize,
}

impl Ring {
    fn new(slots: usize, bytes: usize) -> Result<Self> {
        let mut ring = Ring { bytes, slots: Vec::with_capacity(slots), next: 0 };
        for _ in 0..slots {
            // SAFETY: freed once, on drop.
            let memory = unsafe { result::malloc_host(bytes, 0) }
                .explain("allocating page-locked memory")?
                .cast();
            let free = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
                .explain("creating an event")?;
            ring.slots.push(Slot { memory, free });
        }
        Ok(ring)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for slot in &self.slots {
            // SAFETY: created by `new`; waits for a copy still under way.
            unsafe {
                let _ = result::event::synchronize(slot.free);
                let _ = result::event::destroy(slot.free);
                let _ = result::free_host(slot.memory.cast());
            }
        }
    }
}

/// Small slots for what a step uploads, large ones for weights.
pub(crate) struct Staging {
    small: Ring,
    large: Ring,
}

// SAFETY: the memory is only touched by whoever holds the staging, behind a lock.
unsafe impl Send for Staging {}

const SMALL: usize = 64 << 10;
const LARGE: usize = 16 << 20;

impl Staging {
    pub fn new() -> Result<Self> {
        Ok(Staging { small: Ring::new(64, SMALL)?, large: Ring::new(2, LARGE)? })
    }

    /// Bytes that one call can move.
    pub const MOST: usize = LARGE;

    /// Copies `bytes` that `fill` writes to device memory at `to`.
    pub fn upload<T>(
        &mut self,
        device: &Device,
        to: Address<T>,
        bytes: usize,
        fill: impl FnOnce(*mut u8),
    ) -> Result<()> {
        let ring = if bytes <= SMALL { &mut self.small } else { &mut self.large };
        assert!(bytes <= ring.bytes, "one staging slot holds {} bytes", ring.bytes);
        let slot = &ring.slots[ring.next];
        ring.next = (ring.next + 1) % ring.slots.len();
        // SAFETY: the slot's last copy is waited for before it is written to, and it holds `bytes`.
        unsafe {
            result::event::synchronize(slot.free).explain("waiting for an upload")?;
            fill(slot.memory);
            let from = std::slice::from_raw_parts(slot.memory, bytes);
            result::memcpy_htod_async(to.raw(), from, device.stream)
                .explain("copying to the GPU")?;
            result::event::record(slot.free, device.stream).explain("marking an upload")
        }
    }

    /// Copies `bytes` of device memory at `from`, waits, and shows them to `take`.
    pub fn download<T>(
        &mut self,
        device: &Device,
        from: Address<T>,
        bytes: usize,
        take: impl FnOnce(*const u8),
    ) -> Result<()> {
        let ring = if bytes <= SMALL { &mut self.small } else { &mut self.large };
        assert!(bytes <= ring.bytes, "one staging slot holds {} bytes", ring.bytes);
        let slot = &ring.slots[ring.next];
        // SAFETY: as above; the stream is waited for before the slot is read.
        unsafe {
            result::event::synchronize(slot.free).explain("waiting for an upload")?;
            let to = std::slice::from_raw_parts_mut(slot.memory, bytes);
            result::memcpy_dtoh_async(to, from.raw(), device.stream)
                .explain("copying from the GPU")?;
            device.synchronize()?;
            take(slot.memory);
        }
        Ok(())
    }
}
