//! A prover that answers over HTTP.
//!
//! Requests are answered by a fixed number of threads; what they cannot take at once waits in a
//! queue, and what the queue cannot hold is turned away at once, so that no client waits for
//! nothing. A request is read before it is queued, so that one which never arrives in full keeps
//! nobody from an answer. How the service is, is said at once, however much there is to do: whoever
//! asks for it wants to know whether anybody is there.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use catamount_lean::{Claim, Lean, RulingVerdict};
use catamount_search::{Environment, Identity, Session, StateId, Verdict};
use catamount_traces::Theorem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tiny_http::{Header, Method, Request, Response, Server};

use crate::busy::Busy;
use crate::protocol::{Close, Judged, Opened, Proof, Ran, Refused, Run, Status, WholeFile};

/// The longest request.
const LONGEST: u64 = 1 << 20;
/// A longer announcement than any request is refused by, and room for which may not be there.
const ABSURD: u64 = 1 << 30;
/// Requests that may be arriving at a time.
const ARRIVING: usize = 256;
/// Numbers of sessions have at most so many bits: more are not exact in every reader of JSON.
const SESSION_BITS: u32 = 53;
/// What can be asked for.
const PATHS: [&str; 7] = ["/status", "/open", "/run", "/judge", "/check", "/file", "/close"];

/// How much a service takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests that may wait.
    pub queue: usize,
    /// Theorems that may be open at a time.
    pub sessions: usize,
    /// After how long a theorem that nobody asks about is closed.
    pub idle: Duration,
    /// Threads that answer.
    pub threads: usize,
}

/// Why a service does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The address cannot be had.
    #[error("cannot listen on {0}: {1}")]
    Address(SocketAddr, String),
    /// It could be had, but no longer.
    #[error("the listener failed: {0}")]
    Listener(String),
}

/// Why a request is not answered with what was asked for.
struct Refusal {
    status: u16,
    error: String,
}

impl Refusal {
    fn new(status: u16, error: impl Into<String>) -> Refusal {
        Refusal { status, error: error.into() }
    }
}

/// A request that has arrived in full.
struct Arrived {
    request: Request,
    body: Vec<u8>,
}

/// A theorem that is open.
struct Open {
    session: Box<dyn Session>,
    /// States that were handed out; a client's word for one is not taken.
    states: HashSet<u32>,
    used: Instant,
}

/// See the module's text.
pub struct Service {
    environment: Arc<dyn Environment>,
    /// What the prover is: a library is hashed once.
    identity: Identity,
    /// The same, where claims of strangers can be ruled on.
    lean: Option<Arc<Lean>>,
    limits: Limits,
    open: Mutex<HashMap<u64, Arc<Mutex<Open>>>>,
    /// Theorems that are being opened, and have a place among those that are.
    opening: AtomicUsize,
    /// What numbers of sessions are made with: nobody finds another's by counting.
    numbers: RandomState,
    next: AtomicU64,
    arriving: AtomicUsize,
    waiting: AtomicUsize,
    answered: AtomicU64,
    busy: Busy,
}

impl Service {
    /// Of a prover.
    pub fn new(environment: Arc<dyn Environment>, limits: Limits) -> Self {
        Service {
            identity: environment.identity(),
            environment,
            lean: None,
            limits,
            open: Mutex::default(),
            opening: AtomicUsize::new(0),
            numbers: RandomState::new(),
            next: AtomicU64::new(0),
            arriving: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            answered: AtomicU64::new(0),
            busy: Busy::new(),
        }
    }

    /// Of Lean, which can rule on claims of strangers as well.
    pub fn of_lean(lean: Arc<Lean>, limits: Limits) -> Self {
        let environment = Arc::clone(&lean) as Arc<dyn Environment>;
        Service { lean: Some(lean), ..Service::new(environment, limits) }
    }

    /// Answers until `stop` is set. What listens may be given its port by the system: `ready` is
    /// told where it is.
    pub fn run(
        self,
        listen: SocketAddr,
        stop: &AtomicBool,
        ready: impl FnOnce(String),
    ) -> Result<(), ServiceError> {
        let server = Server::http(listen)
            .map_err(|error| ServiceError::Address(listen, error.to_string()))?;
        let service = Arc::new(self);
        ready(server.server_addr().to_string());
        let (sender, queue) = sync_channel(service.limits.queue);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..service.limits.threads {
            let (service, queue) = (Arc::clone(&service), Arc::clone(&queue));
            thread::spawn(move || service.serve(&queue));
        }
        while !stop.load(Ordering::SeqCst) {
            service.close_idle();
            match server.recv_timeout(Duration::from_millis(500)) {
                Ok(Some(request)) => receive(&service, request, &sender),
                Ok(None) => {}
                Err(error) => return Err(ServiceError::Listener(error.to_string())),
            }
        }
        Ok(())
    }

