//! A child process: confined, watched together with whatever it starts, and gone when this process
//! is gone.

use std::fs;
use std::io;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::sandbox::{Layer, Program, Sandbox};

/// Stack of a child's main thread: Lean recurses deeply.
const STACK_BYTES: u64 = 600_000 * 1024;

/// Processor time of a process in its life, which nothing that it does about signals lengthens. It
/// can only be lowered, so it is far above what is allowed from request to request.
#[cfg(target_os = "linux")]
const LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// See the module's text. Dropping it ends the process and everything it started.
pub(crate) struct Child {
    inner: std::process::Child,
    /// Until when it has been allowed processor time, and when that was last said.
    allowed: Option<(Duration, Instant)>,
    /// The seconds at which the kernel was to end each process.
    ends: Vec<(u32, u64)>,
}

impl Child {
    /// Starts `program` with its three streams as pipes.
    pub fn spawn(program: &Program, sandbox: &Sandbox, layer: &Layer) -> io::Result<Child> {
        let mut command = sandbox.command(program, layer).map_err(io::Error::other)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The kernel ends a child when the thread that started it ends, so a thread that lasts as
        // long as this process starts them all.
        let inner = on_lasting_thread(move || command.spawn())??;
        Ok(Child { inner, allowed: None, ends: Vec::new() })
    }

    pub fn id(&self) -> u32 {
        self.inner.id()
    }

    pub fn streams(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.inner.stdin.take(), self.inner.stdout.take(), self.inner.stderr.take())
    }

    pub fn status(&mut self) -> Option<ExitStatus> {
        self.inner.try_wait().ok().flatten()
    }

    /// Resident memory in MiB of the process and of all that it started, where the system tells.
    pub fn memory_mb(&self) -> Option<u64> {
        let resident = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
            line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
        };
        let family = family(self.id());
        let kib: Vec<u64> = family.iter().filter_map(resident).collect();
        (!kib.is_empty()).then(|| kib.iter().sum::<u64>() / 1024)
    }

    /// Allows the process so much more processor time than it has used; the kernel ends it there. A
    /// process that answered and works on in the background is ended by this too. One that has got
    /// past its end, because it will not hear the signal, is killed.
    #[cfg(target_os = "linux")]
    pub fn allow_processor_time(&mut self, more: Duration) {
        const SAID_OFTEN_ENOUGH: Duration = Duration::from_secs(1);
        if self.allowed.is_some_and(|(m, at)| m == more && at.elapsed() < SAID_OFTEN_ENOUGH) {
            return;
        }
        self.allowed = Some((more, Instant::now()));
        let threads = thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let ends = std::mem::take(&mut self.ends);
        for pid in family(self.id()) {
            let Some(used) = processor_seconds(pid) else { continue };
            if ends.iter().any(|(of, end)| *of == pid && used > *end + 1) {
                return self.kill();
            }
            let soft = (used + more.as_secs() * threads + 2).min(LIFE.as_secs());
            self.ends.push((pid, soft));
            let limit = libc::rlimit { rlim_cur: soft, rlim_max: LIFE.as_secs() };
            // SAFETY: reads the struct it is given. A process that is gone needs no limit.
            unsafe {
                libc::prlimit(pid as libc::pid_t, libc::RLIMIT_CPU, &limit, std::ptr::null_mut())
            };
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn allow_processor_time(&mut self, _: Duration) {}

    /// Ends the process group.
    pub fn kill(&mut self) {
        // SAFETY: sends a signal to the process group that this process was made the leader of.
        unsafe { libc::kill(-(self.id() as libc::pid_t), libc::SIGKILL) };
        let _ = self.inner.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A process and its descendants.
fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while at < all.len() {
        let tasks = fs::read_dir(format!("/proc/{}/task", all[at]));
        for task in tasks.into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|c| c.parse::<u32>().ok()));
        }
        at += 1;
    }
    all
}

#[cfg(target_os = "linux")]
fn processor_seconds(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in brackets that may hold anything.
    let mut rest = stat.rsplit_once(')')?.1.split_whitespace();
    let user: u64 = rest.nth(11)?.parse().ok()?;
    let system: u64 = rest.next()?.parse().ok()?;
    // SAFETY: asks for a constant.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    Some((user + system) / ticks)
}

/// The stack that a child's main thread will get.
pub(crate) fn stack_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes to the struct it is given.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) } == 0;
    if known { limit.rlim_max.min(STACK_BYTES) } else { 8 << 20 }
}

pub(crate) fn raise_stack_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls only read or write the struct they are given.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_STACK, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max.min(STACK_BYTES);
            libc::setrlimit(libc::RLIMIT_STACK, &limit);
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Runs `work` on a thread that ends only with this process.
fn on_lasting_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    // A fork of this process has a copy of this and no thread: the process's id tells.
    static THREAD: Mutex<Option<(u32, Sender<Job>)>> = Mutex::new(None);
    let (answer, answered) = channel();
    let job: Job = Box::new(move || {
        // Whoever asked waits below.
        let _ = answer.send(work());
    });
    {
        let mut thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
        let here = std::process::id();
        if thread.as_ref().is_none_or(|(pid, _)| *pid != here) {
            let (sender, jobs) = channel::<Job>();
            thread::Builder::new().name("starts processes".into()).spawn(move || {
                for job in jobs {
                    job();
                }
            })?;
            *thread = Some((here, sender));
        }
        if let Some((_, sender)) = &*thread {
            sender.send(job).map_err(|_| io::Error::other("no thread starts processes"))?;
        }
    }
    answered.recv().map_err(io::Error::other)
}

