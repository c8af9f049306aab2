//! `catamount serve`: a prover behind HTTP, for programs that are not this one.
//!
//! Requests are answered by a fixed number of threads; what they cannot take at once waits in a
//! queue, and what the queue cannot hold is turned away at once, so that no client waits for
//! nothing. See docs/guides/lean-service.md.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use catamount_lean::{Claim, Lean, RulingVerdict};
use catamount_search::{Checked, Environment, Session, StateId, Verdict};
use catamount_traces::Theorem;
use serde::Deserialize;
use serde_json::{Value, json};
use tiny_http::{Header, Method, Request, Response, Server};

use crate::environment::{self, Prover};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    environment: environment::Arguments,
    /// Where to listen. Whoever can reach this address can use the prover.
    #[arg(long, default_value = "127.0.0.1:8417")]
    listen: SocketAddr,
    /// Requests that may wait; more are turned away with status 503.
    #[arg(long, default_value_t = 64)]
    queue: usize,
    /// Theorems that may be open at a time; more are turned away with status 503.
    #[arg(long, default_value_t = 256)]
    sessions: usize,
    /// Seconds after which a theorem that nobody asked about is closed.
    #[arg(long, default_value_t = 600.0)]
    idle: f64,
}

/// The longest request.
const LONGEST: u64 = 1 << 20;
/// What can be asked for.
const PATHS: [&str; 7] = ["/status", "/open", "/run", "/judge", "/check", "/file", "/close"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    session: u64,
    #[serde(default)]
    state: u32,
    tactic: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Close {
    session: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WholeFile {
    text: String,
}

#[derive(Deserialize)]
struct Proof {
    #[serde(flatten)]
    theorem: Theorem,
    tactics: Vec<String>,
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

/// A theorem that is open.
struct Opened {
    session: Box<dyn Session>,
    /// States that were handed out; a client's word for one is not taken.
    states: HashSet<u32>,
    used: Instant,
}

struct Service {
    environment: Arc<dyn Environment>,
    /// The same, where claims of strangers can be ruled on.
    lean: Option<Arc<Lean>>,
    most: usize,
    idle: Duration,
    opened: Mutex<HashMap<u64, Arc<Mutex<Opened>>>>,
    next: AtomicU64,
    waiting: AtomicUsize,
    answered: AtomicU64,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let idle = environment::seconds(arguments.idle, "--idle")?;
    if arguments.queue == 0 || arguments.sessions == 0 {
        bail!("--queue and --sessions are at least 1");
    }
    let (environment, lean): (Arc<dyn Environment>, _) = match arguments.environment.env {
        Prover::Lean => {
            let lean = Arc::new(Lean::new(arguments.environment.lean.options()?)?);
            lean.warm_up()?;
            (Arc::clone(&lean) as Arc<dyn Environment>, Some(lean))
        }
        Prover::Metamath => (arguments.environment.open()?, None),
    };
    let server = Server::http(arguments.listen)
        .map_err(|e| anyhow!("cannot listen on {}: {e}", arguments.listen))?;
    let service = Arc::new(Service {
        environment,
        lean,
        most: arguments.sessions,
        idle,
        opened: Mutex::default(),
        next: AtomicU64::new(1),
        waiting: AtomicUsize::new(0),
        answered: AtomicU64::new(0),
    });
    // What listens may have been given the port by the system.
    println!("listening on http://{}", server.server_addr());
    crate::output::flush();
    let (sender, queue) = sync_channel(arguments.queue);
    let queue = Arc::new(Mutex::new(queue));
    // A worker that waits for its prover must not keep others from the queue.
    let threads = 2 * arguments.environment.lean.workers.max(1);
    for _ in 0..threads {
        let (service, queue) = (Arc::clone(&service), Arc::clone(&queue));
        thread::spawn(move || service.serve(&queue));
    }
    let stop = crate::stop::on_interrupt();
    while !stop.load(Ordering::SeqCst) {
        service.close_idle();
        match server.recv_timeout(Duration::from_millis(500)) {
            Ok(Some(request)) => service.admit(request, &sender),
            Ok(None) => {}
            Err(error) => bail!("the listener failed: {error}"),
        }
    }
    Ok(())
}

impl Service {
    /// Puts a request into the queue, or says at once that it is full.
    fn admit(&self, request: Request, sender: &SyncSender<Request>) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let full = match sender.try_send(request) {
            Ok(()) => return,
            Err(TrySendError::Full(request) | TrySendError::Disconnected(request)) => request,
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        respond(full, Err(Refusal::new(503, "the queue is full; try again later")));
    }

    fn serve(&self, queue: &Mutex<Receiver<Request>>) {
        loop {
            let next = lock(queue).recv();
            let Ok(mut request) = next else { return };
            let answer = self.answer(&mut request);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.answered.fetch_add(1, Ordering::SeqCst);
            respond(request, answer);
        }
    }

    fn answer(&self, request: &mut Request) -> Result<Value, Refusal> {
        let path = request.url().to_owned();
        match (request.method(), path.as_str()) {
            (Method::Get, "/status") => Ok(self.status()),
            (Method::Post, "/open") => self.open(&body(request)?),
            (Method::Post, "/run") => self.run(&body(request)?),
            (Method::Post, "/judge") => self.judge(&body(request)?),
            (Method::Post, "/check") => self.check(&body(request)?),
            (Method::Post, "/file") => self.file(&body(request)?),
            (Method::Post, "/close") => self.close(&body(request)?),
            (_, path) if PATHS.contains(&path) => {
                Err(Refusal::new(405, "GET /status; POST everything else"))
            }
            _ => Err(Refusal::new(404, format!("there are {}", PATHS.join(", ")))),
        }
    }

    fn status(&self) -> Value {
        json!({
            "prover": self.environment.describe(),
            "sessions": lock(&self.opened).len(),
            "waiting": self.waiting.load(Ordering::SeqCst),
            "answered": self.answered.load(Ordering::SeqCst),
        })
    }

    fn open(&self, theorem: &Theorem) -> Result<Value, Refusal> {
        if lock(&self.opened).len() >= self.most {
            return Err(Refusal::new(503, "too many theorems are open; close some"));
        }
        let session = self.environment.open(theorem).map_err(|fault| Refusal::new(422, fault.0))?;
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let goals = session.root().to_owned();
        let opened = Opened { session, states: HashSet::from([0]), used: Instant::now() };
        lock(&self.opened).insert(id, Arc::new(Mutex::new(opened)));
        Ok(json!({ "session": id, "state": 0, "goals": goals }))
    }

    fn run(&self, run: &Run) -> Result<Value, Refusal> {
        let opened = lock(&self.opened).get(&run.session).cloned();
        let opened = opened.ok_or_else(|| Refusal::new(404, "no such session; open it anew"))?;
        let mut opened = lock(&opened);
        if !opened.states.contains(&run.state) {
            return Err(Refusal::new(404, "no such state in this session"));
        }
        opened.used = Instant::now();
        let verdict = opened.session.apply(StateId(run.state), &run.tactic);
        opened.used = Instant::now();
        let said = match verdict.map_err(|fault| Refusal::new(500, fault.0))? {
            Verdict::Open { state, text } => {
                opened.states.insert(state.0);
                json!({ "state": state.0, "goals": text, "done": false })
            }
            Verdict::Proved => json!({ "goals": "", "done": true }),
            Verdict::Rejected { reason } => json!({ "rejected": reason }),
        };
        Ok(said)
    }

    /// The final word on a proof of a theorem that is the client's own, as after a search.
    fn judge(&self, Proof { theorem, tactics }: &Proof) -> Result<Value, Refusal> {
        let checked = self.environment.check(theorem, tactics);
        Ok(match checked.map_err(|fault| Refusal::new(500, fault.0))? {
            Checked::Proved { axioms } => {
                json!({ "name": theorem.name, "verdict": "proved", "axioms": axioms })
            }
            Checked::Refused { reason } => {
                json!({ "name": theorem.name, "verdict": "refused", "reason": reason })
            }
        })
    }

    /// The final word on somebody else's claim, whose header and statement are held to the policy.
    fn check(&self, claim: &Claim) -> Result<Value, Refusal> {
        let lean = self.lean("/check is for --env lean; use /judge")?;
        let ruling = lean.rule(claim).map_err(|fault| Refusal::new(500, fault.0))?;
        match ruling.verdict {
            RulingVerdict::Error => Err(Refusal::new(500, ruling.reason)),
            RulingVerdict::Proved | RulingVerdict::Refused => Ok(json!(ruling)),
        }
    }

    /// What Lean says of a whole file.
    fn file(&self, file: &WholeFile) -> Result<Value, Refusal> {
        let lean = self.lean("/file is for --env lean")?;
        let report = lean.report(&file.text).map_err(|fault| Refusal::new(422, fault.0))?;
        Ok(json!(report))
    }

    fn lean(&self, otherwise: &str) -> Result<&Lean, Refusal> {
        self.lean.as_deref().ok_or_else(|| Refusal::new(404, otherwise))
    }

    fn close(&self, close: &Close) -> Result<Value, Refusal> {
        let closed = lock(&self.opened).remove(&close.session);
        closed.map(|_| json!({})).ok_or_else(|| Refusal::new(404, "no such session"))
    }

    /// Closes what nobody has asked about for long. One that is in use is not idle.
    fn close_idle(&self) {
        lock(&self.opened).retain(|_, opened| {
            opened.try_lock().map_or(true, |opened| opened.used.elapsed() < self.idle)
        });
    }
}

fn body<T: for<'a> Deserialize<'a>>(request: &mut Request) -> Result<T, Refusal> {
    let mut text = Vec::new();
    request
        .as_reader()
        .take(LONGEST + 1)
        .read_to_end(&mut text)
        .map_err(|e| Refusal::new(400, format!("the request could not be read: {e}")))?;
    if text.len() as u64 > LONGEST {
        return Err(Refusal::new(413, format!("a request has at most {LONGEST} bytes")));
    }
    serde_json::from_slice(&text)
        .map_err(|e| Refusal::new(400, format!("not what it should be: {e}")))
}

fn respond(request: Request, answer: Result<Value, Refusal>) {
    let (status, value) = match answer {
        Ok(value) => (200, value),
        Err(Refusal { status, error }) => (status, json!({ "error": error })),
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
