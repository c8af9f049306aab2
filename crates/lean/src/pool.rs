//! The workers that serve sessions, and which of them serves the next one.
//!
//! A worker that has elaborated a theorem's file is worth waiting for: a file takes seconds, a
//! search often less. So a session goes where it is expected to start soonest. A file and its
//! imports take much of a process's memory, and a process that is full has to be replaced, with all
//! that it holds: so a session in a file more than a worker has room for waits for another to end.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::source::Source;
use crate::worker::{Place, PlaceText, Worker, key};

/// Expected seconds that a session holds its worker up.
const SESSION: f64 = 2.0;
/// Expected seconds that a new process takes.
const START: f64 = 4.0;
/// Expected seconds that importing what a file needs takes.
const IMPORT: f64 = 1.0;
/// Expected bytes of Lean source read in a second, proofs skipped.
const BYTES_PER_SECOND: f64 = 5_000.0;

/// Files that sessions of one worker are in: with what they import they fill a process of 2 GiB.
const FILES: usize = 3;
/// How long a session waits for room. Whoever holds it may be waiting for the same thread.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// A worker and how many sessions use it.
pub(crate) struct Slot {
    pub worker: Mutex<Worker>,
    /// The id of the worker's process, 0 for none.
    pub process: Arc<AtomicU32>,
    pub sessions: AtomicUsize,
    /// The same by file, of those that are in one.
    files: Mutex<HashMap<String, usize>>,
    /// Told when a session ends.
    freed: Arc<Condvar>,
}

impl Slot {
    fn new(worker: Worker, sessions: usize, freed: Arc<Condvar>) -> Arc<Slot> {
        let process = Arc::clone(worker.process_id());
        let (worker, sessions) = (Mutex::new(worker), AtomicUsize::new(sessions));
        Arc::new(Slot { worker, process, sessions, files: Mutex::default(), freed })
    }

    fn files(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room for what a session at `place` needs.
    fn has_room(&self, place: &Place) -> bool {
        let files = self.files();
        files.len() < FILES || file(place).is_none_or(|file| files.contains_key(&file))
    }

    fn enter(&self, place: &Place) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        if let Some(file) = file(place) {
            *self.files().entry(file).or_default() += 1;
        }
    }

    /// A session at `place` has ended.
    pub fn leave(&self, place: &Place) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
        if let Some(file) = file(place) {
            let mut files = self.files();
            if let Some(sessions) = files.get_mut(&file) {
                *sessions -= 1;
            }
            files.retain(|_, sessions| *sessions > 0);
        }
        self.freed.notify_all();
    }

    /// A worker for one session alone, which is counted already.
    pub fn of_one(worker: Worker) -> Arc<Slot> {
        Slot::new(worker, 1, Arc::default())
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

/// The file of a place, if it has one.
fn file(place: &Place) -> Option<String> {
    match &place.text {
        PlaceText::File(source) => Some(name(source)),
        PlaceText::Header(_) => None,
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
    freed: Arc<Condvar>,
}

impl Pool {
    pub fn new(workers: impl Iterator<Item = Worker>) -> Pool {
        let freed: Arc<Condvar> = Arc::default();
        let slots: Vec<_> = workers.map(|worker| Slot::new(worker, 0, freed.clone())).collect();
        let expected = Mutex::new(slots.iter().map(|_| Expected::default()).collect());
        Pool { slots, expected, freed }
    }

    /// The worker that a session at `place` is expected to start on soonest, once one has room; its
    /// session count is raised.
    pub fn choose(&self, place: &Place) -> Arc<Slot> {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = Instant::now();
        let at = loop {
            let anyway = begin.elapsed() >= PATIENCE;
            if let Some(at) = self.soonest(&mut expected, place, anyway) {
                break at;
            }
            let waited = self.freed.wait_timeout(expected, LOOK);
            expected = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        expected[at].add(place);
        self.slots[at].enter(place);
        Arc::clone(&self.slots[at])
    }

    /// Where a session would start soonest, of the workers with room for it, or of all.
    fn soonest(&self, expected: &mut [Expected], place: &Place, anyway: bool) -> Option<usize> {
        let mut best = None;
        let mut least = f64::INFINITY;
        for (at, slot) in self.slots.iter().enumerate() {
            if !anyway && !slot.has_room(place) {
                continue;
            }
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
            if delay < least {
                (least, best) = (delay, Some(at));
            }
        }
        best
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
        assert_eq!(expected.delay(&a), START + IMPORT + 4.0);
        expected.add(&a);
        assert_eq!(expected.delay(&a), 0.0);
        assert_eq!(expected.delay(&b), IMPORT + 2.0);
        let other = Place {
            imports: vec!["Lean".into()],
            text: PlaceText::Header(String::new()),
            owner: Owner::User,
        };
        assert_eq!(expected.delay(&other), START);
        expected.add(&other);
        assert_eq!(expected.delay(&a), START + IMPORT + 4.0, "another process has to start");
    }
}
