//! Processes that only check finished proofs: how many there are, and who gets one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::worker::{Place, PlaceText, Worker};

/// The checking processes, each with the place it serves: a file, or the bare imports.
pub(crate) struct Checkers {
    most: usize,
    all: Mutex<Vec<Checker>>,
    freed: Condvar,
}

struct Checker {
    id: u64,
    place: Place,
    /// At rest: the process and how many proofs it has checked. `None` while somebody has it.
    idle: Option<(Worker, usize)>,
}

/// A checking process in use. Dropped without [`Held::give_back`], it is ended.
pub(crate) struct Held<'a> {
    checkers: &'a Checkers,
    id: u64,
    /// The process; `None` only after it was given back.
    worker: Option<Worker>,
    /// Proofs that it has checked so far.
    pub served: usize,
}

impl Checkers {
    /// At most so many processes at a time.
    pub fn new(most: usize) -> Checkers {
        Checkers { most, all: Mutex::default(), freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Checker>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process for `place`, waiting for one if need be.
    ///
    /// A file is loaded by one checker only: waiting for a check that is under way is quicker than elaborating the file again.
    pub fn take(&self, place: &Place, new: impl FnOnce() -> Worker) -> Held<'_> {
        let mut all = self.lock();
        loop {
            if let Some(mine) = all.iter_mut().find(|c| c.place == *place && c.idle.is_some()) {
                let (worker, served) = mine.idle.take().expect("just seen");
                return Held { checkers: self, id: mine.id, worker: Some(worker), served };
            }
            let in_use = matches!(place.text, PlaceText::Files(_)) && all.iter().any(|c| c.place == *place);
            if !in_use {
                // The one that has rested longest makes room.
                if all.len() >= self.most
                    && let Some(at) = all.iter().position(|c| c.idle.is_some())
                {
                    all.remove(at);
                }
                if all.len() < self.most {
                    let id = all.iter().map(|c| c.id + 1).max().unwrap_or(0);
                    all.push(Checker { id, place: place.clone(), idle: None });
                    return Held { checkers: self, id, worker: Some(new()), served: 0 };
                }
            }
            all = self.freed.wait(all).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Held<'_> {
    /// The process.
    pub fn worker(&mut self) -> &mut Worker {
        self.worker.as_mut().expect("it is there until it is given back")
    }

    /// Leaves the process for the next proof of the same place.
    pub fn give_back(mut self) {
        let mut all = self.checkers.lock();
        if let Some(at) = all.iter().position(|c| c.id == self.id) {
            let mut checker = all.remove(at);
            checker.idle = self.worker.take().map(|worker| (worker, self.served + 1));
            all.push(checker);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.worker.is_some() {
            self.checkers.lock().retain(|c| c.id != self.id);
        }
        self.checkers.freed.notify_all();
    }
}
