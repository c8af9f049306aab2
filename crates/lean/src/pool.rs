//! The workers that serve sessions, and which of them serves the next one.
//!
//! A worker that has elaborated a theorem's file, or part of what it imports, is worth waiting for:
//! files can take a minute, a search a second or two. So a session goes where it is expected to
//! start soonest.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::worker::{Place, PlaceText, Worker, key};

/// Expected seconds that a session holds its worker up.
const SESSION: f64 = 1.0;
/// Expected seconds that a new process takes.
const START: f64 = 5.0;
/// Expected bytes of Lean source elaborated in a second.
const BYTES_PER_SECOND: f64 = 2500.0;

/// A worker and how many sessions use it.
pub(crate) struct Slot {
    pub worker: Mutex<Worker>,
    pub sessions: AtomicUsize,
}

impl Slot {
    pub fn lock(&self) -> MutexGuard<'_, Worker> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a worker will hold once it has done what it was given so far.
#[derive(Default)]
struct Expected {
    imports: Vec<String>,
    chains: HashSet<String>,
}

impl Expected {
    /// Seconds until a session at `place` could start here, other sessions aside.
    fn delay(&self, place: &Place) -> f64 {
        let started = self.imports == place.imports;
        let files = match &place.text {
            PlaceText::Header(_) => return if started { 0.0 } else { START },
            PlaceText::Files(files) => files,
        };
        let loaded = if started {
            (1..=files.len()).rev().find(|&n| self.chains.contains(&key(&files[..n]))).unwrap_or(0)
        } else {
            0
        };
        let bytes: usize = files[loaded..].iter().map(|f| f.text.len()).sum();
        bytes as f64 / BYTES_PER_SECOND + if started { 0.0 } else { START }
    }

    fn add(&mut self, place: &Place) {
        if self.imports != place.imports {
            *self = Expected { imports: place.imports.clone(), chains: HashSet::new() };
        }
        if let PlaceText::Files(files) = &place.text {
            self.chains.extend((1..=files.len()).map(|n| key(&files[..n])));
        }
    }
}

/// See the module's text.
pub(crate) struct Pool {
    pub slots: Vec<Arc<Slot>>,
    expected: Mutex<Vec<Expected>>,
}

impl Pool {
    pub fn new(workers: impl Iterator<Item = Worker>) -> Pool {
        let slot =
            |worker| Arc::new(Slot { worker: Mutex::new(worker), sessions: AtomicUsize::new(0) });
        let slots: Vec<_> = workers.map(slot).collect();
        let expected = Mutex::new(slots.iter().map(|_| Expected::default()).collect());
        Pool { slots, expected }
    }

    /// The worker that a session at `place` is expected to start on soonest; its session count is
    /// raised.
    pub fn choose(&self, place: &Place) -> Arc<Slot> {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let mut best = (f64::INFINITY, 0);
        for (at, slot) in self.slots.iter().enumerate() {
            let sessions = slot.sessions.load(Ordering::Relaxed);
            // A worker at rest may have been replaced since: look at what it really holds.
            if sessions == 0
                && let Ok(worker) = slot.worker.try_lock()
            {
                let (imports, chains) = worker.holdings();
                expected[at] =
                    Expected { imports: imports.to_vec(), chains: chains.cloned().collect() };
            }
            let delay = expected[at].delay(place) + SESSION * sessions as f64;
            if delay < best.0 {
                best = (delay, at);
            }
        }
        let (_, at) = best;
        expected[at].add(place);
        self.slots[at].sessions.fetch_add(1, Ordering::Relaxed);
        Arc::clone(&self.slots[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use crate::worker::Owner;

    fn file(path: &str, bytes: usize) -> Arc<Source> {
        Arc::new(Source {
            path: path.into(),
            module: path.into(),
            text: "x".repeat(bytes),
            imports: vec![],
        })
    }

    fn place(files: &[&Arc<Source>]) -> Place {
        Place {
            imports: vec!["Init".into()],
            text: PlaceText::Files(files.iter().map(|f| Arc::clone(f)).collect()),
            owner: Owner::User,
        }
    }

    #[test]
    fn what_is_loaded_is_not_waited_for() {
        let (a, b, c) = (file("A", 20_000), file("B", 10_000), file("C", 5_000));
        let mut expected = Expected::default();
        assert_eq!(expected.delay(&place(&[&a, &b])), START + 12.0);
        expected.add(&place(&[&a, &b]));
        assert_eq!(expected.delay(&place(&[&a, &b])), 0.0);
        assert_eq!(expected.delay(&place(&[&a, &c])), 2.0);
        assert_eq!(expected.delay(&place(&[&b])), 4.0, "A chain is known by its whole beginning");
        let other = Place {
            imports: vec!["Lean".into()],
            text: PlaceText::Header(String::new()),
            owner: Owner::User,
        };
        assert_eq!(expected.delay(&other), START);
        expected.add(&other);
        assert_eq!(expected.delay(&place(&[&a])), START + 8.0, "another process has to start");
    }
}
