//! A worker's place in the pool: who uses it, and whether there is room for more.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::{ArcMutexGuard, Mutex, RawMutex};

use crate::pace::Pace;
use crate::source::Source;
use crate::worker::{Load, Place, PlaceText, Worker, key};

/// Expected seconds that a new process takes.
pub(crate) const START: f64 = 4.0;
/// Expected seconds that importing what a file needs takes, most of which was read for others.
pub(crate) const IMPORT: f64 = 0.3;
/// Expected bytes of Lean source read in a second, proofs skipped.
const BYTES_PER_SECOND: f64 = 5_000.0;

/// Expected memory of a file that is not loaded yet, in MiB: its environment, and of what it
/// imports the modules that no other did.
const FILE_MB: u64 = 60;
/// Hundredths of what a worker may hold that files may take; tactics need the rest.
const FOR_FILES: u64 = 85;

/// A worker while somebody has it.
pub(crate) type Turn = ArcMutexGuard<RawMutex, Worker>;

/// See the module's text.
pub(crate) struct Slot {
    worker: Arc<Mutex<Worker>>,
    /// The id of the worker's process, 0 for none.
    pub process: Arc<AtomicU32>,
    load: Arc<Load>,
    /// How many sessions use it, by their file.
    sessions: Mutex<HashMap<Option<String>, usize>>,
    /// States, by generation, that sessions have left behind.
    left: Mutex<Vec<(u64, u64)>>,
}

impl Slot {
    pub fn new(worker: Worker) -> Arc<Slot> {
        let (process, load) = (Arc::clone(worker.process_id()), Arc::clone(worker.load()));
        let worker = Arc::new(Mutex::new(worker));
        let (sessions, left) = Default::default();
        Arc::new(Slot { worker, process, load, sessions, left })
    }

    /// The worker, once it is free.
    pub fn lock(&self) -> Turn {
        self.tidied(self.worker.lock_arc())
    }

    /// The worker, if it is free.
    pub fn try_lock(&self) -> Option<Turn> {
        self.worker.try_lock_arc().map(|worker| self.tidied(worker))
    }

    /// The worker, if it is free within so long.
    pub fn lock_within(&self, patience: Duration) -> Option<Turn> {
        self.worker.try_lock_arc_for(patience).map(|worker| self.tidied(worker))
    }

    fn tidied(&self, mut worker: Turn) -> Turn {
        for (generation, state) in self.left.lock().drain(..) {
            worker.forget(generation, [state]);
        }
        worker
    }

    /// These states, each with the generation of its process, are needed no more. Whoever has the
    /// worker next tells it.
    pub fn leave_behind(&self, states: impl IntoIterator<Item = (u64, u64)>) {
        self.left.lock().extend(states);
    }

    pub fn enter(&self, place: &Place) {
        *self.sessions.lock().entry(file(place)).or_default() += 1;
    }

    /// A session at `place` has ended, or has moved.
    pub fn leave(&self, place: &Place) {
        let mut sessions = self.sessions.lock();
        if let Some(count) = sessions.get_mut(&file(place)) {
            *count -= 1;
        }
        sessions.retain(|_, count| *count > 0);
    }

    /// How many sessions use it.
    pub fn sessions(&self) -> usize {
        self.sessions.lock().values().sum()
    }

    /// Expected seconds until its sessions are done.
    pub fn busy_for(&self, pace: &Pace) -> f64 {
        let sessions = self.sessions.lock();
        sessions.iter().map(|(file, count)| *count as f64 * pace.session(file)).sum()
    }

    /// Whether there is room for what a session at `place` needs, where the process of `most_mb`
    /// MiB will hold what is expected.
    pub fn has_room(&self, place: &Place, expected: &Expected, most_mb: u64) -> bool {
        // Whom nobody needs can be replaced.
        let needed = self.sessions.lock().keys().any(Option::is_some);
        let Some(file) = file(place).filter(|_| needed) else { return true };
        let loaded = self.load.contexts.load(Ordering::Relaxed);
        let coming = expected.files.len().saturating_sub(loaded) as u64;
        let mb = self.load.mb.load(Ordering::Relaxed) + FILE_MB * (coming + 1);
        expected.files.contains(&file) || mb <= most_mb * FOR_FILES / 100
    }

    /// The process holds so many files, in so many MiB.
    #[cfg(test)]
    pub fn holds(&self, contexts: usize, mb: u64) {
        self.load.contexts.store(contexts, Ordering::Relaxed);
        self.load.mb.store(mb, Ordering::Relaxed);
    }
}

/// What a worker will hold once it has done what it was given so far.
#[derive(Default)]
pub(crate) struct Expected {
    imports: Vec<String>,
    files: HashSet<String>,
}

impl Expected {
    /// What it holds already.
    pub fn of(worker: &Worker) -> Expected {
        let (imports, contexts) = worker.holdings();
        Expected { imports: imports.to_vec(), files: contexts.cloned().collect() }
    }

    /// Seconds until a session at `place` could start here, other sessions aside.
    pub fn delay(&self, place: &Place) -> f64 {
        let started = self.imports == place.imports;
        let start = if started { 0.0 } else { START };
        match &place.text {
            PlaceText::File(source) if !(started && self.files.contains(&name(source))) => {
                start + IMPORT + source.text.len() as f64 / BYTES_PER_SECOND
            }
            _ => start,
        }
    }

    pub fn add(&mut self, place: &Place) {
        if self.imports != place.imports {
            *self = Expected { imports: place.imports.clone(), files: HashSet::new() };
        }
        if let PlaceText::File(source) = &place.text {
            self.files.insert(name(source));
        }
    }
}

/// The file of a place, if it has one.
pub(crate) fn file(place: &Place) -> Option<String> {
    match &place.text {
        PlaceText::File(source) => Some(name(source)),
        PlaceText::Header(_) => None,
    }
}

/// How a worker names the context that a search in a file uses.
fn name(source: &Source) -> String {
    key(source, false)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::worker::Owner;

    /// A file's place.
    pub(crate) fn place(path: &str, bytes: usize) -> Arc<Place> {
        let text = "x".repeat(bytes);
        let (imports, without) = (vec![], vec![]);
        let (path, module, options) = (path.into(), path.into(), String::new());
        let source = Source { path, module, text, imports, without, options };
        Arc::new(Place {
            imports: vec!["Init".into()],
            text: PlaceText::File(Arc::new(source)),
            owner: Owner::User,
        })
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
