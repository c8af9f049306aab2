//! Runs many searches at once: the policy answers the questions of all of them together, while worker threads put the answers to
//! the prover. Within a theorem everything happens in order and draws from the theorem's own random stream, so that results do
//! not depend on batch sizes, threads or the order of completion.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use catamount_search::{Environment, Fault, Policy, Request, RequestId, Sample, SearchSettings, UnknownStrategy};
use catamount_traces::Theorem;
use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::log::{Record, TimeRecord, TreeRecord};
use crate::proof::{Asked, Progress, Proof};

/// One theorem to search.
#[derive(Clone, Debug)]
pub struct Job {
    /// What to prove.
    pub theorem: Theorem,
    /// Steps of the demonstrated proof, where known.
    pub demonstrated: Option<usize>,
    /// Wall-clock time that is left for this theorem, where a cap over several strategies applies.
    pub time_left: Option<Duration>,
    /// Keep the whole search tree.
    pub tree: bool,
}

/// How every theorem is searched.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The strategy's name.
    pub strategy: String,
    /// The strategies' parameters.
    pub settings: SearchSettings,
    /// Expansions per theorem.
    pub budget: u64,
    /// Seed of every stream.
    pub seed: u64,
    /// Wall-clock cap per search.
    pub time_limit: Option<Duration>,
    /// Searches in flight.
    pub concurrency: usize,
    /// Threads that talk to the prover.
    pub threads: usize,
}

/// A finished theorem.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The line for the log.
    pub record: Record,
    /// The line for the times.
    pub time: TimeRecord,
    /// The tree, if trees are kept.
    pub tree: Option<TreeRecord>,
}

/// Where the wall-clock time of a run went, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// The policy was sampling.
    pub policy: f64,
    /// The policy had no question to answer and waited for the prover.
    pub waiting: f64,
    /// Everything.
    pub total: f64,
}

/// Searches every job, handing each result to `done` as it comes. Stops early, between questions, when `stop` is set; theorems not
/// finished by then are simply not reported.
pub fn search_all(
    environment: &Arc<dyn Environment>,
    policy: &mut dyn Policy,
    jobs: Vec<Job>,
    plan: &Plan,
    stop: &AtomicBool,
    done: &mut dyn FnMut(Finished),
) -> Result<Spent, UnknownStrategy> {
    plan.settings.search(&plan.strategy, plan.budget)?;
    let started = Instant::now();
    let (to_workers, work) = unbounded::<Work>();
    let (to_driver, events) = unbounded::<Vec<Progress>>();
    std::thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            let (work, to_driver, environment) = (work.clone(), to_driver.clone(), Arc::clone(environment));
            scope.spawn(move || worker(&work, &to_driver, &environment, plan));
        }
        let mut driver = Driver {
            to_workers,
            events,
            policy,
            jobs: jobs.into(),
            in_flight: 0,
            waiting: HashMap::new(),
            next_request: 0,
            spent: Spent::default(),
            threads: plan.threads.max(1),
        };
        driver.run(plan.concurrency.max(1), stop, done);
        driver.spent.total = started.elapsed().as_secs_f64();
        Ok(driver.spent)
        // Dropping the driver closes the workers' channel and ends them.
    })
}

/// The policy's answer to one question.
type Answered = Result<Vec<Sample>, Fault>;

enum Work {
    Open(Job),
    /// Searches whose questions are answered. Several at once, because waking a thread costs more than a quick prover's verdict.
    Answers(Vec<(Box<Proof>, Vec<Answered>)>),
}

fn worker(work: &Receiver<Work>, to_driver: &Sender<Vec<Progress>>, environment: &Arc<dyn Environment>, plan: &Plan) {
    for item in work {
        let progress = match item {
            Work::Open(job) => vec![Proof::open(environment, job, plan)],
            Work::Answers(all) => all.into_iter().map(|(proof, answers)| proof.answer(environment.as_ref(), answers)).collect(),
        };
        if to_driver.send(progress).is_err() {
            return;
        }
    }
}

