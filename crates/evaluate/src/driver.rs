//! Runs many searches at once: the policy answers the questions of all of them together on a thread
//! of its own, while worker threads put the answers to the prover. Within a theorem everything
//! happens in order and draws from the theorem's own random stream, so that results do not depend
//! on batch sizes, threads or the order of completion.
//!
//! Several cells may share the policy: the searches of the next begin as those of the one before
//! end, so that the policy never runs out of questions between two cells.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use catamount_search::{Deployment, Environment, Fault, Policy, Request, RequestId, Sample, Spent};
use catamount_traces::Theorem;
use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::asking::answer_questions;
use crate::log::{Record, TimeRecord, TreeRecord};
use crate::order::by_files;
use crate::proof::{Proof, Question, Step};
use crate::timing::{Clock, Timing};

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
    /// The search.
    pub deployment: Deployment,
    /// Seed of every stream.
    pub seed: u64,
    /// Wall-clock cap per search.
    pub time_limit: Option<Duration>,
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

/// The searches of one cell.
#[derive(Clone, Debug)]
pub struct Searches {
    /// How.
    pub plan: Plan,
    /// What.
    pub jobs: Vec<Job>,
}

/// What happens while cells are searched; a cell is named by its index.
pub enum CellEvent {
    /// One more theorem of a cell is done.
    Finished(usize, Box<Finished>),
    /// All theorems of a cell are done.
    Ended(usize, Timing),
}

/// How much is done at once. It changes how long a run takes, never what comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Searches in flight, over all cells.
    pub concurrency: usize,
    /// Threads that talk to the prover.
    pub threads: usize,
}

impl Workload {
    /// Searches in flight where nobody says otherwise.
    pub const CONCURRENCY: usize = 128;
    /// Samples that a model decodes together where nobody says otherwise.
    pub const BATCH: usize = 128;

    // The largest sizes that are not taken for a slip of the pen.
    /// Searches in flight at most.
    pub const MOST_SEARCHES: usize = 1 << 17;
    /// Samples decoded together at most.
    pub const LARGEST_BATCH: usize = 1 << 14;
    /// Tokens of all samples decoded together at most.
    pub const MOST_DECODED: usize = 1 << 23;
    /// Threads that talk to the prover at most.
    pub const MOST_THREADS: usize = 1 << 12;
    /// The longest limit on time, in seconds, ten years: longer is no limit at all.
    pub const LONGEST: f64 = 3.2e8;
}

/// Searches cells with one policy, in their order and without a pause between them, handing each
/// event to `watch` as it comes. Stops early, between questions, once `stop` is set.
pub fn search(
    environment: &Arc<dyn Environment>,
    policy: &mut dyn Policy,
    cells: Vec<Searches>,
    workload: Workload,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(CellEvent),
) -> Vec<Timing> {
    let concurrency = workload.concurrency.max(1);
    let wanted = workload.threads.clamp(1, Workload::MOST_THREADS);
    let (to_workers, work) = unbounded::<Work>();
    let (to_driver, events) = unbounded::<Event>();
    let (to_policy, questions) = unbounded::<Vec<Request>>();
    // A poll that takes long must not outlast the searches: a server may hang for minutes.
    let interrupt = policy.interrupt();
    let interrupted = |now: bool| {
        if let Some(flag) = &interrupt {
            flag.store(now, Ordering::Relaxed);
        }
    };
    interrupted(false);
    // Nor must a prover that is elsewhere.
    let over = Arc::new(AtomicBool::new(false));
    let (plans, jobs): (Vec<Plan>, Vec<Vec<Job>>) =
        cells.into_iter().map(|cell| (cell.plan, cell.jobs)).unzip();
    std::thread::scope(|scope| {
        let answering = to_driver.clone();
        named(scope, "policy", move || answer_questions(policy, &questions, &answering))
            .expect("the system has room for a thread");
        let mut threads = 0;
        for _ in 0..wanted {
            let (work, to_driver, environment, plans, over) =
                (work.clone(), to_driver.clone(), Arc::clone(environment), &plans, over.clone());
            let work = move || worker(&work, &to_driver, &environment, plans, &over);
            match named(scope, "prover", work) {
                Ok(()) => threads += 1,
                // Those that the system has room for do the work.
                Err(_) if threads > 0 => break,
                Err(error) => panic!("the system has no room for a thread: {error}"),
            }
        }
        drop(to_driver);
        let (now, spent) = (Instant::now(), environment.spent());
        let mut driver = Driver {
            to_workers,
            to_policy,
            events,
            left: jobs.iter().map(Vec::len).collect(),
            clocks: jobs.iter().map(|_| Clock::new(now, threads)).collect(),
            jobs: by_files(jobs, spent.map_or(threads, |spent| spent.provers)),
            spent,
            environment,
            in_flight: 0,
            waiting: HashMap::new(),
            keys: HashMap::new(),
            asked: Vec::new(),
            answered: Vec::new(),
            threads,
            next_look: now,
        };
        driver.run(concurrency, stop, watch);
        interrupted(true);
        over.store(true, Ordering::Relaxed);
        let now = Instant::now();
        // What no cell that ended was told of is told to the last of those that were stopped.
        let mut timings: Vec<Timing> =
            driver.clocks.iter_mut().map(|clock| clock.read(now)).collect();
        if let Some(stopped) = driver.left.iter().rposition(|left| *left > 0) {
            timings[stopped].spent = driver.spent_since();
        }
        timings
        // Dropping the driver closes the channels of the workers and of the policy, and ends them.
    })
}

