//! Where the time goes: while a profile is taken, every kernel and product is timed on the device
//! and waited for.

use std::collections::BTreeMap;

use catamount_model::Result;
use cudarc::driver::{result, sys};

use crate::cuda::Cuda;
use crate::device::{Device, Explain};

/// The time spent in one kind of kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// Launches.
    pub count: u64,
    /// Milliseconds on the device, in all.
    pub milliseconds: f64,
}

/// Two events on the device's stream.
pub(crate) struct Timer {
    from: sys::CUevent,
    to: sys::CUevent,
}

// SAFETY: events are handles of the driver, usable from any thread.
unsafe impl Send for Timer {}

impl Timer {
    pub fn new() -> Result<Self> {
        let event = || {
            result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).explain("creating an event")
        };
        Ok(Timer { from: event()?, to: event()? })
    }

    pub fn start(&self, device: &Device) -> Result<()> {
        // SAFETY: the events and the stream are alive.
        unsafe { result::event::record(self.from, device.stream) }.explain("timing")
    }

    /// Waits, and returns the milliseconds since `start`.
    pub fn stop(&self, device: &Device) -> Result<f32> {
        // SAFETY: as above.
        unsafe {
            result::event::record(self.to, device.stream).explain("timing")?;
            result::event::synchronize(self.to).explain("timing")?;
            result::event::elapsed(self.from, self.to).explain("timing")
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        for event in [self.from, self.to] {
            // SAFETY: created by `new`, destroyed once.
            let _ = unsafe { result::event::destroy(event) };
        }
    }
}

pub(crate) struct Profile {
    pub timer: Timer,
    timings: BTreeMap<String, Timing>,
}

impl Profile {
    fn new() -> Result<Self> {
        Ok(Profile { timer: Timer::new()?, timings: BTreeMap::new() })
    }

    pub fn stop(&mut self, device: &Device, name: &str) -> Result<()> {
        let elapsed = self.timer.stop(device)?;
        let timing = self.timings.entry(name.to_string()).or_default();
        timing.count += 1;
        timing.milliseconds += f64::from(elapsed);
        Ok(())
    }
}

impl Cuda {
    /// Runs `body` with every kernel timed, and returns the times by kernel. Recordings are not
    /// used meanwhile.
    pub fn profile(&self, body: impl FnOnce() -> Result<()>) -> Result<BTreeMap<String, Timing>> {
        let turn = self.turn()?.hold();
        turn.state().profile = Some(Profile::new()?);
        let ran = body().and_then(|()| self.turn().map(drop));
        let profile = turn.state().profile.take();
        ran?;
        Ok(profile.map(|mut p| std::mem::take(&mut p.timings)).unwrap_or_default())
    }
}
