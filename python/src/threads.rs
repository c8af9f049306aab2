//! A thread pool that survives `fork`: torch's data loaders and `multiprocessing` fork, and a child
//! has none of its parent's threads, so that a pool made before would be waited for forever.

use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;
use rayon::{ThreadPool, ThreadPoolBuilder};

static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// This process's pool, made at first use; as many threads as `RAYON_NUM_THREADS` says, else as
/// there are cores.
pub fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut slot = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let id = process::id();
    if let Some((owner, pool)) = slot.as_ref()
        && *owner == id
    {
        return Ok(Arc::clone(pool));
    }
    let name = |index| format!("catamount-{index}");
    let pool = ThreadPoolBuilder::new().thread_name(name).build();
    let pool = Arc::new(pool.map_err(|error| PyRuntimeError::new_err(error.to_string()))?);
    // The parent's pool, seen from a forked child, must not be dropped: dropping waits for threads
    // that are not there.
    if let Some(old) = slot.replace((id, Arc::clone(&pool))) {
        std::mem::forget(old);
    }
    Ok(pool)
}