/// Starts a thread whose name a profile shows.
fn named<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() + Send + 'scope,
) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn_scoped(scope, work).map(|_| ())
}

/// The policy's answer to one question.
pub(crate) type Reply = Result<Vec<Sample>, Fault>;

/// A search whose questions are all answered.
struct Ready {
    cell: usize,
    proof: Box<Proof>,
    answers: Vec<Reply>,
}

enum Work {
    Open(usize, Job),
    /// Several at once, because waking a thread costs more than a quick prover's verdict.
    Answers(Vec<Ready>),
}

/// What became of a search on a worker's thread, and how long it took.
pub(crate) struct Round {
    cell: usize,
    step: Step,
    busy: Duration,
    prover: Duration,
}

/// What the driver waits for.
pub(crate) enum Event {
    Rounds(Vec<Round>),
    Answers(Vec<(RequestId, Reply)>),
}

fn worker(
    work: &Receiver<Work>,
    to_driver: &Sender<Event>,
    environment: &Arc<dyn Environment>,
    plans: &[Plan],
    over: &Arc<AtomicBool>,
) {
    let timed = |cell: usize, work: &mut dyn FnMut() -> (Step, Duration)| {
        let started = Instant::now();
        let (step, prover) = work();
        Round { cell, step, busy: started.elapsed(), prover }
    };
    for item in work {
        let rounds = match item {
            Work::Open(cell, job) => {
                let mut job = Some(job);
                vec![timed(cell, &mut || {
                    let job = job.take().expect("once");
                    Proof::open(environment, job, &plans[cell], Arc::clone(over))
                })]
            }
            Work::Answers(all) => {
                let one = |ready: Ready| {
                    let (cell, mut ready) = (ready.cell, Some(ready));
                    timed(cell, &mut || {
                        let Ready { proof, answers, .. } = ready.take().expect("once");
                        proof.answer(environment.as_ref(), answers)
                    })
                };
                all.into_iter().map(one).collect()
            }
        };
        if to_driver.send(Event::Rounds(rounds)).is_err() {
            return;
        }
    }
}

/// Questions asked so far in this process. A policy that was stopped in the middle may answer old
/// questions later.
static QUESTIONS: AtomicU64 = AtomicU64::new(0);

struct Driver<'a> {
    environment: &'a Arc<dyn Environment>,
    /// Where the time of the prover's processes had gone when a cell last ended.
    spent: Option<Spent>,
    to_workers: Sender<Work>,
    to_policy: Sender<Vec<Request>>,
    events: Receiver<Event>,
    jobs: VecDeque<(usize, Job)>,
    /// Theorems of each cell that are not done.
    left: Vec<usize>,
    clocks: Vec<Clock>,
    in_flight: usize,
    waiting: HashMap<RequestId, Waiting>,
    /// The key in `waiting` of every open question.
    keys: HashMap<RequestId, RequestId>,
    /// Questions to be handed to the policy.
    asked: Vec<Request>,
    /// Searches to be handed to the workers.
    answered: Vec<Ready>,
    threads: usize,
    /// When to look again for searches whose time is up.
    next_look: Instant,
}

/// How often the driver looks whether it is to stop, and for searches whose time is up.
const LOOK: Duration = Duration::from_millis(100);

/// A search that waits for the policy. Its questions have consecutive ids, the first of which is
/// the key it is kept under.
struct Waiting {
    cell: usize,
    proof: Box<Proof>,
    answers: Vec<Option<Reply>>,
    missing: usize,
}

