//! A theorem being proved: states by their tactic paths, so that a worker that is lost, or left for
//! another, costs a replay and nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catamount_search::{Fault, Session, StateId, Verdict};

use crate::found::Found;
use crate::options::Options;
use crate::process::Failure;
use crate::seat::Seat;
use crate::slot::Turn;
use crate::wire::{Reply, Request};
use crate::worker::{Owner, Trouble, Worker};

/// How often a worker may be lost to an outside signal during one call before that is called a
/// fault.
const KILLS: usize = 8;
/// How often a worker may die by itself on one tactic before the tactic is held to be the cause.
const DEATHS: usize = 2;

/// How a theorem is named to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Statement(String),
    Named { name: String, line: u32 },
}

impl Target {
    pub fn request(&self, ctx: u64, heartbeats: u64, owner: Owner) -> Request<'_> {
        let strict = owner == Owner::Stranger;
        match self {
            Target::Statement(statement) => Request::Start { ctx, statement, heartbeats, strict },
            Target::Named { name, line } => {
                Request::Open { ctx, theorem: name, line: *line, heartbeats }
            }
        }
    }
}

/// A state, by how it was reached.
struct Node {
    parent: StateId,
    tactic: String,
    /// Its id at the server and the generation in which that id holds.
    server: Option<(u64, u64)>,
    released: bool,
}

/// See the module's text.
pub(crate) struct LeanSession {
    seat: Seat,
    options: Arc<Options>,
    target: Target,
    found: Arc<Found>,
    /// Whether the proofs of the theorem's own file are elaborated to open it.
    with_proofs: bool,
    /// When all of it must be done, if not only each tactic has its limit.
    deadline: Option<Instant>,
    root: String,
    nodes: Vec<Node>,
    /// Released states whose server ids the worker has yet to be told of.
    unneeded: Vec<StateId>,
    /// Whether the last verdict is our own limits'.
    momentary: bool,
}

impl LeanSession {
    /// Opens the theorem that stands where the seat's place is.
    pub fn open(
        seat: Seat,
        options: Arc<Options>,
        target: Target,
        found: Arc<Found>,
        with_proofs: bool,
    ) -> Result<LeanSession, Opening> {
        let root =
            Node { parent: StateId(0), tactic: String::new(), server: None, released: false };
        let mut session = LeanSession {
            seat,
            options,
            target,
            found,
            with_proofs,
            deadline: None,
            root: String::new(),
            nodes: vec![root],
            unneeded: Vec::new(),
            momentary: false,
        };
        let mut attempts = Attempts::default();
        loop {
            let mut worker = session.turn();
            worker.recycle(session.seat.slot().sessions() <= 1);
            match session.start(&mut worker) {
                Ok(_) => break,
                Err(Trouble::Refused(why)) => return Err(Opening::Refused(why)),
                Err(trouble) => {
                    attempts.again(trouble, "opening the theorem").map_err(|fault| {
                        if attempts.kills > KILLS {
                            Opening::Killed(fault)
                        } else {
                            Opening::Fault(fault)
                        }
                    })?;
                }
            }
        }
        Ok(session)
    }