    /// Puts a request into the queue, or says at once that it is full.
    fn admit(&self, arrived: Arrived, sender: &SyncSender<Arrived>) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let full = match sender.try_send(arrived) {
            Ok(()) => return,
            Err(TrySendError::Full(arrived) | TrySendError::Disconnected(arrived)) => arrived,
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        respond(full.request, Err(Refusal::new(503, "the queue is full; try again later")));
    }

    fn serve(&self, queue: &Mutex<Receiver<Arrived>>) {
        loop {
            let next = lock(queue).recv();
            let Ok(Arrived { request, body }) = next else { return };
            let answer = self.answer(request.method(), request.url(), &body);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.answered.fetch_add(1, Ordering::SeqCst);
            respond(request, answer);
        }
    }

    fn answer(&self, method: &Method, path: &str, body: &[u8]) -> Result<Value, Refusal> {
        match (method, path) {
            (Method::Post, "/open") => value(&self.open(&read(body)?)?),
            (Method::Post, "/run") => value(&self.run_tactic(&read(body)?)?),
            (Method::Post, "/judge") => value(&self.judge(read(body)?)?),
            (Method::Post, "/check") => self.check(&read(body)?),
            (Method::Post, "/file") => self.file(&read(body)?),
            (Method::Post, "/close") => self.close(&read(body)?),
            (_, path) if PATHS.contains(&path) => {
                Err(Refusal::new(405, "GET /status; POST everything else"))
            }
            _ => Err(Refusal::new(404, format!("there are {}", PATHS.join(", ")))),
        }
    }

    fn status(&self) -> Status {
        let (busy, seconds) = self.busy.seconds();
        Status {
            prover: self.environment.describe(),
            identity: self.identity.clone(),
            setup: self.environment.setup(),
            sessions: lock(&self.open).len(),
            waiting: self.waiting.load(Ordering::SeqCst),
            answered: self.answered.load(Ordering::SeqCst),
            busy,
            seconds,
        }
    }

    fn open(&self, theorem: &Theorem) -> Result<Opened, Refusal> {
        self.take_place()?;
        let opened = self.busy.during(|| self.environment.open(theorem));
        let mut sessions = lock(&self.open);
        self.opening.fetch_sub(1, Ordering::SeqCst);
        let session = opened.map_err(|fault| Refusal::new(422, fault.0))?;
        let mut id = self.number();
        while sessions.contains_key(&id) {
            id = self.number();
        }
        let goals = session.root().to_owned();
        let open = Open { session, states: HashSet::from([0]), used: Instant::now() };
        sessions.insert(id, Arc::new(Mutex::new(open)));
        Ok(Opened { session: id, state: 0, goals })
    }