impl Driver<'_> {
    fn run(&mut self, concurrency: usize, stop: &AtomicBool, watch: &mut dyn FnMut(CellEvent)) {
        let now = Instant::now();
        for cell in 0..self.left.len() {
            if self.left[cell] == 0 {
                watch(CellEvent::Ended(cell, self.timing(cell, now)));
            }
        }
        while !stop.load(Ordering::Relaxed) {
            while self.in_flight < concurrency
                && let Some((cell, job)) = self.jobs.pop_front()
            {
                self.in_flight += 1;
                self.clocks[cell].prover_takes(Instant::now());
                self.to_workers
                    .send(Work::Open(cell, job))
                    .expect("workers live as long as the driver");
            }
            if self.in_flight == 0 {
                return;
            }
            self.expire(watch);
            let Ok(event) = self.events.recv_timeout(LOOK) else { continue };
            self.take_in(event, watch);
            while let Ok(event) = self.events.try_recv() {
                self.take_in(event, watch);
            }
            self.hand_out();
        }
    }

    fn take_in(&mut self, event: Event, watch: &mut dyn FnMut(CellEvent)) {
        let now = Instant::now();
        match event {
            Event::Rounds(all) => all.into_iter().for_each(|round| self.advance(round, now, watch)),
            Event::Answers(answers) if answers.is_empty() => self.give_up(now),
            Event::Answers(answers) => {
                answers.into_iter().for_each(|(id, answer)| self.collect(id, answer, now))
            }
        }
    }

    fn advance(&mut self, round: Round, now: Instant, watch: &mut dyn FnMut(CellEvent)) {
        let Round { cell, step, busy, prover } = round;
        self.clocks[cell].prover_returns(now, busy, prover);
        match step {
            Step::Finished(finished) => self.finish(cell, finished, now, watch),
            Step::Asks(proof, asked) => {
                let missing = asked.len();
                let first = QUESTIONS.fetch_add(missing as u64, Ordering::Relaxed);
                for (id, Question { state, samples, stream, urn }) in (first..).zip(asked) {
                    self.keys.insert(id, first);
                    self.asked.push(Request { id, state, samples, stream, urn });
                }
                self.clocks[cell].policy_takes(now);
                let answers = (0..missing).map(|_| None).collect();
                self.waiting.insert(first, Waiting { cell, proof, answers, missing });
            }
        }
    }

    fn finish(
        &mut self,
        cell: usize,
        finished: Box<Finished>,
        now: Instant,
        watch: &mut dyn FnMut(CellEvent),
    ) {
        self.in_flight -= 1;
        self.left[cell] -= 1;
        watch(CellEvent::Finished(cell, finished));
        if self.left[cell] == 0 {
            watch(CellEvent::Ended(cell, self.timing(cell, now)));
        }
    }

    /// Where the time of a cell went that ends now.
    fn timing(&mut self, cell: usize, now: Instant) -> Timing {
        let timing = self.clocks[cell].read(now);
        Timing { spent: self.spent_since(), ..timing }
    }

    /// Where the prover's time went since this was last asked.
    fn spent_since(&mut self) -> Option<Spent> {
        let before = self.spent.unwrap_or_default();
        self.spent = self.environment.spent();
        self.spent.map(|now| now - before)
    }

    /// Ends the searches whose time ran out while they wait for the policy; its answers, should
    /// they come, find nobody.
    fn expire(&mut self, watch: &mut dyn FnMut(CellEvent)) {
        let now = Instant::now();
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK;
        for (first, Waiting { cell, proof, answers, .. }) in
            self.waiting.extract_if(|_, questions| questions.proof.is_late(now)).collect::<Vec<_>>()
        {
            for id in first..first + answers.len() as RequestId {
                self.keys.remove(&id);
            }
            self.clocks[cell].policy_returns(now);
            self.finish(cell, proof.end(), now, watch);
        }
    }

    /// Files an answer; the search goes on once all its questions are answered.
    fn collect(&mut self, id: RequestId, answer: Reply, now: Instant) {
        let Some(first) = self.keys.remove(&id) else { return };
        let questions =
            self.waiting.get_mut(&first).expect("kept until all its questions are answered");
        questions.answers[(id - first) as usize] = Some(answer);
        questions.missing -= 1;
        if questions.missing > 0 {
            return;
        }
        let Waiting { cell, proof, answers, .. } = self.waiting.remove(&first).expect("just seen");
        self.clocks[cell].policy_returns(now);
        self.clocks[cell].prover_takes(now);
        self.answered.push(Ready { cell, proof, answers: answers.into_iter().flatten().collect() });
    }

    /// The policy has nothing to say to what it was asked: a fault of every open question.
    fn give_up(&mut self, now: Instant) {
        let open: Vec<RequestId> = self.keys.keys().copied().collect();
        for id in open {
            self.collect(id, Err(Fault("the policy stopped without an answer".into())), now);
        }
    }

    fn hand_out(&mut self) {
        if !self.asked.is_empty() && self.to_policy.send(std::mem::take(&mut self.asked)).is_err() {
            self.give_up(Instant::now());
        }
        // Spread over the threads, but not so thinly that waking them costs more than the work.
        let handful = self.answered.len().div_ceil(self.threads).clamp(1, 8);
        while !self.answered.is_empty() {
            let some = self.answered.drain(..handful.min(self.answered.len())).collect();
            self.to_workers.send(Work::Answers(some)).expect("workers live as long as the driver");
        }
    }
}
