//! The services that are asked, and which of them is asked next.
//!
//! A thread looks after them: it reads the addresses again, and takes services in as they come. One
//! that fails is asked nothing more until it says again how it is. One that is long in answering is
//! asked how it is: a service that hangs does not even say that.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use catamount_search::{Fault, Identity, Patience};
use catamount_traces::Theorem;

use crate::addresses::Addresses;
use crate::client::{Client, Failure};
use crate::protocol::Status;

/// Requests that one process has at one service: enough that it never waits for the next one.
pub(crate) const IN_FLIGHT: usize = 4;
/// How many sessions wait rather than have another service read a file.
const FILE: usize = 4;
/// Between two looks whether it is our turn.
const TURN: Duration = Duration::from_millis(100);
/// Between two looks after the services.
const LOOK: Duration = Duration::from_millis(500);
/// How long a service has answered nothing before it is asked how it is.
const QUIET: Duration = Duration::from_secs(2);
/// How often in a row it may leave that unanswered.
const SILENCES: usize = 3;
/// How long it is waited for a service that has room, or for any at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// A service in one of its lives.
pub(crate) struct Worker {
    pub address: String,
    /// Theorems that are open there, of this process.
    sessions: AtomicUsize,
    /// How often in a row it had no room.
    refusals: AtomicUsize,
    in_flight: Mutex<usize>,
    freed: Condvar,
    /// When it last answered anything, or was first asked after being at rest.
    answered: Mutex<Instant>,
    /// How often in a row it has not said how it is.
    silences: AtomicUsize,
    lost: AtomicBool,
    /// Files that it has been asked about.
    files: Mutex<HashSet<String>>,
}