    /// Everything from here on must be done by then.
    pub fn until(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    fn limit(&self) -> Duration {
        self.within(self.options.request_limit)
    }

    fn within(&self, limit: Duration) -> Duration {
        let left = self.deadline.map(|d| d.saturating_duration_since(Instant::now()));
        left.map_or(limit, |left| left.min(limit))
    }

    /// Its worker, once that is free, or another that is free sooner.
    fn turn(&mut self) -> Turn {
        let nodes = &mut self.nodes;
        self.seat.turn(|| nodes.iter_mut().filter_map(|n| n.server.take()).collect::<Vec<_>>())
    }

    /// The tactics that lead to a state.
    fn path(&self, state: StateId) -> Vec<String> {
        let mut tactics = Vec::new();
        let mut at = state;
        while at != StateId(0) {
            let node = &self.nodes[at.0 as usize];
            tactics.push(node.tactic.clone());
            at = node.parent;
        }
        tactics.reverse();
        tactics
    }

    fn start(&mut self, worker: &mut Worker) -> Result<u64, Trouble> {
        // A stranger's header is proved again here, by the process that is believed nothing.
        let with_proofs = self.with_proofs || self.seat.place().owner == Owner::Stranger;
        let ctx = worker.context(self.seat.place(), with_proofs)?;
        let heartbeats = self.options.heartbeats.max(400_000);
        let request = self.target.request(ctx, heartbeats, self.seat.place().owner);
        // A file is elaborated as far as the theorem when that is opened.
        let limit = match self.target {
            Target::Named { .. } => self.within(self.options.file_limit),
            Target::Statement(_) => self.limit(),
        };
        let reply = worker.demand(&request, limit)?;
        self.root = reply.goals;
        self.nodes[0].server = Some((worker.generation(), reply.state));
        Ok(reply.state)
    }

    /// The server's id of a state, replaying the tactics that lead to it where the server has lost
    /// it.
    fn materialise(&mut self, worker: &mut Worker, state: StateId) -> Result<u64, Trouble> {
        worker.ready(&self.seat.place().imports)?;
        let mut path = Vec::new();
        let mut at = state;
        let mut id = loop {
            match self.nodes[at.0 as usize].server {
                Some((generation, id)) if generation == worker.generation() => break id,
                _ if at == StateId(0) => break self.start(worker)?,
                _ => {
                    path.push(at);
                    at = self.nodes[at.0 as usize].parent;
                }
            }
        };
        for step in path.into_iter().rev() {
            let tactic = self.nodes[step.0 as usize].tactic.clone();
            let request = Request::Tac {
                state: id,
                tactic: &tactic,
                heartbeats: self.options.heartbeats,
                again: true,
            };
            id = worker.demand(&request, self.limit())?.state;
            let node = &mut self.nodes[step.0 as usize];
            node.server = Some((worker.generation(), id));
            // A released state is materialised only as a step towards others.
            if node.released {
                self.unneeded.push(step);
            }
        }
        Ok(id)
    }

    /// One attempt at a tactic: the inner result is the server's word on it.
    fn attempt(
        &mut self,
        worker: &mut Worker,
        state: StateId,
        tactic: &str,
    ) -> Result<Result<Reply, String>, Stage> {
        worker.recycle(false);
        let id = self.materialise(worker, state).map_err(Stage::Replay)?;
        self.forget_unneeded(worker);
        let limit = self.limit();
        let heartbeats = self.options.heartbeats;
        let request = Request::Tac { state: id, tactic, heartbeats, again: false };
        let begin = Instant::now();
        let reply = worker.ask(&request, limit);
        self.seat.tried(begin.elapsed());
        let reply = reply.map_err(Stage::Tactic)?;
        if !reply.ok {
            return Ok(Err(reply.refusal()));
        }
        if !reply.done {
            return Ok(Ok(reply));
        }
        // What it says of itself is no verdict, but it sorts out at once what it would not stand
        // by.
        let finish =
            worker.ask(&Request::Finish { state: reply.state }, limit).map_err(Stage::Tactic)?;
        worker.forget(worker.generation(), [reply.state]);
        if !finish.ok {
            return Ok(Err(finish.refusal()));
        }
        if let Some(reason) = disallowed(&finish.axioms, &self.options.allowed_axioms) {
            return Ok(Err(reason));
        }
        let mut tactics = self.path(state);
        tactics.push(tactic.to_owned());
        self.found.keep(self.seat.place(), &self.target, &tactics, finish.terms);
        Ok(Ok(reply))
    }

    fn forget_unneeded(&mut self, worker: &mut Worker) {
        for state in std::mem::take(&mut self.unneeded) {
            if let Some((generation, id)) = self.nodes[state.0 as usize].server.take() {
                worker.forget(generation, [id]);
            }
        }
    }
}

/// Why a theorem could not be opened.
pub(crate) enum Opening {
    /// The server refuses it.
    Refused(String),
    /// Its process was ended from outside, again and again.
    Killed(Fault),
    /// No process can be had, or it dies or takes too long over it.
    Fault(Fault),
}

/// Where an attempt failed.
enum Stage {
    Replay(Trouble),
    Tactic(Failure),
}

/// Counts failures within one call.
#[derive(Default)]
struct Attempts {
    kills: usize,
    deaths: usize,
    slow: usize,
}

impl Attempts {
    /// Whether to try again after trouble that is not the tactic's doing.
    fn again(&mut self, trouble: Trouble, doing: &str) -> Result<(), Fault> {
        let counter = match &trouble {
            Trouble::Failure(Failure::Killed(_)) => &mut self.kills,
            Trouble::Failure(Failure::Died(_)) => &mut self.deaths,
            // What does not start, such as an import that is not there, does not start again.
            Trouble::Failure(_) | Trouble::Start(_) => &mut self.slow,
            Trouble::Refused(why) => return Err(Fault(format!("{doing}: {why}"))),
        };
        *counter += 1;
        if self.kills > KILLS || self.deaths > DEATHS || self.slow > 1 {
            return Err(Fault(format!("{doing}: {trouble}, again and again")));
        }
        Ok(())
    }
}

/// Why these axioms will not do, if they will not.
pub(crate) fn disallowed(axioms: &[String], allowed: &[String]) -> Option<String> {
    let bad: Vec<&str> =
        axioms.iter().filter(|a| !allowed.contains(a)).map(String::as_str).collect();
    (!bad.is_empty())
        .then(|| format!("axioms: the proof rests on {}, which is not allowed", bad.join(", ")))
}

impl Session for LeanSession {
    fn root(&self) -> &str {
        &self.root
    }

