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

/// Between two looks at whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(200);

/// What a failed process said last, at most so many lines.
const LAST_WORDS: usize = 5;

/// A task that has ended, and the device that is free now, if it had one.
type Freed = (Option<usize>, Ended);

/// Devices, and what each does.
pub struct Processes {
    /// How the steps of each study are done.
    invocations: Vec<Invocation>,
    devices: Vec<Device>,
    free: VecDeque<usize>,
    /// Tasks that wait: their numbers and their studies' places.
    queue: VecDeque<(usize, usize, Task)>,
    /// The other ends of the processes' inputs, by their tasks: closed, they stop.
    inputs: BTreeMap<usize, ChildStdin>,
    ended: (Sender<Freed>, Receiver<Freed>),
}

impl Processes {
    /// On these devices.
    pub fn new(invocations: Vec<Invocation>, devices: Vec<Device>) -> Self {
        let free = (0..devices.len()).collect();
        let (queue, inputs) = (VecDeque::new(), BTreeMap::new());
        Processes { invocations, devices, free, queue, inputs, ended: channel() }
    }

    /// Starts as many waiting tasks as there are free devices.
    fn start(&mut self) -> Result<()> {
        while let Some(slot) = self.free.pop_front() {
            let Some((number, study, task)) = self.queue.pop_front() else {
                self.free.push_front(slot);
                return Ok(());
            };
            let device = self.devices[slot];
            let place = match device {
                Device::Cpu => format!("cpu:{slot}"),
                device => device.to_string(),
            };
            let program = command::program().context("this program's own path")?;
            let mut child = Command::new(&program[0])
                .args(&program[1..])
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
                let _ = sender.send((Some(slot), watch(number, place, child)));
            });
        }
        Ok(())
    }
}

/// Passes on what a process says, and waits for its end.
fn watch(number: usize, place: String, mut child: Child) -> Ended {
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
    let ended = child.wait();
    let unfinished = ended.as_ref().is_ok_and(|status| status.code() == Some(UNFINISHED));
    let result = match ended {
        Ok(status) if status.success() || unfinished => Ok(printed),
        Ok(status) => {
            let said: Vec<String> = last.into();
            Err(format!("{status}: {}", said.join("\n")))
        }
        Err(error) => Err(error.to_string()),
    };
    Ended { number, place, seconds: begun.elapsed().as_secs_f64(), result, unfinished }
}

impl Crew for Processes {
    fn slots(&self) -> usize {
        self.devices.len()
    }

    fn begin(&mut self, number: usize, study: usize, task: &Task) -> Result<()> {
        self.queue.push_back((number, study, task.clone()));
        self.start()
    }

    fn wait(&mut self) -> Result<Option<Ended>> {
        match self.ended.1.recv_timeout(GLANCE) {
            Ok((slot, ended)) => {
                self.inputs.remove(&ended.number);
                self.free.extend(slot);
                self.start()?;
                Ok(Some(ended))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    fn stop(&mut self) {
        self.inputs.clear();
        // What has not begun has ended.
        for (number, _, task) in self.queue.drain(..) {
            let result = Err(format!("{} was not begun", task.name));
            let (place, seconds, unfinished) = (String::new(), 0.0, false);
            let ended = Ended { number, place, seconds, result, unfinished };
            let _ = self.ended.0.send((None, ended));
        }
    }
}