impl Worker {
    fn new(address: String) -> Arc<Self> {
        Arc::new(Worker {
            address,
            sessions: AtomicUsize::new(0),
            refusals: AtomicUsize::new(0),
            in_flight: Mutex::new(0),
            freed: Condvar::new(),
            answered: Mutex::new(Instant::now()),
            silences: AtomicUsize::new(0),
            lost: AtomicBool::new(false),
            files: Mutex::default(),
        })
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// A place there.
    pub fn place(self: &Arc<Self>) -> Place {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Place(Arc::clone(self))
    }

    /// In sessions, how long a theorem would wait here.
    fn delay(&self, file: Option<&String>) -> usize {
        let loaded = file.is_none_or(|file| lock(&self.files).contains(file));
        let refusals = self.refusals.load(Ordering::Relaxed);
        self.sessions.load(Ordering::Relaxed) + FILE * (usize::from(!loaded) + refusals)
    }

    /// Whether it makes sense to wait for it.
    pub fn wanted(&self, patience: &Patience) -> Result<(), Failure> {
        if self.is_lost() {
            return Err(Failure::Lost(format!("the prover at {} is gone", self.address)));
        }
        patience.check().map_err(Failure::Given)
    }

    /// Whether it owes an answer, and has given none for long.
    fn is_quiet(&self) -> bool {
        *lock(&self.in_flight) > 0 && lock(&self.answered).elapsed() > QUIET
    }

    /// Whether it may be hanging.
    pub fn is_silent(&self) -> bool {
        self.silences.load(Ordering::Relaxed) > 0
    }

    /// Takes in whether it has said how it is.
    fn probed(&self, said: bool) {
        match said {
            true => self.silences.store(0, Ordering::Relaxed),
            false if self.silences.fetch_add(1, Ordering::Relaxed) + 1 >= SILENCES => {
                self.lost.store(true, Ordering::Relaxed);
            }
            false => {}
        }
    }

    /// Does something there, when it is our turn.
    pub fn ask<A>(
        &self,
        patience: &Patience,
        request: impl FnOnce() -> Result<A, Failure>,
    ) -> Result<A, Failure> {
        let mut in_flight = lock(&self.in_flight);
        while *in_flight >= IN_FLIGHT {
            self.wanted(patience)?;
            let waited = self.freed.wait_timeout(in_flight, TURN);
            in_flight = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if *in_flight == 0 {
            *lock(&self.answered) = Instant::now();
        }
        *in_flight += 1;
        drop(in_flight);
        let answer = self.wanted(patience).and_then(|()| request());
        *lock(&self.in_flight) -= 1;
        self.freed.notify_one();
        if !matches!(answer, Err(Failure::Given(_) | Failure::Lost(_))) {
            *lock(&self.answered) = Instant::now();
        }
        match &answer {
            Err(Failure::Busy) => {
                self.refusals.fetch_add(1, Ordering::Relaxed);
            }
            Err(Failure::Lost(_)) => self.lost.store(true, Ordering::Relaxed),
            Err(Failure::Given(_)) => {}
            _ => self.refusals.store(0, Ordering::Relaxed),
        }
        answer
    }
}

/// A place for a theorem at a service, given back when it is dropped.
pub(crate) struct Place(pub Arc<Worker>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All of them.
pub(crate) struct Workers {
    pub client: Client,
    addresses: Addresses,
    /// What each must be, once that is known.
    expected: Mutex<Option<Identity>>,
    there: Mutex<There>,
    changed: Condvar,
}

#[derive(Default)]
struct There {
    workers: Vec<Arc<Worker>>,
    /// What the last look found wrong, for whoever waits in vain.
    trouble: Option<Trouble>,
}

/// What is wrong with a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It does not answer; it may yet.
    Silent(String),
    /// It is another prover.
    Other(String),
}

impl Trouble {
    pub fn reason(&self) -> &str {
        let (Trouble::Silent(reason) | Trouble::Other(reason)) = self;
        reason
    }
}

impl Workers {
    pub fn new(addresses: Addresses, expected: Option<Identity>) -> Arc<Self> {
        let (client, expected) = (Client::new(IN_FLIGHT), Mutex::new(expected));
        let (there, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Workers { client, addresses, expected, there, changed })
    }

    /// Looks after them until nobody asks any more.
    pub fn keep(workers: &Arc<Self>) -> std::io::Result<()> {
        let workers: Weak<Self> = Arc::downgrade(workers);
        let look = move || {
            while let Some(workers) = workers.upgrade() {
                workers.look();
                drop(workers);
                thread::sleep(LOOK);
            }
        };
        thread::Builder::new().name("provers".into()).spawn(look).map(|_| ())
    }

    /// Takes in who has come, and forgets who has gone; the first that is there says how it is.
    pub fn look(&self) -> Option<Status> {
        self.probe();
        let addresses = self.addresses.now();
        lock(&self.there).workers.retain(|w| !w.is_lost() && addresses.contains(&w.address));
        let mut first = None;
        for address in addresses {
            if lock(&self.there).workers.iter().any(|worker| worker.address == address) {
                continue;
            }
            match self.admit(&address) {
                Ok(status) => {
                    lock(&self.there).workers.push(Worker::new(address));
                    self.changed.notify_all();
                    first = first.or(Some(status));
                }
                Err(trouble) => lock(&self.there).trouble = Some(trouble),
            }
        }
        first
    }

    /// Asks those that are long in answering how they are.
    fn probe(&self) {
        let mut quiet = lock(&self.there).workers.clone();
        quiet.retain(|worker| !worker.is_lost() && worker.is_quiet());
        thread::scope(|scope| {
            for worker in &quiet {
                let probe = || {
                    let said = self.client.status(&worker.address);
                    worker.probed(matches!(said, Ok(_) | Err(Failure::Busy)));
                };
                // Without room for a thread nobody is given up.
                let _ = thread::Builder::new().spawn_scoped(scope, probe);
            }
        });
    }

    /// Whether a service may be asked: it answers, and is the prover that the others are.
    fn admit(&self, address: &str) -> Result<Status, Trouble> {
        let status = self.client.status(address).map_err(|failure| {
            Trouble::Silent(match failure {
                Failure::Busy => format!("the prover at {address} has too much to do"),
                Failure::Forgotten => format!("at {address} is something else than a prover"),
                Failure::Lost(reason)
                | Failure::Refused(reason)
                | Failure::Given(Fault(reason)) => reason,
            })
        })?;
        let mut expected = lock(&self.expected);
        let expected = expected.get_or_insert_with(|| status.identity.clone());
        match expected.differences(&status.identity).first() {
            None => Ok(status),
            Some((part, ours, theirs)) => Err(Trouble::Other(format!(
                "the prover at {address} is another one: its {part} is {theirs}, not {ours}"
            ))),
        }
    }

    /// What the last look found wrong.
    pub fn trouble(&self) -> Option<Trouble> {
        lock(&self.there).trouble.clone()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        lock(&self.there).workers.len()
    }

    /// The service at which a theorem is expected to be opened soonest: that of its file, unless it
    /// has much more to do than another.
    pub fn choose(&self, theorem: &Theorem, patience: &Patience) -> Result<Place, Fault> {
        let file = theorem.file.as_ref().or(theorem.header.as_ref());
        let begun = Instant::now();
        let mut there = lock(&self.there);
        loop {
            let alive = there.workers.iter().filter(|worker| !worker.is_lost());
            if let Some(worker) = alive.min_by_key(|worker| worker.delay(file)) {
                lock(&worker.files).extend(file.cloned());
                return Ok(worker.place());
            }
            // That none is there is no way for a search to end, whatever its time.
            if begun.elapsed() > PATIENCE || patience.check().is_err() {
                let trouble = there.trouble.as_ref().map_or("no address", Trouble::reason);
                return Err(Fault(format!("no prover is there ({trouble})")));
            }
            let waited = self.changed.wait_timeout(there, TURN);
            there = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn theorem(file: &str) -> Theorem {
        Theorem { name: "t".into(), file: Some(file.into()), ..Theorem::default() }
    }

    /// Theorems of one file stay together as long as that is no great detour.
    #[test]
    fn a_file_is_read_by_one_service_while_it_has_room() {
        let addresses = Addresses::Listed(Vec::new());
        let workers = Workers::new(addresses, None);
        lock(&workers.there).workers = ["a", "b"].map(|a| Worker::new(a.into())).into();
        let choose = |file| workers.choose(&theorem(file), &Patience::default()).unwrap();
        let first = choose("A.lean");
        let second = choose("B.lean");
        assert_ne!(first.0.address, second.0.address, "another file goes where there is less");
        let more: Vec<Place> = (0..=FILE).map(|_| choose("A.lean")).collect();
        assert!(more.iter().all(|place| place.0.address == first.0.address));
        let overflowing = choose("A.lean");
        assert_eq!(overflowing.0.address, second.0.address);
        drop((first, more));
        assert_eq!(overflowing.0.sessions.load(Ordering::Relaxed), 2);
    }

    /// The client's half of the back-pressure: it never has more than so many requests out.
    #[test]
    fn a_process_has_few_requests_at_one_service() {
        let worker = Worker::new("a".into());
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 * IN_FLIGHT {
                scope.spawn(|| {
                    let request = || {
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::sleep(Duration::from_millis(5));
                        now.fetch_sub(1, Ordering::SeqCst);
                        Ok(())
                    };
                    worker.ask(&Patience::default(), request).unwrap();
                });
            }
        });
        assert!((2..=IN_FLIGHT).contains(&most.into_inner()));
    }

    /// A process may have stopped in the middle: what it owes is waited for no longer than it says
    /// that it is there, or than anybody wants it.
    #[test]
    fn nobody_waits_for_a_service_that_is_lost_or_for_an_answer_that_is_not_wanted() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap().to_string();
        let worker = Worker::new(address.clone());
        let client = Client::new(IN_FLIGHT);
        let ask = |patience: &Patience| {
            let wanted = || worker.wanted(patience);
            worker.ask(patience, || client.post::<Status>(&address, "/open", &(), wanted))
        };
        let late = Patience { deadline: Some(Instant::now() + TURN), ..Patience::default() };
        let Err(Failure::Given(fault)) = ask(&late) else { panic!("an answer?") };
        assert!(fault.is_late());
        assert!(!worker.is_lost(), "being late is not being lost");

        let waiting = Patience::default();
        thread::scope(|scope| {
            let over = scope.spawn(|| ask(&waiting));
            waiting.over.store(true, Ordering::Relaxed);
            assert!(matches!(over.join().unwrap(), Err(Failure::Given(_))));
        });
        thread::scope(|scope| {
            let lost = scope.spawn(|| ask(&Patience::default()));
            (0..SILENCES).for_each(|_| worker.probed(false));
            assert!(matches!(lost.join().unwrap(), Err(Failure::Lost(_))));
        });
        assert!(worker.is_lost());
    }

    #[test]
    fn one_that_says_how_it_is_is_not_lost() {
        let worker = Worker::new("a".into());
        for said in [false, false, true, false, false] {
            worker.probed(said);
        }
        assert!(!worker.is_lost() && worker.is_silent());
    }
}
