//! Recorded operations: a decode step is hundreds of small kernels, and launching a recording of
//! them costs a fraction of launching them one by one.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use catamount_model::Result;
use cudarc::driver::{result, sys};

use crate::cuda::Cuda;
use crate::device::Explain;

/// After this many recordings of one key that failed, it is always run directly.
const ATTEMPTS: u32 = 2;

enum Entry {
    /// Ran directly so far (so that everything it needs is allocated and chosen), with this many
    /// failed recordings.
    Seen(u32),
    Recorded(Graph),
}

struct Graph {
    executable: sys::CUgraphExec,
    buffers: HashSet<u64>,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: instantiated by `record` and destroyed once; the driver waits for a launch in
        // flight by itself.
        let _ = unsafe { result::graph::exec_destroy(self.executable) };
    }
}

/// The recordings of one device, by the caller's key.
#[derive(Default)]
pub(crate) struct Graphs {
    entries: HashMap<u64, Entry>,
}

impl Graphs {
    /// Drops the recordings that use a buffer which is going away.
    pub fn forget_buffer(&mut self, id: u64) {
        if !self.entries.is_empty() {
            self.entries.retain(|_, e| !matches!(e, Entry::Recorded(g) if g.buffers.contains(&id)));
        }
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

impl Cuda {
    /// The first time `body` just runs; the second time it is recorded; from then on the recording
    /// is launched.
    pub(crate) fn replay_body(&self, key: u64, body: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        // Held throughout, so that no other thread's operations end up in the recording.
        let turn = self.turn()?.hold();
        if self.device.recording.load(Ordering::Relaxed) || turn.state().profile.is_some() {
            return body();
        }
        let (executable, attempts) = match self.device.graphs.lock().entries.get(&key) {
            Some(Entry::Recorded(graph)) => (Some(graph.executable), 0),
            Some(Entry::Seen(attempts)) => (None, *attempts),
            None => (None, u32::MAX),
        };
        if let Some(executable) = executable {
            // SAFETY: the entry is still in the map, since this thread holds the turn and drops
            // none of its buffers.
            unsafe { result::graph::launch(executable, self.device.stream) }
                .explain("launching a recording")?;
            self.forget_logits();
            return Ok(());
        }
        if attempts == u32::MAX {
            self.device.graphs.lock().entries.insert(key, Entry::Seen(0));
            return body();
        }
        if attempts >= ATTEMPTS {
            return body();
        }
        match self.record(body) {
            Ok(graph) => {
                let executable = graph.executable;
                self.device.graphs.lock().entries.insert(key, Entry::Recorded(graph));
                self.forget_logits();
                // SAFETY: just instantiated, and held by the map.
                unsafe { result::graph::launch(executable, self.device.stream) }
                    .explain("launching a recording")
            }
            // Something in it cannot be recorded, or had to be allocated first: nothing has run
            // yet.
            Err(_) => {
                self.device.graphs.lock().entries.insert(key, Entry::Seen(attempts + 1));
                body()
            }
        }
    }

    fn record(&self, body: &mut dyn FnMut() -> Result<()>) -> Result<Graph> {
        let stream = self.device.stream;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream is this device's; the turn keeps other threads off it until the
        // recording ends.
        unsafe { result::stream::begin_capture(stream, mode) }.explain("starting a recording")?;
        self.device.touched.lock().clear();
        self.device.recording.store(true, Ordering::Relaxed);
        // What the last operations left waiting belongs to the recording.
        let ran = body().and_then(|()| self.turn().map(drop));
        self.device.recording.store(false, Ordering::Relaxed);
        let buffers = std::mem::take(&mut *self.device.touched.lock());
        // SAFETY: the recording was started above.
        let graph = unsafe { result::stream::end_capture(stream) }.explain("ending a recording");
        self.device.release_deferred();
        ran?;
        let graph = graph?;
        // SAFETY: the graph came from this recording; the executable form does not need it any
        // more.
        let executable =
            unsafe { result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)) };
        // SAFETY: as above; destroyed once.
        let _ = unsafe { result::graph::destroy(graph) };
        Ok(Graph { executable: executable.explain("preparing a recording")?, buffers })
    }
}
