//! The workers that serve sessions, and which of them serves the next one.
//!
//! A worker that has elaborated a theorem's file is worth waiting for: a file takes seconds, a
//! search often less. So a session goes where it is expected to start soonest. A file takes memory
//! that its process never gives back, and a process that is full has to be replaced, with all that
//! it holds: so a session in a file more than a worker has room for waits for another to end.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::source::Source;
use crate::worker::{Load, Place, PlaceText, Worker, key};

/// Expected seconds that a session holds its worker up.
const SESSION: f64 = 1.0;
/// Expected seconds that a new process takes.
const START: f64 = 4.0;
/// Expected seconds that importing what a file needs takes, most of which was read for others.
const IMPORT: f64 = 0.3;
/// Expected bytes of Lean source read in a second, proofs skipped.
const BYTES_PER_SECOND: f64 = 5_000.0;

/// Expected memory of a file that is not loaded yet, in MiB: its environment, and of what it
/// imports the modules that no other did.
const FILE_MB: u64 = 60;
/// Hundredths of what a worker may hold that files may take; tactics need the rest.
const FOR_FILES: u64 = 85;
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
    load: Arc<Load>,
    /// Told when a session ends.
    freed: Arc<Condvar>,
}

impl Slot {
    fn new(worker: Worker, sessions: usize, freed: Arc<Condvar>) -> Arc<Slot> {
        let (process, load) = (Arc::clone(worker.process_id()), Arc::clone(worker.load()));
        let (worker, sessions) = (Mutex::new(worker), AtomicUsize::new(sessions));
        Arc::new(Slot { worker, process, sessions, files: Mutex::default(), load, freed })
    }

    fn files(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room for what a session at `place` needs, where the process of `most_mb`
    /// MiB will hold what is expected.
    fn has_room(&self, place: &Place, expected: &Expected, most_mb: u64) -> bool {
        // Whom nobody needs can be replaced.
        let Some(file) = file(place).filter(|_| !self.files().is_empty()) else { return true };
        let loaded = self.load.contexts.load(Ordering::Relaxed);
        let coming = expected.files.len().saturating_sub(loaded) as u64;
        let mb = self.load.mb.load(Ordering::Relaxed) + FILE_MB * (coming + 1);
        expected.files.contains(&file) || mb <= most_mb * FOR_FILES / 100
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
    /// A worker that holds so many MiB is replaced.
    most_mb: u64,
    freed: Arc<Condvar>,
}

impl Pool {
    pub fn new(workers: impl Iterator<Item = Worker>, most_mb: u64) -> Pool {
        let freed: Arc<Condvar> = Arc::default();
        let slots: Vec<_> = workers.map(|worker| Slot::new(worker, 0, freed.clone())).collect();
        let expected = Mutex::new(slots.iter().map(|_| Expected::default()).collect());
        Pool { slots, expected, most_mb, freed }
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
            let sessions = slot.sessions.load(Ordering::Relaxed);
            // A worker at rest may have been replaced since: look at what it really holds.
            if sessions == 0
                && let Ok(worker) = slot.worker.try_lock()
            {
                let (imports, contexts) = worker.holdings();
                expected[at] =
                    Expected { imports: imports.to_vec(), files: contexts.cloned().collect() };
            }
            if !anyway && !slot.has_room(place, &expected[at], self.most_mb) {
                continue;
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

    fn one_worker() -> Pool {
        let worker = Worker::new(crate::launch::Launch::of_nothing(), Arc::default());
        Pool::new(std::iter::once(worker), 1000)
    }

    /// The process holds so many files, in so many MiB.
    fn loaded(pool: &Pool, contexts: usize, mb: u64) {
        pool.slots[0].load.contexts.store(contexts, Ordering::Relaxed);
        pool.slots[0].load.mb.store(mb, Ordering::Relaxed);
    }

    #[test]
    fn a_session_in_one_more_file_waits_for_room() {
        let (a, b, c) = (place("A", 10), place("B", 10), place("C", 10));
        let pool = one_worker();
        let first = pool.choose(&a);
        loaded(&pool, 1, 700);
        // What is loaded needs no more room, and another file has some.
        let second = pool.choose(&a);
        let third = pool.choose(&b);
        // That one is on its way: there is room for its 60 MiB, and not for as many again.
        loaded(&pool, 1, 780);
        let (sender, chosen) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| sender.send(pool.choose(&c)));
            let wait = LOOK * 2;
            assert!(chosen.recv_timeout(wait).is_err(), "it has no room");
            first.leave(&a);
            assert!(chosen.recv_timeout(wait).is_err(), "others are in both files");
            second.leave(&a);
            third.leave(&b);
            // Nobody needs what the process holds: it may be replaced.
            assert!(chosen.recv_timeout(wait).is_ok());
        });
        assert_eq!(pool.slots[0].sessions.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_full_worker_is_passed_over_for_one_with_room() {
        let (a, b) = (place("A", 10), place("B", 500_000));
        let worker = || Worker::new(crate::launch::Launch::of_nothing(), Arc::default());
        let pool = Pool::new([worker(), worker()].into_iter(), 1000);
        let first = pool.choose(&a);
        loaded(&pool, 1, 800);
        let other = pool.choose(&b);
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(Arc::ptr_eq(&first, &pool.choose(&a)), "its own file is no more to hold");
    }
}
