//! Challengers: processes that elaborate headers and statements and run no tactic; how many there
//! are, and who gets one.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::worker::{Owner, Place, PlaceText, Worker};

/// The challengers.
pub(crate) struct Challengers {
    most: usize,
    /// A process that holds so many MiB gets no further files.
    full_mb: u64,
    all: Mutex<Vec<Challenger>>,
    freed: Condvar,
}

struct Challenger {
    id: u64,
    imports: Vec<String>,
    /// Whose texts it has elaborated: a stranger's process never serves the user.
    owner: Owner,
    /// The files it has elaborated; `None` for one that serves headers, on the bare imports.
    files: Option<HashSet<String>>,
    /// At rest: the process and how many proofs it has served. `None` while somebody has it.
    idle: Option<(Worker, usize)>,
}

impl Challenger {
    fn new(id: u64, place: &Place) -> Challenger {
        let files = matches!(place.text, PlaceText::File(_)).then(HashSet::new);
        Challenger { id, imports: place.imports.clone(), owner: place.owner, files, idle: None }
    }

    /// Whether it could serve the place, if only after elaborating files.
    fn fits(&self, place: &Place) -> bool {
        self.imports == place.imports
            && self.owner == place.owner
            && self.files.is_some() == matches!(place.text, PlaceText::File(_))
    }

    fn holds(&self, place: &Place) -> bool {
        let has = match (&place.text, &self.files) {
            (PlaceText::File(source), Some(files)) => files.contains(&source.path),
            (PlaceText::Header(_), None) => true,
            _ => false,
        };
        has && self.imports == place.imports && self.owner == place.owner
    }

    fn add(&mut self, place: &Place) {
        if let (PlaceText::File(source), Some(files)) = (&place.text, &mut self.files) {
            files.insert(source.path.clone());
        }
    }
}

/// A challenger in use. Dropped without [`Held::give_back`], it is ended.
pub(crate) struct Held<'a> {
    challengers: &'a Challengers,
    id: u64,
    /// The process; `None` only after it was given back.
    worker: Option<Worker>,
    /// Proofs that it has served so far.
    pub served: usize,
}

impl Challengers {
    /// At most `most` processes at a time.
    pub fn new(most: usize, full_mb: u64) -> Challengers {
        Challengers { most, full_mb, all: Mutex::default(), freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Challenger>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process for `place`, waiting for one if need be.
    ///
    /// A file is loaded by one challenger only: waiting for a check that is under way is quicker
    /// than elaborating the file again.
    pub fn take(&self, place: &Place, new: impl FnOnce() -> Worker) -> Held<'_> {
        let mut all = self.lock();
        loop {
            if let Some(at) = self.choose(&mut all, place) {
                let challenger = &mut all[at];
                challenger.add(place);
                let id = challenger.id;
                let (worker, served) = challenger.idle.take().unwrap_or_else(|| (new(), 0));
                return Held { challengers: self, id, worker: Some(worker), served };
            }
            all = self.freed.wait(all).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Which challenger to take: one at rest, or a new entry that has no process yet.
    fn choose(&self, all: &mut Vec<Challenger>, place: &Place) -> Option<usize> {
        if let Some(at) = all.iter().position(|c| c.idle.is_some() && c.holds(place)) {
            return Some(at);
        }
        let files = matches!(place.text, PlaceText::File(_));
        if files && all.iter().any(|c| c.holds(place)) {
            return None;
        }
        if all.len() >= self.most {
            let roomy = |c: &Challenger| {
                c.idle.as_ref().is_some_and(|(w, _)| w.memory().is_some_and(|mb| mb < self.full_mb))
            };
            if files && let Some(at) = all.iter().position(|c| c.fits(place) && roomy(c)) {
                return Some(at);
            }
            // The one that has rested longest makes room.
            let oldest = all.iter().position(|c| c.idle.is_some())?;
            all.remove(oldest);
        }
        let id = all.iter().map(|c| c.id + 1).max().unwrap_or(0);
        all.push(Challenger::new(id, place));
        Some(all.len() - 1)
    }
}

impl Held<'_> {
    /// The process.
    pub fn worker(&mut self) -> &mut Worker {
        self.worker.as_mut().expect("it is there until it is given back")
    }

    /// Leaves the process for the next proof.
    pub fn give_back(mut self) {
        let mut all = self.challengers.lock();
        if let Some(at) = all.iter().position(|c| c.id == self.id) {
            let mut challenger = all.remove(at);
            challenger.idle = self.worker.take().map(|worker| (worker, self.served + 1));
            all.push(challenger);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.worker.is_some() {
            self.challengers.lock().retain(|c| c.id != self.id);
        }
        self.challengers.freed.notify_all();
    }
}
