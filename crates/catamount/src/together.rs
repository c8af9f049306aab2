//! Steps of studies side by side on one device. A small model leaves a card waiting, and processes
//! on one card take turns; threads of one process, each with streams of its own, have it together.
//! What a step makes does not depend on what is done beside it.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use catamount_base::guarded;
use catamount_experiment::{Error, OpenProver, Planned, Task, run_steps};
use catamount_model::Backend;

use crate::device::{Device, OnDevice};
use crate::fleet::{self, Crew, Ended, Work};
use crate::{experiment, step, stop};

/// Between two looks at whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(200);

/// Has studies done by so many threads on one device.
pub fn run(works: &[Work<'_>], device: Device, slots: usize) -> Result<()> {
    let device = device.settled();
    let queue = Queue::default();
    let provers: Vec<Mutex<Option<OpenProver>>> = works.iter().map(|_| Mutex::default()).collect();
    let (sender, ended) = channel();
    thread::scope(|scope| {
        for number in 0..slots {
            let place = format!("{device}/{number}");
            let (queue, provers, ended) = (&queue, &provers[..], sender.clone());
            scope.spawn(move || {
                let slot = Slot { place: place.clone(), works, provers, queue, ended: &ended };
                if let Err(error) = device.run(slot) {
                    // Without its device, a thread can only say why.
                    while let Some(given) = queue.take() {
                        given.ended(&place, Err(format!("{error:#}")), &ended);
                    }
                }
            });
        }
        let mut crew = Together { queue: &queue, ended: (sender, ended) };
        let result = fleet::run(works, &mut crew);
        queue.close();
        result
    })
}

/// A task that was handed out.
struct Given {
    number: usize,
    study: usize,
    task: Task,
}

impl Given {
    fn ended(self, place: &str, result: Result<String, String>, to: &Sender<Ended>) {
        let (number, place) = (self.number, place.to_string());
        // Nobody listens any more only when the program ends.
        let _ = to.send(Ended { number, place, seconds: 0.0, result, unfinished: false });
    }
}

/// Tasks that wait for a thread.
#[derive(Default)]
struct Queue {
    tasks: Mutex<(VecDeque<Given>, bool)>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Given>, bool)> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, given: Given) {
        self.lock().0.push_back(given);
        self.changed.notify_one();
    }

    /// Waits for a task; none once there will be no more.
    fn take(&self) -> Option<Given> {
        let mut tasks = self.lock();
        loop {
            if let Some(given) = tasks.0.pop_front() {
                return Some(given);
            }
            if tasks.1 {
                return None;
            }
            tasks = self.changed.wait(tasks).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.lock().1 = true;
        self.changed.notify_all();
    }
}

/// One thread, and what it works with.
struct Slot<'a> {
    place: String,
    works: &'a [Work<'a>],
    /// Of each study, once somebody has needed it.
    provers: &'a [Mutex<Option<OpenProver>>],
    queue: &'a Queue,
    ended: &'a Sender<Ended>,
}

impl OnDevice for Slot<'_> {
    type Output = ();

    fn run<B: Backend>(self, backend: Arc<B>) -> Result<()> {
        while let Some(given) = self.queue.take() {
            let begun = Instant::now();
            let done = guarded(|| {
                catamount_base::speaking_at(&self.place, || self.work(&given, &backend))
            });
            let (result, unfinished) = match done {
                Ok(Ok(unfinished)) => (Ok(String::new()), unfinished),
                Ok(Err(error)) => (Err(format!("{error:#}")), false),
                Err(panic) => (Err(panic), false),
            };
            let (number, place) = (given.number, self.place.clone());
            let seconds = begun.elapsed().as_secs_f64();
            let ended = Ended { number, place, seconds, result, unfinished };
            if self.ended.send(ended).is_err() {
                break;
            }
        }
        Ok(())
    }
}

impl Slot<'_> {
    /// Does a task; whether some of its searches ended in errors.
    fn work<B: Backend>(&self, given: &Given, backend: &Arc<B>) -> Result<bool> {
        let Work { experiment, plan, folder, .. } = &self.works[given.study];
        let mut steps: Vec<&Planned> = Vec::new();
        for id in &given.task.steps {
            steps.push(plan.step(id)?);
        }
        let prover = {
            let mut open = self.provers[given.study].lock().unwrap_or_else(PoisonError::into_inner);
            match &*open {
                Some(prover) => prover.clone(),
                None => open.insert(experiment.open_prover(folder, None)?).clone(),
            }
        };
        let study = step::join(experiment, folder, Arc::clone(backend), &steps, prover)?;
        match run_steps(&study, plan, &steps, false) {
            Err(error @ Error::Unfinished { .. }) => {
                note!("{error}");
                Ok(true)
            }
            Err(error) => Err(error.into()),
            Ok(report) => {
                // Of several seeds only the whole is shown.
                if let Some(report) = report.filter(|_| self.works.len() == 1) {
                    experiment::show(&report, false)?;
                }
                Ok(false)
            }
        }
    }
}

/// The threads as a crew.
struct Together<'a> {
    queue: &'a Queue,
    ended: (Sender<Ended>, Receiver<Ended>),
}

impl Crew for Together<'_> {
    /// Searches that can share a batch are worth more in it than side by side.
    fn slots(&self) -> usize {
        1
    }

    fn begin(&mut self, number: usize, study: usize, task: &Task) -> Result<()> {
        self.queue.put(Given { number, study, task: task.clone() });
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Ended>> {
        match self.ended.1.recv_timeout(GLANCE) {
            Ok(ended) => Ok(Some(ended)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    fn stop(&mut self) {
        // The steps in hand look at this, wherever the wish came from.
        stop::request();
        let waiting = std::mem::take(&mut self.queue.lock().0);
        for given in waiting {
            let reason = format!("{} was not begun", given.task.name);
            given.ended("", Err(reason), &self.ended.0);
        }
    }
}