struct Driver<'a> {
    to_workers: Sender<Work>,
    events: Receiver<Vec<Progress>>,
    policy: &'a mut dyn Policy,
    jobs: VecDeque<Job>,
    in_flight: usize,
    waiting: HashMap<RequestId, Questions>,
    next_request: RequestId,
    spent: Spent,
    threads: usize,
}

/// A search that waits for the policy. Its questions have consecutive ids, the first of which is the key it is kept under.
struct Questions {
    proof: Box<Proof>,
    answers: Vec<Option<Answered>>,
    missing: usize,
}

impl Driver<'_> {
    fn run(&mut self, concurrency: usize, stop: &AtomicBool, done: &mut dyn FnMut(Finished)) {
        let mut keys: HashMap<RequestId, RequestId> = HashMap::new();
        while !stop.load(Ordering::Relaxed) {
            while self.in_flight < concurrency
                && let Some(job) = self.jobs.pop_front()
            {
                self.in_flight += 1;
                self.to_workers.send(Work::Open(job)).expect("workers live as long as the driver");
            }
            if self.in_flight == 0 {
                return;
            }
            // Take what the workers have ready; wait for them only if the policy has nothing to do.
            if self.waiting.is_empty() {
                let idle = Instant::now();
                match self.events.recv_timeout(Duration::from_millis(100)) {
                    Ok(progress) => self.advance(progress, &mut keys, done),
                    Err(_) => continue,
                }
                self.spent.waiting += idle.elapsed().as_secs_f64();
            }
            while let Ok(progress) = self.events.try_recv() {
                self.advance(progress, &mut keys, done);
            }
            if !self.waiting.is_empty() {
                let busy = Instant::now();
                let answers = self.policy.poll();
                self.spent.policy += busy.elapsed().as_secs_f64();
                let mut ready: Vec<_> =
                    answers.into_iter().filter_map(|(id, answer)| self.collect(id, answer, &mut keys)).collect();
                // A few handfuls for every thread: enough to spread, few enough to be worth a wake-up.
                let handful = (ready.len() / (self.threads * 8)).max(1);
                while !ready.is_empty() {
                    let some = ready.drain(..handful.min(ready.len())).collect();
                    self.to_workers.send(Work::Answers(some)).expect("workers live as long as the driver");
                }
            }
        }
    }

    fn advance(&mut self, all: Vec<Progress>, keys: &mut HashMap<RequestId, RequestId>, done: &mut dyn FnMut(Finished)) {
        for progress in all {
            self.advance_one(progress, keys, done);
        }
    }

    fn advance_one(&mut self, progress: Progress, keys: &mut HashMap<RequestId, RequestId>, done: &mut dyn FnMut(Finished)) {
        match progress {
            Progress::Finished(finished) => {
                self.in_flight -= 1;
                done(*finished);
            }
            Progress::Asks(proof, asked) => {
                let first = self.next_request;
                let missing = asked.len();
                for Asked { state, samples, stream } in asked {
                    let id = self.next_request;
                    self.next_request += 1;
                    keys.insert(id, first);
                    self.policy.submit(Request { id, state, samples, stream });
                }
                let answers = (0..missing).map(|_| None).collect();
                self.waiting.insert(first, Questions { proof, answers, missing });
            }
        }
    }

    /// Files an answer; gives the search back once all its questions are answered.
    fn collect(
        &mut self,
        id: RequestId,
        answer: Answered,
        keys: &mut HashMap<RequestId, RequestId>,
    ) -> Option<(Box<Proof>, Vec<Answered>)> {
        let first = keys.remove(&id)?;
        let questions = self.waiting.get_mut(&first).expect("kept until all its questions are answered");
        questions.answers[(id - first) as usize] = Some(answer);
        questions.missing -= 1;
        if questions.missing > 0 {
            return None;
        }
        let questions = self.waiting.remove(&first).expect("just seen");
        Some((questions.proof, questions.answers.into_iter().flatten().collect()))
    }
}