    /// A place for one more theorem, counted before it is open: others are opened meanwhile.
    fn take_place(&self) -> Result<(), Refusal> {
        let sessions = lock(&self.open);
        if sessions.len() + self.opening.load(Ordering::SeqCst) >= self.limits.sessions {
            return Err(Refusal::new(503, "too many theorems are open; close some"));
        }
        self.opening.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// One that an earlier service at the same address is unlikely to have given.
    fn number(&self) -> u64 {
        let nth = self.next.fetch_add(1, Ordering::SeqCst);
        self.numbers.hash_one(nth) >> (u64::BITS - SESSION_BITS)
    }

    fn run_tactic(&self, run: &Run) -> Result<Ran, Refusal> {
        let open = lock(&self.open).get(&run.session).cloned();
        let open = open.ok_or_else(|| Refusal::new(404, "no such session; open it anew"))?;
        let mut open = lock(&open);
        if !open.states.contains(&run.state) || run.release.contains(&run.state) {
            return Err(Refusal::new(404, "no such state in this session"));
        }
        open.used = Instant::now();
        for state in &run.release {
            if *state != 0 && open.states.remove(state) {
                open.session.release(StateId(*state));
            }
        }
        let applied = self.busy.during(|| open.session.apply(StateId(run.state), &run.tactic));
        open.used = Instant::now();
        let verdict = applied.map_err(|fault| Refusal::new(500, fault.0))?;
        if let Verdict::Open { state, .. } = &verdict {
            open.states.insert(state.0);
        }
        Ok(match verdict {
            Verdict::Rejected { reason } => {
                Ran::Rejected { rejected: reason, momentary: open.session.momentary() }
            }
            other => other.into(),
        })
    }

    /// The final word on a proof of a theorem that is the client's own, as after a search.
    fn judge(&self, Proof { theorem, tactics }: Proof) -> Result<Judged, Refusal> {
        let checked = self.busy.during(|| self.environment.check(&theorem, &tactics));
        let verdict = checked.map_err(|fault| Refusal::new(500, fault.0))?.into();
        Ok(Judged { name: theorem.name, verdict })
    }

    /// The final word on somebody else's claim, whose header and statement are held to the policy.
    fn check(&self, claim: &Claim) -> Result<Value, Refusal> {
        let lean = self.lean("/check is for --env lean; use /judge")?;
        let ruling = self.busy.during(|| lean.rule(claim));
        let ruling = ruling.map_err(|fault| Refusal::new(500, fault.0))?;
        match ruling.verdict {
            RulingVerdict::Error => Err(Refusal::new(500, ruling.reason)),
            RulingVerdict::Proved | RulingVerdict::Refused => value(&ruling),
        }
    }

    /// What Lean says of a whole file.
    fn file(&self, file: &WholeFile) -> Result<Value, Refusal> {
        let lean = self.lean("/file is for --env lean")?;
        let limit = file.limit.map_or(Ok(Duration::MAX), Duration::try_from_secs_f64);
        let limit = limit.map_err(|e| Refusal::new(400, format!("limit: {e}")))?;
        let report = self.busy.during(|| lean.report(&file.text, limit));
        value(&report.map_err(|fault| Refusal::new(422, fault.0))?)
    }

    fn lean(&self, otherwise: &str) -> Result<&Lean, Refusal> {
        self.lean.as_deref().ok_or_else(|| Refusal::new(404, otherwise))
    }

    fn close(&self, close: &Close) -> Result<Value, Refusal> {
        let closed = lock(&self.open).remove(&close.session);
        closed.map(|_| json!({})).ok_or_else(|| Refusal::new(404, "no such session"))
    }

    /// Closes what nobody has asked about for long. One that is in use is not idle.
    fn close_idle(&self) {
        lock(&self.open).retain(|_, open| {
            open.try_lock().map_or(true, |open| open.used.elapsed() < self.limits.idle)
        });
    }
}

fn value(answer: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(answer).map_err(|error| Refusal::new(500, error.to_string()))
}

/// Reads a request in a thread of its own, and hands it on.
fn receive(service: &Arc<Service>, mut request: Request, sender: &SyncSender<Arrived>) {
    // Whoever drops the request makes room for all that it announced, which could be more than
    // there is: it is left alone, unanswered.
    if request.body_length().is_some_and(|bytes| bytes as u64 > ABSURD) {
        return std::mem::forget(request);
    }
    if service.arriving.fetch_add(1, Ordering::SeqCst) >= ARRIVING {
        service.arriving.fetch_sub(1, Ordering::SeqCst);
        // Answered, the rest of it would be waited for: the connection is given up.
        return std::mem::forget(request);
    }
    let (service, sender) = (Arc::clone(service), sender.clone());
    thread::spawn(move || {
        let body = check_sender(&request).and_then(|()| body(&mut request));
        match body {
            Ok(_) if is_status(&request) => {
                let status = value(&service.status());
                service.answered.fetch_add(1, Ordering::SeqCst);
                respond(request, status);
            }
            Ok(body) => service.admit(Arrived { request, body }, &sender),
            Err(refusal) => respond(request, Err(refusal)),
        }
        service.arriving.fetch_sub(1, Ordering::SeqCst);
    });
}

fn is_status(request: &Request) -> bool {
    *request.method() == Method::Get && request.url() == "/status"
}

/// A page that somebody has open in a browser must not run tactics on their machine: browsers say
/// which page a request comes from, and nothing else does.
fn check_sender(request: &Request) -> Result<(), Refusal> {
    if request.headers().iter().any(|header| header.field.equiv("Origin")) {
        return Err(Refusal::new(403, "pages in a browser are not answered"));
    }
    Ok(())
}

fn body(request: &mut Request) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    request
        .as_reader()
        .take(LONGEST + 1)
        .read_to_end(&mut text)
        .map_err(|e| Refusal::new(400, format!("the request could not be read: {e}")))?;
    if text.len() as u64 > LONGEST {
        return Err(Refusal::new(413, format!("a request has at most {LONGEST} bytes")));
    }
    Ok(text)
}

fn read<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|e| Refusal::new(400, format!("not what it should be: {e}")))
}

fn respond(request: Request, answer: Result<Value, Refusal>) {
    let (status, value) = match answer {
        Ok(value) => (200, value),
        Err(Refusal { status, error }) => (status, json!(Refused { error })),
    };
    let mut response = Response::from_string(value.to_string()).with_status_code(status);
    let headers = [("Content-Type", "application/json"), ("Retry-After", "5")];
    for (name, value) in &headers[..if status == 503 { 2 } else { 1 }] {
        if let Ok(header) = Header::from_bytes(*name, *value) {
            response.add_header(header);
        }
    }
    // A client that has gone does not matter to the others.
    let _ = request.respond(response);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
