//! Several devices of this machine: a process for each, a task at a time.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use catamount_experiment::Task;

use crate::command;
use crate::device::Device;
use crate::fleet::{Crew, Ended, Invocation, UNFINISHED};
use crate::stop;

/// Between two looks at whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(200);

/// What a failed process said last, at most so many lines.
const LAST_WORDS: usize = 5;

/// How many threads a process computes with.
const THREADS: &str = "RAYON_NUM_THREADS";

/// Exit status of a process that was stopped.
const STOPPED: i32 = 130;

/// A task that has ended.
struct Freed {
    /// The device that is free now, if it had one.
    slot: Option<usize>,
    /// Whether it failed by itself.
    failed: bool,
    ended: Ended,
}

/// A task that waits, or is being done.
#[derive(Clone)]
struct Given {
    number: usize,
    study: usize,
    task: Task,
    /// The device that it failed on: it may be that one's fault.
    failed_on: Option<usize>,
}

/// Devices, and what each does.
pub struct Processes {
    /// How the steps of each study are done.
    invocations: Vec<Invocation>,
    devices: Vec<Device>,
    free: VecDeque<usize>,
    queue: VecDeque<Given>,
    running: BTreeMap<usize, Given>,
    /// The other ends of the processes' inputs, by their tasks: closed, they stop.
    inputs: BTreeMap<usize, ChildStdin>,
    ended: (Sender<Freed>, Receiver<Freed>),
    stopping: bool,
}

impl Processes {
    /// On these devices.
    pub fn new(invocations: Vec<Invocation>, devices: Vec<Device>) -> Self {
        let free = (0..devices.len()).collect();
        let (queue, running, inputs) = (VecDeque::new(), BTreeMap::new(), BTreeMap::new());
        let ended = channel();
        Processes { invocations, devices, free, queue, running, inputs, ended, stopping: false }
    }

    fn place(&self, slot: usize) -> String {
        match self.devices[slot] {
            Device::Cpu => format!("cpu:{slot}"),
            device => device.to_string(),
        }
    }

    /// The next task that a free device may do, and the device.
    fn next(&mut self) -> Option<(usize, Given)> {
        for at in 0..self.queue.len() {
            let failed_on = self.queue[at].failed_on;
            if let Some(place) = self.free.iter().position(|slot| failed_on != Some(*slot)) {
                return self.free.remove(place).zip(self.queue.remove(at));
            }
        }
        None
    }

    /// Starts as many waiting tasks as there are free devices.
    fn start(&mut self) -> Result<()> {
        while let Some((slot, given)) = self.next() {
            let Given { number, study, task, .. } = given.clone();
            let (device, place) = (self.devices[slot], self.place(slot));
            self.running.insert(number, given);
            let program = command::program().context("this program's own path")?;
            // Each has its share of the processors, unless the user says otherwise.
            let cores = thread::available_parallelism().map_or(1, usize::from);
            let share = (cores / self.devices.len()).max(1).to_string();
            let threads = std::env::var(THREADS).unwrap_or(share);
            let mut child = Command::new(&program[0])
                .args(&program[1..])
                .env(THREADS, threads)
                .args(self.invocations[study].arguments(&device.to_string(), &task))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .with_context(|| format!("starting a process for {}", task.name))?;
            if let Some(input) = child.stdin.take() {
                self.inputs.insert(number, input);
            }
            let sender = self.ended.0.clone();
            thread::spawn(move || {
                // Nobody listens any more only when this process ends.
                let (failed, ended) = watch(number, place, child);
                let _ = sender.send(Freed { slot: Some(slot), failed, ended });
            });
        }
        Ok(())
    }

    /// Gives a task that failed by itself to another device, once.
    fn again(&mut self, freed: &Freed) -> bool {
        let Some(mut given) = self.running.remove(&freed.ended.number) else { return false };
        let Err(reason) = &freed.ended.result else { return false };
        let tried = self.devices.len() < 2 || given.failed_on.is_some();
        if !freed.failed || tried || self.stopping || stop::requested() {
            return false;
        }
        let last = reason.lines().last().unwrap_or_default();
        eprintln!(
            "{}: failed on {}: {last}; it is done again on another device",
            given.task.name, freed.ended.place
        );
        given.failed_on = freed.slot;
        self.queue.push_front(given);
        true
    }
}

/// Passes on what a process says, and waits for its end: whether it failed by itself, and how it
/// ended.
fn watch(number: usize, place: String, mut child: Child) -> (bool, Ended) {
    let begun = Instant::now();
    let mut last: VecDeque<String> = VecDeque::new();
    // Its output is a table at most, which a pipe holds.
    if let Some(errors) = child.stderr.take() {
        for line in BufReader::new(errors).lines().map_while(std::result::Result::ok) {
            note!("{place}: {line}");
            last.push_back(line);
            if last.len() > LAST_WORDS {
                last.pop_front();
            }
        }
    }
    let mut printed = String::new();
    if let Some(mut output) = child.stdout.take() {
        let _ = output.read_to_string(&mut printed);
    }
    let status = child.wait();
    let code = status.as_ref().ok().and_then(|status| status.code());
    let unfinished = code == Some(UNFINISHED);
    let failed =
        status.as_ref().is_ok_and(|s| !s.success()) && !unfinished && code != Some(STOPPED);
    let result = match status {
        Ok(status) if status.success() || unfinished => Ok(printed),
        Ok(status) => {
            let said: Vec<String> = last.into();
            Err(format!("{status}: {}", said.join("\n")))
        }
        Err(error) => Err(error.to_string()),
    };
    let seconds = begun.elapsed().as_secs_f64();
    (failed, Ended { number, place, seconds, result, unfinished })
}

impl Crew for Processes {
    fn slots(&self) -> usize {
        self.devices.len()
    }

    fn begin(&mut self, number: usize, study: usize, task: &Task) -> Result<()> {
        self.queue.push_back(Given { number, study, task: task.clone(), failed_on: None });
        self.start()
    }

    fn wait(&mut self) -> Result<Option<Ended>> {
        match self.ended.1.recv_timeout(GLANCE) {
            Ok(freed) => {
                self.inputs.remove(&freed.ended.number);
                let again = self.again(&freed);
                self.free.extend(freed.slot);
                self.start()?;
                Ok((!again).then_some(freed.ended))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
        self.inputs.clear();
        // What has not begun has ended.
        for Given { number, task, .. } in self.queue.drain(..) {
            let result = Err(format!("{} was not begun", task.name));
            let (place, seconds, unfinished) = (String::new(), 0.0, false);
            let ended = Ended { number, place, seconds, result, unfinished };
            let _ = self.ended.0.send(Freed { slot: None, failed: false, ended });
        }
    }
}
