//! One server process: how it is started, asked, watched and ended.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::child::Child;
use crate::error::Error;
use crate::launch::Launch;
use crate::options::Options;
use crate::wire::{self, Envelope, Hello, Reply, Request};

const PROTOCOL: u32 = 2;
/// How often a waiting request looks at the worker's memory.
const WATCH: Duration = Duration::from_millis(100);
/// The longest answer. An answer comes from a process that runs other people's code.
const LONGEST_LINE: u64 = 256 << 20;
/// How many lines may wait to be read.
const LINES: usize = 4096;
/// How the host marks what code inside Lean prints.
const MARK: &str = "printed: ";

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It ran past its wall-clock limit.
    Time(Duration),
    /// It took the process past the memory limit.
    Memory(u64),
    /// The process was ended by a signal that we did not send.
    Killed(String),
    /// The process ended by itself.
    Died(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Time(limit) => write!(f, "no answer within {} s", limit.as_secs_f64()),
            Failure::Memory(mb) => write!(f, "the prover needed more than {mb} MiB"),
            Failure::Killed(how) => write!(f, "the prover's process was killed ({how})"),
            Failure::Died(how) => write!(f, "the prover's process died ({how})"),
        }
    }
}

/// A running server. Dropping it ends its whole process group.
pub(crate) struct Process {
    child: Child,
    /// What it may write to, until it has ended.
    scratch: Option<tempfile::TempDir>,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    said: Arc<Mutex<Vec<u8>>>,
    nonce: String,
    asked: u64,
    memory_mb: u64,
    /// The time limit of the request under way.
    limit: Duration,
}

impl Process {
    /// Starts a server that imports `imports`, and waits until it is ready.
    pub fn start(launch: &Launch, imports: &[String], options: &Options) -> Result<Process, Error> {
        let started = launch.start(imports, options)?;
        let mut child = started.child;
        let (sender, lines) = sync_channel(LINES);
        let said = Arc::new(Mutex::new(Vec::new()));
        let (stdin, stdout, stderr) = child.streams();
        if let Some(out) = stdout {
            thread::spawn(move || read_lines(out, &sender));
        }
        if let Some(err) = stderr {
            let said = Arc::clone(&said);
            thread::spawn(move || keep_tail(err, &said));
        }
        let nonce = format!("{:016x}", RandomState::new().build_hasher().finish());
        let mut process = Process {
            child,
            scratch: started.scratch,
            stdin,
            lines,
            said,
            nonce,
            asked: 0,
            memory_mb: options.memory_mb,
            limit: options.start_limit,
        };
        let hello = process
            .wait(options.start_limit, |line| serde_json::from_slice::<Hello>(line).ok())
            .map_err(|f| match f {
                Failure::Killed(how) => Error::Worker(how),
                other => Error::Start(format!("{other}; imports: {}", imports.join(" "))),
            })?;
        if hello.protocol != PROTOCOL {
            return Err(Error::Start(format!(
                "it speaks protocol {}, this program speaks {PROTOCOL}",
                hello.protocol
            )));
        }
        Ok(process)
    }

    /// Asks, and waits for the answer. After a failure the process is gone.
    pub fn ask(
        &mut self,
        request: &Request<'_>,
        drop: &[u64],
        limit: Duration,
    ) -> Result<Reply, Failure> {
        self.asked += 1;
        // The id cannot be guessed, so nothing that is printed by elaborated code passes for an
        // answer.
        let id = format!("{}-{}", self.nonce, self.asked);
        let mut line = serde_json::to_vec(&Envelope { id: &id, drop, request })
            .expect("a request is plain data");
        line.push(b'\n');
        self.send(&line)?;
        self.wait(limit, |line| wire::parse_reply(line, &id))
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let sent = self
            .stdin
            .as_mut()
            .is_some_and(|stdin| stdin.write_all(bytes).and_then(|()| stdin.flush()).is_ok());
        if sent { Ok(()) } else { Err(self.post_mortem()) }
    }

    fn wait<T>(
        &mut self,
        limit: Duration,
        accept: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, Failure> {
        self.limit = limit;
        self.child.allow_processor_time(limit);
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(WATCH)) {
                Ok(line) => {
                    if let Some(answer) = accept(&line) {
                        return Ok(answer);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.post_mortem()),
                Err(RecvTimeoutError::Timeout) => {
                    if left.is_zero() {
                        self.kill();
                        return Err(Failure::Time(limit));
                    }
                    if self.memory().is_some_and(|mb| mb > self.memory_mb) {
                        self.kill();
                        return Err(Failure::Memory(self.memory_mb));
                    }
                }
            }
        }
    }

    /// Resident memory in MiB, where the system tells.
    pub fn memory(&self) -> Option<u64> {
        self.child.memory_mb()
    }

    /// The folder that it may write to.
    pub fn scratch(&self) -> Option<&std::path::Path> {
        self.scratch.as_ref().map(tempfile::TempDir::path)
    }

    /// The process's id, for tests that kill it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn kill(&mut self) {
        self.stdin = None;
        self.child.kill();
    }

    /// The process has closed its output: how did it end, and what did it say?
    fn post_mortem(&mut self) -> Failure {
        self.stdin = None;
        let deadline = Instant::now() + Duration::from_secs(2);
        let mut status = self.child.status();
        while status.is_none() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
            status = self.child.status();
        }
        self.kill();
        let said = self.last_words();
        match status {
            // The only signal that we have the kernel send: processor time ran out.
            Some(s) if s.signal() == Some(libc::SIGXCPU) => Failure::Time(self.limit),
            Some(s) if s.signal().is_some() => {
                Failure::Killed(format!("signal {}", s.signal().unwrap_or_default()))
            }
            Some(s) => Failure::Died(format!("exit code {}: {said}", s.code().unwrap_or(-1))),
            None => Failure::Died(format!("it closed its output: {said}")),
        }
    }

    /// The host's last lines, and apart from them the last one that code inside Lean printed.
    fn last_words(&self) -> String {
        let said = self
            .said
            .lock()
            .map(|s| String::from_utf8_lossy(&s).trim().to_owned())
            .unwrap_or_default();
        let (printed, own): (Vec<&str>, Vec<&str>) =
            said.lines().partition(|line| line.starts_with(MARK));
        let mut words = own[own.len().saturating_sub(3)..].join(" / ");
        if let Some(line) = printed.last() {
            let line: String = line[MARK.len()..].chars().take(200).collect();
            words.push_str(&format!(" (code inside Lean had printed `{line}`)"));
        }
        words
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read_lines(out: impl Read, sender: &SyncSender<Vec<u8>>) {
    let mut reader = BufReader::new(out);
    loop {
        let mut line = Vec::new();
        match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            // A line cut short: whatever comes next is not to be taken for a line.
            Ok(_) if line.len() as u64 == LONGEST_LINE => return,
            // Bytes, not text: whatever is not JSON is noise and will be ignored.
            Ok(_) => {
                if sender.send(line).is_err() {
                    return;
                }
            }
        }
    }
}

/// Keeps the last few kilobytes of what the process says on stderr.
fn keep_tail(mut err: impl Read, said: &Mutex<Vec<u8>>) {
    const KEEP: usize = 4096;
    let mut buffer = [0; 1024];
    while let Ok(n @ 1..) = err.read(&mut buffer) {
        if let Ok(mut said) = said.lock() {
            said.extend_from_slice(&buffer[..n]);
            let excess = said.len().saturating_sub(KEEP);
            said.drain(..excess);
        }
    }
}
