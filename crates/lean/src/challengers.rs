//! Challengers: processes that elaborate headers and statements and run no tactic; how many there
//! are, and who gets one.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::worker::{Owner, Place, PlaceText, Worker};

/// How long a challenger must have been at rest to make room for another of a kind that is there
/// already, but busy: about what a new process takes. A check that is under way takes less.
const RESTED: Duration = Duration::from_secs(5);
/// Kinds of places: the user's files, the user's headers, strangers' claims.
const KINDS: usize = 3;

/// The challengers.
pub(crate) struct Challengers {
    /// At most so many for one kind of place ...
    each: usize,
    /// ... and in all.
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
    /// `None` while somebody has it.
    idle: Option<Idle>,
}

/// A challenger at rest.
struct Idle {
    worker: Worker,
    /// How many proofs it has served.
    served: usize,
    since: Instant,
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
    /// At most `each` processes at a time for one kind of place.
    pub fn new(each: usize, full_mb: u64) -> Challengers {
        let most = each.max(KINDS);
        Challengers { each, most, full_mb, all: Mutex::default(), freed: Condvar::new() }
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
                let (worker, served) =
                    challenger.idle.take().map_or_else(|| (new(), 0), |i| (i.worker, i.served));
                return Held { challengers: self, id, worker: Some(worker), served };
            }
            // Not only what is freed counts: the others come to have rested long enough.
            let waited = self.freed.wait_timeout(all, RESTED);
            all = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Which challenger to take: one at rest, or a new entry that has no process yet.
    fn choose(&self, all: &mut Vec<Challenger>, place: &Place) -> Option<usize> {
        if let Some(at) = all.iter().position(|c| c.idle.is_some() && c.holds(place)) {
            return Some(at);
        }
        let files = matches!(place.text, PlaceText::File(_));
        let under_way = all.iter().any(|c| c.holds(place));
        if files && under_way {
            return None;
        }
        let enough = all.iter().filter(|c| c.fits(place)).count() >= self.each;
        if enough || all.len() >= self.most {
            let roomy = |c: &Challenger| {
                let memory = c.idle.as_ref().and_then(|idle| idle.worker.memory());
                memory.is_some_and(|mb| mb < self.full_mb)
            };
            if files && let Some(at) = all.iter().position(|c| c.fits(place) && roomy(c)) {
                return Some(at);
            }
            // The one that has rested longest makes room.
            let may_go = |c: &Challenger| {
                let rest = c.idle.as_ref().map(|idle| idle.since.elapsed());
                rest.is_some_and(|rest| !under_way || rest >= RESTED) && (!enough || c.fits(place))
            };
            let oldest = all.iter().position(may_go)?;
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
            let (served, since) = (self.served + 1, Instant::now());
            challenger.idle = self.worker.take().map(|worker| Idle { worker, served, since });
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
