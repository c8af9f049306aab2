//! A theorem being proved at a service. States are known here by the tactics that lead to them, so
//! that a service that is lost costs a replay at another one, and nothing else.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use catamount_search::{Fault, Patience, Session, StateId, Verdict};
use catamount_traces::Theorem;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Failure;
use crate::protocol::{Close, Opened, Ran, Run};
use crate::workers::{PATIENCE, Place, Worker, Workers};

/// How many services one request may lose before it is a fault.
const LOSSES: usize = 20;
/// The first wait for a service that has too much to do, and the longest.
const WAITS: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];
/// How often a service that has too much to do is told that a theorem is closed; left alone, it
/// closes it itself when nobody asks.
const FAREWELLS: usize = 5;
/// How long the answer to that is waited for.
const FAREWELL: Duration = Duration::from_secs(2);

/// What one request has borne so far.
pub(crate) struct Endurance {
    begun: Instant,
    wait: Duration,
    losses: usize,
}

impl Endurance {
    pub fn new() -> Self {
        Endurance { begun: Instant::now(), wait: WAITS[0], losses: 0 }
    }

    /// Waits where that may help; a fault where nothing will.
    pub fn bear(&mut self, failure: Failure) -> Result<(), Fault> {
        match failure {
            Failure::Refused(reason) => Err(Fault(reason)),
            Failure::Given(fault) => Err(fault),
            Failure::Busy if self.begun.elapsed() > PATIENCE => {
                Err(Fault(format!("every prover had too much to do for {} s", PATIENCE.as_secs())))
            }
            Failure::Busy => {
                thread::sleep(self.wait);
                self.wait = (2 * self.wait).min(WAITS[1]);
                Ok(())
            }
            Failure::Forgotten | Failure::Lost(_) => {
                self.losses += 1;
                match failure {
                    Failure::Lost(reason) if self.losses > LOSSES => {
                        Err(Fault(format!("{reason}, and {LOSSES} others before it")))
                    }
                    _ if self.losses > LOSSES => {
                        Err(Fault("provers forget what was just opened".into()))
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}

/// A state, by how it was reached.
struct Node {
    parent: u32,
    tactic: String,
    /// What the service calls it, in the session that is open there now.
    there: Option<u32>,
    released: bool,
}

/// Where the theorem is open.
struct Home {
    place: Place,
    session: u64,
}

/// See the module's text.
pub(crate) struct RemoteSession {
    workers: Arc<Workers>,
    theorem: Theorem,
    patience: Patience,
    home: Option<Home>,
    root: Option<String>,
    nodes: Vec<Node>,
    /// States that the service may forget, as it calls them.
    unneeded: Vec<u32>,
    /// Whether the last verdict was a clock's.
    momentary: bool,
}

impl RemoteSession {
    pub fn open(
        workers: Arc<Workers>,
        theorem: Theorem,
        patience: Patience,
    ) -> Result<Self, Fault> {
        let root = Node { parent: 0, tactic: String::new(), there: None, released: false };
        let (home, nodes, unneeded) = (None, vec![root], Vec::new());
        let (root, momentary) = (None, false);
        let mut session =
            RemoteSession { workers, theorem, patience, home, root, nodes, unneeded, momentary };
        let mut endurance = Endurance::new();
        while let Err(stumble) = session.settle() {
            session.overcome(stumble, &mut endurance)?;
        }
        Ok(session)
    }

    /// Where it is open.
    pub fn worker(&self) -> Option<&Arc<Worker>> {
        self.home.as_ref().map(|home| &home.place.0)
    }

    /// Opens the theorem somewhere, if it is not open.
    fn settle(&mut self) -> Result<(), Stumble> {
        if self.home.is_some() {
            return Ok(());
        }
        let place = self.workers.choose(&self.theorem, &self.patience).map_err(Stumble::Fault)?;
        let address = place.0.address.clone();
        let opened: Opened = self.ask(&place.0, "/open", &self.theorem, &self.patience)?;
        match &self.root {
            None => self.root = Some(opened.goals),
            Some(root) if *root == opened.goals => {}
            Some(_) => {
                let reason = format!("the prover at {address} opens it at another state");
                return Err(Stumble::Fault(Fault(reason)));
            }
        }
        self.nodes[0].there = Some(opened.state);
        self.home = Some(Home { place, session: opened.session });
        Ok(())
    }

    fn ask<A: DeserializeOwned>(
        &self,
        worker: &Worker,
        path: &str,
        request: &impl Serialize,
        patience: &Patience,
    ) -> Result<A, Failure> {
        let wanted = || worker.wanted(patience);
        let post = || self.workers.client.post(&worker.address, path, request, wanted);
        worker.ask(patience, post)
    }

    /// What the service calls a state, found again by its tactics where it is another service.
    fn materialise(&mut self, state: u32) -> Result<u32, Stumble> {
        let (mut path, mut at) = (Vec::new(), state);
        let mut there = loop {
            match self.nodes[at as usize].there {
                Some(there) => break there,
                None => {
                    path.push(at);
                    at = self.nodes[at as usize].parent;
                }
            }
        };
        for step in path.into_iter().rev() {
            let tactic = self.nodes[step as usize].tactic.clone();
            there = match self.run(there, &tactic)? {
                Ran::Open { state, .. } => state,
                Ran::Proved { .. } | Ran::Rejected { .. } => {
                    let reason = format!("replaying the tactics so far: `{tactic}` now ends there");
                    return Err(Stumble::Fault(Fault(reason)));
                }
            };
            let node = &mut self.nodes[step as usize];
            node.there = Some(there);
            // One that was released is found again only as a step towards others.
            if node.released {
                self.unneeded.push(there);
            }
        }
        Ok(there)
    }

    fn run(&mut self, state: u32, tactic: &str) -> Result<Ran, Stumble> {
        let Some(Home { place, session }) = &self.home else {
            return Err(Stumble::Failure(Failure::Forgotten));
        };
        let release = self.unneeded.iter().copied().filter(|&other| other != state).collect();
        let request = Run { session: *session, state, tactic: tactic.to_owned(), release };
        let ran = self.ask(&place.0, "/run", &request, &self.patience)?;
        self.unneeded.retain(|&other| other == state);
        Ok(ran)
    }

    fn attempt(&mut self, state: u32, tactic: &str) -> Result<Ran, Stumble> {
        self.settle()?;
        let there = self.materialise(state)?;
        self.run(there, tactic)
    }

    /// Waits for, or leaves, a service that has not answered.
    fn overcome(&mut self, stumble: Stumble, endurance: &mut Endurance) -> Result<(), Fault> {
        let failure = match stumble {
            Stumble::Fault(fault) => return Err(fault),
            Stumble::Failure(failure) => failure,
        };
        if matches!(failure, Failure::Forgotten | Failure::Lost(_)) {
            self.home = None;
            self.nodes.iter_mut().for_each(|node| node.there = None);
            self.unneeded.clear();
        }
        endurance.bear(failure)
    }
}

/// Why an attempt came to nothing.
enum Stumble {
    Failure(Failure),
    Fault(Fault),
}

impl From<Failure> for Stumble {
    fn from(failure: Failure) -> Self {
        Stumble::Failure(failure)
    }
}

impl Session for RemoteSession {
    fn root(&self) -> &str {
        self.root.as_deref().unwrap_or_default()
    }

    fn apply(&mut self, state: StateId, tactic: &str) -> Result<Verdict, Fault> {
        if self.nodes.get(state.0 as usize).is_none_or(|node| node.released) {
            let state = state.0;
            return Err(Fault(format!("state {state} was never handed out or has been released")));
        }
        let mut endurance = Endurance::new();
        let ran = loop {
            match self.attempt(state.0, tactic) {
                Ok(ran) => break ran,
                Err(stumble) => self.overcome(stumble, &mut endurance)?,
            }
        };
        self.momentary = matches!(ran, Ran::Rejected { momentary: true, .. });
        Ok(match Verdict::from(ran) {
            Verdict::Open { state: there, text } => {
                let number = u32::try_from(self.nodes.len());
                let number = number.map_err(|_| Fault("too many states".into()))?;
                let tactic = tactic.to_owned();
                let there = Some(there.0);
                self.nodes.push(Node { parent: state.0, tactic, there, released: false });
                Verdict::Open { state: StateId(number), text }
            }
            other => other,
        })
    }

    fn momentary(&self) -> bool {
        self.momentary
    }

    fn release(&mut self, state: StateId) {
        if let Some(node) = self.nodes.get_mut(state.0 as usize) {
            node.released = true;
            self.unneeded.extend(node.there);
        }
    }
}

impl Drop for RemoteSession {
    fn drop(&mut self) {
        let Some(Home { place, session }) = self.home.take() else { return };
        // One that may be hanging is left alone, and closes it itself should it wake up.
        if place.0.is_silent() || self.patience.is_over() {
            return;
        }
        let deadline = Some(Instant::now() + FAREWELL);
        let patience = Patience { deadline, ..self.patience.clone() };
        for _ in 0..FAREWELLS {
            let close = Close { session };
            let closed: Result<serde_json::Value, Failure> =
                self.ask(&place.0, "/close", &close, &patience);
            if closed != Err(Failure::Busy) {
                return;
            }
            thread::sleep(WAITS[0]);
        }
    }
}
