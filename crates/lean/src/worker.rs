//! A worker: a server process that is replaced when it is lost, together with what it has loaded.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::assets;
use crate::error::Error;
use crate::helpers;
use crate::launch::Launch;
use crate::ledger::{Ledger, Work};
use crate::modules::BEFORE;
use crate::options::{Host, Options};
use crate::process::{Failure, Process};
use crate::source::Source;
use crate::wire::{Reply, Request};

/// Where a theorem stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Modules that must be imported.
    pub imports: Vec<String>,
    pub text: PlaceText,
    /// Whose it is.
    pub owner: Owner,
}

/// Whose header and statement these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// The user's: a library, or a pool to search. They mean what they say.
    User,
    /// Somebody else's: held to the policy, which refuses what could mislead a reader.
    Stranger,
}

impl Place {
    /// Names the place and the theorem there, for what is kept about it.
    pub fn key(&self) -> String {
        let text = match &self.text {
            PlaceText::Header(text) => format!("header\n{text}"),
            PlaceText::File(source) => format!("file\n{}", source.path),
        };
        format!("{:?} {}\n{text}", self.owner, self.imports.join(" "))
    }
}

/// What has to be elaborated on top of the imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlaceText {
    /// Commands before the statement.
    Header(String),
    /// The file that holds the theorem; what it imports is there compiled.
    File(Arc<Source>),
}

/// What is asked for when a file is elaborated.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Task<'a> {
    pub trace: bool,
    /// Whether proofs are elaborated; otherwise its theorems are there by their statements.
    pub proofs: bool,
    /// Where the compiled module goes, as the process sees it; empty: nowhere.
    pub save: &'a str,
}

/// Why a worker did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The process failed; another attempt may succeed.
    Failure(Failure),
    /// No process can be had.
    Start(Error),
    /// The server answered, with a refusal of what was asked.
    Refused(String),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble::Failure(failure)
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Failure(failure) => failure.fmt(f),
            Trouble::Start(error) => error.fmt(f),
            Trouble::Refused(why) => f.write_str(why),
        }
    }
}

/// How many requests a process must have served before its memory alone is a reason to replace it.
const SETTLED: u64 = 200;
/// How often memory is looked at between requests.
const MEMORY_EVERY: u64 = 32;

/// See the module's text.
pub(crate) struct Worker {
    launch: Launch,
    options: Arc<Options>,
    process: Option<Process>,
    imports: Vec<String>,
    /// Counts processes: an id given by the server means something only within its generation.
    generation: u64,
    contexts: HashMap<String, u64>,
    served: u64,
    /// Strangers' claims that the process has been given.
    claims: usize,
    drops: Vec<u64>,
    /// Where it is written down what its processes work at.
    ledger: Arc<Ledger>,
    /// The id of its process, 0 for none: for those who do not wait until it is at rest.
    id: Arc<AtomicU32>,
    load: Arc<Load>,
}

/// How full a worker's process is: for those who do not wait until it is at rest.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Resident memory in MiB when a file or a theorem was last opened, 0 for no process.
    pub mb: AtomicU64,
    /// How many files and headers were loaded then.
    pub contexts: AtomicUsize,
}

impl Worker {
    pub fn new(launch: Launch, options: Arc<Options>) -> Worker {
        Worker::accounted(launch, options, Arc::default())
    }

    /// One whose work is written down.
    pub fn accounted(launch: Launch, options: Arc<Options>, ledger: Arc<Ledger>) -> Worker {
        Worker {
            launch,
            options,
            process: None,
            imports: Vec::new(),
            generation: 0,
            contexts: HashMap::new(),
            served: 0,
            claims: 0,
            drops: Vec::new(),
            ledger,
            id: Arc::default(),
            load: Arc::default(),
        }
    }

    /// Counts a stranger's claim that this process has been given.
    pub fn claimed(&mut self) {
        self.claims += 1;
    }

