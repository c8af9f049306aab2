//! The workers that serve sessions, and which of them serves the next one.
//!
//! A worker that has elaborated a theorem's file is worth waiting for: a file takes seconds, a
//! search often less. So a session goes where it is expected to start soonest.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::source::Source;
use crate::worker::{Place, PlaceText, Worker, key};

/// Expected seconds that a session holds its worker up.
const SESSION: f64 = 1.0;
/// Expected seconds that a new process takes.
const START: f64 = 5.0;
/// Expected seconds that importing what a file needs takes.
const IMPORT: f64 = 2.0;
/// Expected bytes of Lean source read in a second, proofs skipped.
const BYTES_PER_SECOND: f64 = 20_000.0;

/// A worker and how many sessions use it.
pub(crate) struct Slot {
    pub worker: Mutex<Worker>,
    pub sessions: AtomicUsize,
}

impl Slot {
    fn new(worker: Worker, sessions: usize) -> Arc<Slot> {
        Arc::new(Slot { worker: Mutex::new(worker), sessions: AtomicUsize::new(sessions) })
    }

    /// A worker for one session alone, which is counted already.
    pub fn of_one(worker: Worker) -> Arc<Slot> {
        Slot::new(worker, 1)
    }

    pub fn lock(&self) -> MutexGuard<'_, Worker> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a worker will hold once it has done what it was given so far.
#[derive(Default)]
struct Expected {
    imports: Vec<String>,
    files: HashSet<String>,
}

impl Expected {
    /// Seconds until a session at `place` could start here, other sessions aside.
    fn delay(&self, place: &Place) -> f64 {
        let started = self.imports == place.imports;
        let start = if started { 0.0 } else { START };
        match &place.text {
            PlaceText::File(source) if !(started && self.files.contains(&name(source))) => {
                start + IMPORT + source.text.len() as f64 / BYTES_PER_SECOND
            }
            _ => start,
        }
    }

    fn add(&mut self, place: &Place) {
        if self.imports != place.imports {
            *self = Expected { imports: place.imports.clone(), files: HashSet::new() };
        }
        if let PlaceText::File(source) = &place.text {
            self.files.insert(name(source));
        }
    }
}

/// How a worker names the context that a search in a file uses.
fn name(source: &Source) -> String {
    key(source, false)
}

/// See the module's text.
pub(crate) struct Pool {
    pub slots: Vec<Arc<Slot>>,
    expected: Mutex<Vec<Expected>>,
}

impl Pool {
    pub fn new(workers: impl Iterator<Item = Worker>) -> Pool {
        let slots: Vec<_> = workers.map(|worker| Slot::new(worker, 0)).collect();
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
                let (imports, contexts) = worker.holdings();
                expected[at] =
                    Expected { imports: imports.to_vec(), files: contexts.cloned().collect() };
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
    use crate::worker::Owner;

    fn place(path: &str, bytes: usize) -> Place {
        let text = "x".repeat(bytes);
        let (imports, without) = (vec![], vec![]);
        let (path, module, options) = (path.into(), path.into(), String::new());
        let source = Source { path, module, text, imports, without, options };
        Place {
            imports: vec!["Init".into()],
            text: PlaceText::File(Arc::new(source)),
            owner: Owner::User,
        }
    }

    #[test]
    fn what_is_loaded_is_not_waited_for() {
        let (a, b) = (place("A", 20_000), place("B", 10_000));
        let mut expected = Expected::default();
        assert_eq!(expected.delay(&a), START + IMPORT + 1.0);
        expected.add(&a);
        assert_eq!(expected.delay(&a), 0.0);
        assert_eq!(expected.delay(&b), IMPORT + 0.5);
        let other = Place {
            imports: vec!["Lean".into()],
            text: PlaceText::Header(String::new()),
            owner: Owner::User,
        };
        assert_eq!(expected.delay(&other), START);
        expected.add(&other);
        assert_eq!(expected.delay(&a), START + IMPORT + 1.0, "another process has to start");
    }
}
