//! How much of its time a prover has something to do.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Counts the time in which at least one request is with the prover.
pub(crate) struct Busy {
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    under_way: usize,
    since: Option<Instant>,
    total: Duration,
}

impl Busy {
    pub fn new() -> Self {
        Busy { began: Instant::now(), state: Mutex::default() }
    }

    /// Counts what `work` takes.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let _under_way = UnderWay::begin(self);
        work()
    }

    /// Seconds in which there was something to do, and those since the beginning.
    pub fn seconds(&self) -> (f64, f64) {
        let state = self.lock();
        let now = state.since.map_or(Duration::ZERO, |since| since.elapsed());
        ((state.total + now).as_secs_f64(), self.began.elapsed().as_secs_f64())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that is under way until it is dropped: a prover may panic.
struct UnderWay<'a>(&'a Busy);

impl<'a> UnderWay<'a> {
    fn begin(busy: &'a Busy) -> Self {
        let mut state = busy.lock();
        state.under_way += 1;
        state.since.get_or_insert_with(Instant::now);
        UnderWay(busy)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.under_way -= 1;
        if state.under_way == 0
            && let Some(since) = state.since.take()
        {
            state.total += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_side_by_side_is_counted_once() {
        let busy = Busy::new();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| busy.during(|| std::thread::sleep(Duration::from_millis(60))));
            }
        });
        std::thread::sleep(Duration::from_millis(60));
        let (seconds, all) = busy.seconds();
        assert!(seconds >= 0.06 && seconds <= all - 0.06, "{seconds} of {all}");
    }
}
