//! One server process: how it is started, asked, watched and ended.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::cache::Prepared;
use crate::error::Error;
use crate::options::Options;
use crate::wire::{self, Envelope, Hello, Reply, Request};

const PROTOCOL: u32 = 1;
/// How often a waiting request looks at the worker's memory.
const WATCH: Duration = Duration::from_millis(100);
/// Stack of the worker's main thread: Lean recurses deeply.
const STACK_BYTES: u64 = 600_000 * 1024;

/// What a worker process is made of; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Launch {
    Wasm(Prepared),
    Native { project: PathBuf, server: PathBuf },
}

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
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    said: Arc<Mutex<Vec<u8>>>,
    nonce: String,
    asked: u64,
    memory_mb: u64,
}

impl Process {
    /// Starts a server that imports `imports`, and waits until it is ready.
    pub fn start(launch: &Launch, imports: &[String], options: &Options) -> Result<Process, Error> {
        let mut command = command(launch, imports)?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // SAFETY: between fork and exec only async-signal-safe calls are made, and no memory is
        // allocated.
        unsafe {
            command.pre_exec(|| {
                raise_stack_limit();
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(|e| Error::Start(e.to_string()))?;
        let (sender, lines) = channel();
        let said = Arc::new(Mutex::new(Vec::new()));
        let stdin = child.stdin.take();
        if let Some(out) = child.stdout.take() {
            thread::spawn(move || read_lines(out, &sender));
        }
        if let Some(err) = child.stderr.take() {
            let said = Arc::clone(&said);
            thread::spawn(move || keep_tail(err, &said));
        }
        let nonce = format!("{:016x}", RandomState::new().build_hasher().finish());
        let mut process =
            Process { child, stdin, lines, said, nonce, asked: 0, memory_mb: options.memory_mb };
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
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kb| kb / 1024)
    }

    /// The process's id, for tests that kill it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn kill(&mut self) {
        self.stdin = None;
        // SAFETY: sends a signal to the process group that this process was made the leader of.
        unsafe { libc::kill(-(self.child.id() as libc::pid_t), libc::SIGKILL) };
        let _ = self.child.wait();
    }

    /// The process has closed its output: how did it end, and what did it say?
    fn post_mortem(&mut self) -> Failure {
        self.stdin = None;
        let deadline = Instant::now() + Duration::from_secs(2);
        let mut status = self.child.try_wait().ok().flatten();
        while status.is_none() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
            status = self.child.try_wait().ok().flatten();
        }
        self.kill();
        let said = self
            .said
            .lock()
            .map(|s| String::from_utf8_lossy(&s).trim().to_owned())
            .unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        let last = last.into_iter().rev().collect::<Vec<_>>().join(" / ");
        match status {
            Some(s) if s.signal().is_some() => {
                Failure::Killed(format!("signal {}", s.signal().unwrap_or_default()))
            }
            Some(s) => Failure::Died(format!("exit code {}: {last}", s.code().unwrap_or(-1))),
            None => Failure::Died(format!("it closed its output: {last}")),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn command(launch: &Launch, imports: &[String]) -> Result<Command, Error> {
    Ok(match launch {
        Launch::Wasm(prepared) => {
            let settings = serde_json::json!({
                "runtime": prepared.runtime,
                "boot": "Server",
                "args": imports,
                "watchParent": true,
                "mounts": [["/server", prepared.server.join("lib"), false]],
                "env": { "LEAN_PATH": "/lean/lib:/server" },
            });
            let mut command = Command::new("node");
            // V8 must believe in a little less stack than there is.
            command
                .arg(format!("--stack-size={}", stack_limit() / 1024 * 5 / 6))
                .arg(&prepared.host_script)
                .arg(settings.to_string());
            command
        }
        Launch::Native { project, server } => {
            let mut command = Command::new("lake");
            command.args(["env", "lean", "--run"]).arg(server).args(imports).current_dir(project);
            command
        }
    })
}

/// The stack a worker's main thread will get.
fn stack_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes to the struct it is given.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) } == 0;
    if known { limit.rlim_max.min(STACK_BYTES) } else { 8 << 20 }
}

fn raise_stack_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls only read or write the struct they are given.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_STACK, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max.min(STACK_BYTES);
            libc::setrlimit(libc::RLIMIT_STACK, &limit);
        }
    }
}

fn read_lines(out: impl Read, sender: &Sender<Vec<u8>>) {
    let mut reader = BufReader::new(out);
    loop {
        let mut line = Vec::new();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::launch;
    use crate::options::Host;

    #[test]
    fn lines_that_are_no_requests_do_not_end_the_server() {
        let options = Options::default();
        let launch = launch(&Host::default()).expect("Lean is prepared");
        let mut process =
            Process::start(&launch, &options.imports, &options).expect("the server starts");
        let limit = Duration::from_secs(60);
        for nonsense in
            [&b"\xff\xfe\xfd\n"[..], b"not json\n", b"{\"cmd\":\"tac\"}\n", b"[1,2\n", b"\n"]
        {
            process.send(nonsense).expect("it is alive");
        }
        let start = |statement| Request::Start { ctx: 0, statement, heartbeats: 200_000 };
        let reply = process.ask(&start("theorem t : 1 = 1"), &[7, 8], limit).expect("it answers");
        assert_eq!((reply.ok, reply.goals.as_str()), (true, "⊢ 1 = 1"));
        let reply = process.ask(&Request::Finish { state: 99 }, &[], limit).expect("it answers");
        assert_eq!((reply.ok, reply.kind.as_str()), (false, "request"));
    }

    #[test]
    fn a_module_that_is_not_there_is_named() {
        let options = Options::default();
        let launch = launch(&Host::default()).expect("Lean is prepared");
        let said = Process::start(&launch, &["No.Such.Module".into()], &options)
            .err()
            .expect("it cannot start")
            .to_string();
        assert!(said.contains("No.Such.Module"), "{said}");
    }
}
