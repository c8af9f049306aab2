//! Services as the search's environment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use catamount_search::{Checked, Environment, Fault, Identity, Patience, Session, Setup};
use catamount_traces::Theorem;

use crate::addresses::Addresses;
use crate::protocol::{Judged, Proof, Status};
use crate::session::{Endurance, RemoteSession};
use crate::workers::{PATIENCE, Trouble, Worker, Workers};

/// How long services that were named may take to answer for the first time.
const FIRST: Duration = Duration::from_secs(10);
/// Between two looks for the first.
const LOOK: Duration = Duration::from_millis(200);

/// Provers elsewhere, each behind a service. Which of them answers changes nothing: all are the
/// same prover, by content. One that is lost is replaced by another, at which the states in use are
/// found again by their tactics.
pub struct Remote {
    workers: Arc<Workers>,
    /// What all of them are, as the first of them said.
    first: Status,
    /// Where theorems are open: a proof is judged soonest where it was found.
    homes: Mutex<HashMap<String, Weak<Worker>>>,
}

/// Why no prover can be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// One that was named does not do.
    #[error("{0}; is it running (`catamount serve`), and with the same library?")]
    Unusable(String),
    /// None has come within the time.
    #[error("no prover answered within {} s", PATIENCE.as_secs())]
    None,
    /// There is no thread to look after them.
    #[error("cannot start the thread that watches provers: {0}")]
    Thread(String),
}

impl Remote {
    /// Connects. Services that are named must all be there, and be the same prover: the expected
    /// one, if there is one. Those of a file may come later, but one must come.
    pub fn connect(
        addresses: Addresses,
        expected: Option<Identity>,
    ) -> Result<Remote, ConnectError> {
        let listed = match &addresses {
            Addresses::Listed(all) => Some(all.len()),
            Addresses::File(_) => None,
        };
        let workers = Workers::new(addresses, expected);
        let begun = Instant::now();
        let mut first = None;
        loop {
            let came = workers.look();
            first = first.or(came);
            let enough = workers.count() >= listed.unwrap_or(1);
            if let Some(first) = first.take_if(|_| enough) {
                let thread = Workers::keep(&workers);
                thread.map_err(|error| ConnectError::Thread(error.to_string()))?;
                return Ok(Remote { workers, first, homes: Mutex::default() });
            }
            let late = begun.elapsed() > if listed.is_some() { FIRST } else { PATIENCE };
            match workers.trouble() {
                Some(Trouble::Other(reason)) if late || listed.is_some() => {
                    return Err(ConnectError::Unusable(reason));
                }
                Some(trouble) if late => {
                    return Err(ConnectError::Unusable(trouble.reason().to_owned()));
                }
                None if late => return Err(ConnectError::None),
                _ => thread::sleep(LOOK),
            }
        }
    }

    fn home(&self, theorem: &Theorem) -> Option<Arc<Worker>> {
        let homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        homes.get(&theorem.name)?.upgrade().filter(|worker| !worker.is_lost())
    }
}

impl Environment for Remote {
    fn open(&self, theorem: &Theorem) -> Result<Box<dyn Session>, Fault> {
        self.open_within(theorem, &Patience::default())
    }

    fn check(&self, theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault> {
        self.check_within(theorem, tactics, &Patience::default())
    }

    fn open_within(
        &self,
        theorem: &Theorem,
        patience: &Patience,
    ) -> Result<Box<dyn Session>, Fault> {
        let workers = Arc::clone(&self.workers);
        let session = RemoteSession::open(workers, theorem.clone(), patience.clone())?;
        if let Some(worker) = session.worker() {
            let mut homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
            homes.insert(theorem.name.clone(), Arc::downgrade(worker));
        }
        Ok(Box::new(session))
    }

    fn check_within(
        &self,
        theorem: &Theorem,
        tactics: &[String],
        patience: &Patience,
    ) -> Result<Checked, Fault> {
        let (client, mut endurance) = (&self.workers.client, Endurance::new());
        let proof = Proof { theorem: theorem.clone(), tactics: tactics.to_vec() };
        loop {
            let place = match self.home(theorem) {
                Some(home) => home.place(),
                None => self.workers.choose(theorem, patience)?,
            };
            let worker = &place.0;
            let wanted = || worker.wanted(patience);
            let judged: Result<Judged, _> =
                worker.ask(patience, || client.post(&worker.address, "/judge", &proof, wanted));
            match judged {
                Ok(judged) => return Ok(judged.verdict.into()),
                Err(failure) => endurance.bear(failure)?,
            }
        }
    }

    fn describe(&self) -> String {
        self.first.prover.clone()
    }

    fn identity(&self) -> Identity {
        self.first.identity.clone()
    }

    fn setup(&self) -> Option<Setup> {
        self.first.setup.clone()
    }
}