    fn apply(&mut self, state: StateId, tactic: &str) -> Result<Verdict, Fault> {
        if self.nodes.get(state.0 as usize).is_none_or(|n| n.released) {
            return Err(Fault(format!(
                "state {} was never handed out or has been released",
                state.0
            )));
        }
        let (mut attempts, mut full) = (Attempts::default(), false);
        self.momentary = false;
        let reply = loop {
            let mut worker = self.turn();
            match self.attempt(&mut worker, state, tactic) {
                Ok(Ok(reply)) => {
                    if reply.done {
                        return Ok(Verdict::Proved);
                    }
                    self.nodes.push(Node {
                        parent: state,
                        tactic: tactic.to_owned(),
                        server: Some((worker.generation(), reply.state)),
                        released: false,
                    });
                    break reply;
                }
                Ok(Err(reason)) => return Ok(Verdict::Rejected { reason }),
                Err(Stage::Replay(trouble)) => {
                    attempts.again(trouble, "replaying the tactics so far")?
                }
                // It may have been full of other theorems; the next one is new.
                Err(Stage::Tactic(Failure::Memory(_))) if !full => full = true,
                // Our own limits are the tactic's doing; so is a process that dies on it every
                // time.
                Err(Stage::Tactic(failure @ (Failure::Time(_) | Failure::Memory(_)))) => {
                    self.momentary = true;
                    return Ok(Verdict::Rejected { reason: format!("limit: {failure}") });
                }
                Err(Stage::Tactic(failure @ Failure::Died(_))) => {
                    attempts.deaths += 1;
                    if attempts.deaths >= DEATHS {
                        self.momentary = true;
                        return Ok(Verdict::Rejected { reason: format!("limit: {failure}") });
                    }
                }
                Err(Stage::Tactic(failure)) => {
                    attempts.again(failure.into(), "running a tactic")?
                }
            }
        };
        let state = StateId(
            u32::try_from(self.nodes.len() - 1).map_err(|_| Fault("too many states".into()))?,
        );
        Ok(Verdict::Open { state, text: reply.goals })
    }

    fn momentary(&self) -> bool {
        self.momentary
    }

    fn release(&mut self, state: StateId) {
        if let Some(node) = self.nodes.get_mut(state.0 as usize) {
            node.released = true;
            self.unneeded.push(state);
        }
    }
}

impl Drop for LeanSession {
    fn drop(&mut self) {
        self.seat.slot().leave_behind(self.nodes.iter().filter_map(|n| n.server));
    }
}