/// Real programs in a prover's place: what confines, watches and ends one is the same for all.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::escape;
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;

    fn script(text: &str) -> Program {
        Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), text.into()],
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            ..Program::default()
        }
    }

    fn sandbox() -> Sandbox {
        Sandbox { memory_mb: 64, ..Sandbox::default() }
    }

    fn unconfined() -> Layer {
        Layer::None("a test".into())
    }

    fn wait(child: &mut Child) -> ExitStatus {
        loop {
            if let Some(status) = child.status() {
                return status;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn holds(layer: &Layer) {
        let mut wrong = Vec::new();
        escape::by_a_shell(layer, |finding| {
            if !finding.ok {
                wrong.push(finding);
            }
        });
        assert!(wrong.is_empty(), "{layer}: {wrong:#?}");
    }

    #[test]
    fn landlock_and_seccomp_hold_a_program() {
        match Layer::here() {
            Layer::Landlock(version) => holds(&Layer::Landlock(*version)),
            other => eprintln!("skipped: this machine has no Landlock, but {other}"),
        }
    }

    /// As on Linux 6.1, whose Landlock has no rule for files that are cut off.
    #[test]
    fn an_older_landlock_and_seccomp_hold_a_program() {
        match Layer::here() {
            Layer::Landlock(2..) => holds(&Layer::Landlock(2)),
            other => eprintln!("skipped: this machine has {other}"),
        }
    }

    #[test]
    fn bubblewrap_holds_a_program() {
        match Layer::bubblewrap() {
            Ok(layer) => holds(&layer),
            Err(why) => eprintln!("skipped: {why}"),
        }
    }

    #[test]
    fn the_attempts_succeed_where_nothing_confines_them() {
        let mut held = Vec::new();
        escape::by_a_shell(&unconfined(), |finding| held.push((finding.what, finding.ok)));
        // The limits on memory and on a file are set on every child.
        let expected = [false, false, false, false, false, false, false, false, true, true];
        assert_eq!(held.iter().map(|(_, ok)| *ok).collect::<Vec<_>>(), expected, "{held:?}");
    }

    #[test]
    fn memory_is_that_of_everything_a_program_started() {
        let hungry = "dd if=/dev/zero of=/dev/null bs=200M count=100000 & wait";
        let child = Child::spawn(&script(hungry), &sandbox(), &unconfined()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while child.memory_mb().is_none_or(|mb| mb < 190) {
            assert!(Instant::now() < deadline, "only {:?} MiB were seen", child.memory_mb());
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn processor_time_ends_what_spins_unasked() {
        let mut child =
            Child::spawn(&script("while :; do :; done"), &sandbox(), Layer::here()).unwrap();
        child.allow_processor_time(Duration::ZERO);
        assert_eq!(wait(&mut child).signal(), Some(libc::SIGXCPU));
    }

    #[test]
    fn a_child_that_will_not_hear_its_end_is_killed() {
        let deaf = script("trap '' XCPU; while :; do :; done");
        let mut child = Child::spawn(&deaf, &sandbox(), Layer::here()).unwrap();
        child.allow_processor_time(Duration::ZERO);
        let deadline = Instant::now() + Duration::from_secs(60);
        while processor_seconds(child.id()).is_some_and(|used| used < 4) {
            assert!(Instant::now() < deadline && child.status().is_none(), "it ended by itself");
            thread::sleep(Duration::from_millis(50));
        }
        child.allow_processor_time(Duration::from_secs(1));
        assert_eq!(wait(&mut child).signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let started = thread::spawn(|| {
            Child::spawn(&script("read line; echo $line"), &sandbox(), Layer::here()).unwrap()
        });
        let mut child = started.join().unwrap();
        let (stdin, stdout, _) = child.streams();
        thread::sleep(Duration::from_millis(100));
        io::Write::write_all(&mut stdin.unwrap(), b"alive\n").unwrap();
        let mut said = String::new();
        stdout.unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "alive\n");
    }

    #[test]
    fn a_child_does_not_outlive_this_process() {
        const MARK: &str = "CATAMOUNT_TEST_PARENT";
        if std::env::var_os(MARK).is_some() {
            let child = Child::spawn(&script("read line"), &sandbox(), Layer::here()).unwrap();
            println!("child {}", child.id());
            thread::sleep(Duration::from_secs(60));
            return;
        }
        let name = "child::tests::a_child_does_not_outlive_this_process";
        let mut parent = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(MARK, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = io::BufRead::lines(io::BufReader::new(parent.stdout.take().unwrap()));
        let said = lines.map(Result::unwrap).find(|line| line.contains("child ")).unwrap();
        let pid = said.rsplit(' ').next().unwrap();
        let runs = || fs::metadata(format!("/proc/{pid}")).is_ok();
        assert!(runs());
        parent.kill().unwrap();
        parent.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        while runs() {
            assert!(Instant::now() < deadline, "process {pid} lives on");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