    /// How many strangers' claims the process has been given.
    pub fn claims(&self) -> usize {
        self.claims
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The id of its process, 0 for none.
    pub fn process_id(&self) -> &Arc<AtomicU32> {
        &self.id
    }

    /// How full its process is.
    pub fn load(&self) -> &Arc<Load> {
        &self.load
    }

    fn weigh(&self) {
        self.load.mb.store(self.memory().unwrap_or(0), Ordering::Relaxed);
        self.load.contexts.store(self.contexts.len(), Ordering::Relaxed);
    }

    /// Resident memory of the running process in MiB.
    pub fn memory(&self) -> Option<u64> {
        self.process.as_ref().and_then(Process::memory)
    }

    /// Makes sure that a process with these imports runs.
    pub fn ready(&mut self, imports: &[String]) -> Result<(), Trouble> {
        if self.process.is_some() && self.imports == imports {
            return Ok(());
        }
        self.stop();
        let begin = Instant::now();
        let process = Process::start(&self.launch, imports, &self.options);
        self.ledger.add(Work::Starting, begin.elapsed());
        self.process = Some(process.map_err(|e| match e {
            Error::Worker(how) => Trouble::Failure(Failure::Killed(how)),
            other => Trouble::Start(other),
        })?);
        self.id.store(self.process.as_ref().map_or(0, Process::id), Ordering::Relaxed);
        self.imports = imports.to_vec();
        self.generation += 1;
        Ok(())
    }

    /// Ends the process and forgets what it held.
    pub fn stop(&mut self) {
        self.id.store(0, Ordering::Relaxed);
        self.process = None;
        self.imports.clear();
        self.contexts.clear();
        self.weigh();
        self.drops.clear();
        self.served = 0;
        self.claims = 0;
    }

    /// Replaces a process that has served long or grown large; sessions replay when they next need
    /// it.
    pub fn recycle(&mut self, at_rest: bool) {
        let old = at_rest && self.served >= self.options.recycle_requests;
        let large = self.served >= SETTLED
            && (at_rest || self.served.is_multiple_of(MEMORY_EVERY))
            && self.memory().is_some_and(|mb| mb >= self.options.recycle_mb);
        if old || large {
            self.stop();
        }
    }

    /// States of this generation that nobody needs any more; told to the server with the next
    /// request.
    pub fn forget(&mut self, generation: u64, states: impl IntoIterator<Item = u64>) {
        if generation == self.generation && self.process.is_some() {
            self.drops.extend(states);
        }
    }

    /// Asks the running process. A failure ends it.
    pub fn ask(&mut self, request: &Request<'_>, limit: Duration) -> Result<Reply, Failure> {
        let drops = std::mem::take(&mut self.drops);
        let Some(process) = self.process.as_mut() else {
            return Err(Failure::Died("it is not running".into()));
        };
        self.served += 1;
        let begin = Instant::now();
        let result = process.ask(request, &drops, limit);
        self.ledger.add(Work::of(request), begin.elapsed());
        match result {
            Err(_) => self.stop(),
            Ok(_) if Work::of(request) == Work::Opening => self.weigh(),
            Ok(_) => {}
        }
        result
    }

    /// As [`Worker::ask`], where only a positive answer will do.
    pub fn demand(&mut self, request: &Request<'_>, limit: Duration) -> Result<Reply, Trouble> {
        let reply = self.ask(request, limit)?;
        if reply.ok { Ok(reply) } else { Err(Trouble::Refused(reply.refusal())) }
    }

    /// What the process has imported, and the contexts that it holds.
    pub fn holdings(&self) -> (&[String], impl Iterator<Item = &String>) {
        (&self.imports, self.contexts.keys())
    }

    /// The folder that the running process may write to.
    pub fn scratch(&self) -> Option<&std::path::Path> {
        self.process.as_ref().and_then(Process::scratch)
    }

    /// The server's context for a place, elaborated if need be: with the proofs of a file, or where
    /// compiled modules say what its theorems rest on, without.
    pub fn context(&mut self, place: &Place, proofs: bool) -> Result<u64, Trouble> {
        self.ready(&place.imports)?;
        match &place.text {
            PlaceText::Header(text) if text.trim().is_empty() => Ok(0),
            PlaceText::Header(text) => self.header(
                text,
                place.owner == Owner::Stranger,
                place.owner == Owner::User || proofs,
            ),
            PlaceText::File(source) => {
                let key = key(source, proofs);
                if let Some(&ctx) = self.contexts.get(&key) {
                    return Ok(ctx);
                }
                // One more file would not fit; what nobody uses any more cannot be given back.
                if self.memory().is_some_and(|mb| mb >= self.options.recycle_mb) {
                    self.stop();
                    self.ready(&place.imports)?;
                }
                let ctx = self.file(source, Task { proofs, ..Task::default() })?.ctx;
                self.contexts.insert(key, ctx);
                self.weigh();
                Ok(ctx)
            }
        }
    }

    /// The context that a header makes; with `strict` it is held to the policy, and only with
    /// `proofs` are those of its theorems elaborated.
    pub fn header(&mut self, text: &str, strict: bool, proofs: bool) -> Result<u64, Trouble> {
        let key = format!("header {strict} {proofs}\n{text}");
        if let Some(&ctx) = self.contexts.get(&key) {
            return Ok(ctx);
        }
        let limit = self.options.request_limit;
        let ctx = self.demand(&Request::Header { ctx: 0, text, strict, proofs }, limit)?.ctx;
        self.contexts.insert(key, ctx);
        Ok(ctx)
    }

    /// Elaborates one file on top of its own imports: to its end if it is traced or compiled,
    /// otherwise as far as theorems are opened.
    pub fn file(&mut self, source: &Source, task: Task<'_>) -> Result<Reply, Trouble> {
        let helpers = self.launch.has_helpers();
        let (before, after) = match self.options.host {
            Host::Native { .. } => (source.options.clone(), ""),
            Host::Wasm { .. } => (
                [BEFORE, &assets::newer_names(&source.text, helpers)].join("\n"),
                assets::patch(&source.module, helpers),
            ),
        };
        let more = helpers.then(|| source.importing(helpers::MODULE));
        let request = Request::File {
            ctx: 0,
            text: more.as_ref().map_or(&source.text, |more| &more.text),
            path: &source.path,
            module: &source.module,
            trace: task.trace,
            messages: false,
            proofs: task.proofs,
            imports: true,
            initialise: more.is_some(),
            without: &source.without,
            before: &before,
            after,
            save: task.save,
            whole: task.trace || !task.save.is_empty(),
        };
        let limit = self.options.file_limit;
        self.demand(&request, limit)
    }

    /// Elaborates a text on top of what the process has imported, for what Lean says of it; nothing
    /// of it is kept.
    pub fn look_at(&mut self, text: &str, limit: Duration) -> Result<Reply, Trouble> {
        // Where the compiler lacks what it needs, a definition must not fail for that.
        let before = match self.options.host {
            Host::Native { .. } => "",
            Host::Wasm { .. } => "noncomputable section",
        };
        let request = Request::File {
            ctx: 0,
            text,
            path: "file.lean",
            module: "File",
            trace: false,
            messages: true,
            proofs: true,
            imports: false,
            initialise: false,
            without: &[],
            before,
            after: "",
            save: "",
            whole: true,
        };
        self.demand(&request, limit)
    }
}

/// Names a file's context within one generation.
pub(crate) fn key(source: &Source, proofs: bool) -> String {
    format!("file {proofs}\n{}", source.path)
}
