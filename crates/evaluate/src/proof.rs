//! One theorem's search between two questions to the policy: the tactics are put to the prover, the
//! strategy is told, and the next question comes out. Runs on a worker thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use catamount_search::{
    Answer, Ask, Checked, Environment, Expand, Fault, Finish, NodeId, Patience, Reached, Sample,
    Search, Session, StateId, Stream, Urn, Verdict,
};
use catamount_traces::Theorem;

use crate::driver::{Finished, Job, Plan};
use crate::log::{Outcome, Record, TimeRecord, TreeExpansion, TreeRecord, TreeVerdict};

/// A question to the policy.
pub(crate) struct Question {
    pub state: String,
    pub samples: usize,
    pub stream: Stream,
    pub urn: Option<Urn>,
}

/// What became of a search after a round.
pub(crate) enum Step {
    /// It needs tactics.
    Asks(Box<Proof>, Vec<Question>),
    /// It is over.
    Finished(Box<Finished>),
}

/// What the driver knows of a node that the strategy does not.
struct NodeState {
    state: StateId,
    text: String,
    /// Expansion that made it, for the tree.
    made_by: u64,
    /// Questions asked here so far: each has its own stream.
    asked: u64,
    /// What has been drawn here, where samples are distinct: the node's draws then share a stream.
    urn: Option<Urn>,
}

impl NodeState {
    fn new(state: StateId, text: String, made_by: u64, distinct: bool) -> Self {
        NodeState { state, text, made_by, asked: 0, urn: distinct.then(Urn::default) }
    }
}

/// A search in progress.
pub(crate) struct Proof {
    theorem: Theorem,
    demonstrated: Option<usize>,
    search: Search,
    session: Box<dyn Session>,
    /// Indexed by node.
    nodes: Vec<NodeState>,
    wanted: Vec<Expand>,
    stream: Stream,
    choices: u64,
    started: Instant,
    patience: Patience,
    counts: Counts,
    /// Of the proof that was found.
    axioms: Vec<String>,
    note: String,
    relative_to: Vec<String>,
    tree: Option<TreeRecord>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    valid: u64,
    rejected: u64,
    refused: u64,
    distinct: u64,
    duplicates: u64,
    tokens: u64,
    prover: Duration,
}

impl Proof {
    /// Opens a theorem and asks its first question; says how long the prover took.
    pub(crate) fn open(
        environment: &Arc<dyn Environment>,
        job: Job,
        plan: &Plan,
        over: Arc<AtomicBool>,
    ) -> (Step, Duration) {
        let started = Instant::now();
        let theorem = job.theorem;
        let limit = [plan.time_limit, job.time_left].into_iter().flatten().min();
        // What no clock reaches is no limit.
        let deadline = limit.and_then(|limit| started.checked_add(limit));
        let patience = Patience { deadline, over };
        let opened = guarded(|| environment.open_within(&theorem, &patience));
        let prover = started.elapsed();
        let session = match opened {
            Ok(session) => session,
            Err(fault) => {
                return (failed(theorem, job.demonstrated, fault, started, prover), prover);
            }
        };
        let root =
            NodeState::new(StateId(0), session.root().to_string(), 0, plan.deployment.distinct());
        let tree = job.tree.then(|| TreeRecord {
            theorem: theorem.name.clone(),
            root: root.text.clone(),
            expansions: Vec::new(),
        });
        let proof = Proof {
            stream: Stream::new(plan.seed).named(&theorem.name),
            theorem,
            demonstrated: job.demonstrated,
            search: plan.deployment.search(),
            session,
            nodes: vec![root],
            wanted: Vec::new(),
            choices: 0,
            started,
            patience,
            counts: Counts { prover, ..Counts::default() },
            axioms: Vec::new(),
            note: String::new(),
            relative_to: Vec::new(),
            tree,
        };
        (Box::new(proof).ask(), prover)
    }

    /// Puts the policy's answers to the prover, tells the strategy, and asks the next question;
    /// says how long the prover took.
    pub(crate) fn answer(
        mut self: Box<Self>,
        environment: &dyn Environment,
        answers: Vec<Result<Vec<Sample>, Fault>>,
    ) -> (Step, Duration) {
        let before = self.counts.prover;
        let outcome = self.try_all(environment, answers);
        let prover = self.counts.prover - before;
        let step = match outcome {
            Ok(()) => self.ask(),
            // As it would have ended where the prover is at hand.
            Err(fault) if fault.is_late() => Step::Finished(self.end()),
            Err(fault) => self.fault(fault),
        };
        (step, prover)
    }

    fn try_all(
        &mut self,
        environment: &dyn Environment,
        answers: Vec<Result<Vec<Sample>, Fault>>,
    ) -> Result<(), Fault> {
        let wanted = std::mem::take(&mut self.wanted);
        for (expand, answer) in wanted.into_iter().zip(answers) {
            let samples = answer?;
            if guarded(|| self.expand(environment, expand, samples))? {
                break;
            }
        }
        Ok(())
    }

    /// Tries the samples at one node. True once the search is over.
    fn expand(
        &mut self,
        environment: &dyn Environment,
        expand: Expand,
        samples: Vec<Sample>,
    ) -> Result<bool, Fault> {
        let urn = self.nodes[expand.node.0 as usize].urn.clone();
        // With an urn, fewer samples say that it is drawn out.
        let missing = expand.samples.saturating_sub(samples.len());
        if samples.len() > expand.samples || (missing > 0 && urn.is_none()) {
            return Err(Fault(format!(
                "the policy gave {} samples where {} were asked for",
                samples.len(),
                expand.samples
            )));
        }
        if let Some(urn) = &urn {
            self.search.remains(expand.node, urn.left());
        }
        for sample in samples {
            if !(sample.log_p.is_finite() && sample.log_p <= 0.0) {
                return Err(Fault(format!(
                    "the policy gave log p = {} for a tactic, which is not a log-probability",
                    sample.log_p
                )));
            }
            self.counts.tokens += sample.tokens as u64;
            let (answer, opened, reason) = match self.search.tried(expand.node, &sample.tactic) {
                Some(reached) => {
                    self.counts.duplicates += 1;
                    (remembered(reached), None, "already tried here".to_string())
                }
                None => {
                    self.counts.distinct += 1;
                    self.try_tactic(environment, expand.node, &sample.tactic)?
                }
            };
            match answer {
                Answer::Rejected => self.counts.rejected += 1,
                _ => self.counts.valid += 1,
            }
            let reached = self.search.tell(expand.node, &sample.tactic, sample.log_p, answer);
            let text = match &opened {
                Some((_, text)) => text.clone(),
                None => reason,
            };
            self.grow(expand.node, &sample, reached, text);
            match (reached, opened) {
                (Reached::Proved, _) => return Ok(true),
                (Reached::Open(child), Some((state, text))) => {
                    debug_assert_eq!(child.0 as usize, self.nodes.len());
                    if let Some(share) = urn.as_ref().and_then(|urn| urn.share(&sample.tactic)) {
                        self.search.weigh(child, share);
                    }
                    let made_by = self.search.expansions();
                    self.nodes.push(NodeState::new(state, text, made_by, urn.is_some()));
                }
                // Valid, but beyond the depth limit: nothing will be tried there.
                (_, Some((state, _))) => self.session.release(state),
                _ => {}
            }
        }
        if let Some(urn) = urn.filter(|_| missing > 0) {
            urn.set_left(0.0);
            (0..missing).for_each(|_| self.search.tell_nothing_left(expand.node));
        }
        Ok(false)
    }

    /// Asks the prover; a claimed proof counts only once the independent check accepts it.
    fn try_tactic(
        &mut self,
        environment: &dyn Environment,
        node: NodeId,
        tactic: &str,
    ) -> Result<Tried, Fault> {
        let asked = Instant::now();
        let verdict = self.session.apply(self.nodes[node.0 as usize].state, tactic);
        self.counts.prover += asked.elapsed();
        Ok(match verdict? {
            Verdict::Open { state, text } => (Answer::Open, Some((state, text)), String::new()),
            Verdict::Rejected { reason } => (Answer::Rejected, None, reason),
            Verdict::Proved => {
                let mut proof = self.search.path(node);
                proof.push(tactic.to_string());
                let asked = Instant::now();
                let checked = environment.check_within(&self.theorem, &proof, &self.patience);
                self.counts.prover += asked.elapsed();
                match checked? {
                    Checked::Proved { axioms, note, relative_to } => {
                        (self.axioms, self.note, self.relative_to) = (axioms, note, relative_to);
                        (Answer::Proved, None, String::new())
                    }
                    Checked::Refused { reason } => {
                        self.counts.refused += 1;
                        (Answer::Rejected, None, format!("refused by the final check: {reason}"))
                    }
                }
            }
        })
    }

    /// Whether its time is up.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.patience.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// Ends it because its time is up.
    pub(crate) fn end(self: Box<Self>) -> Box<Finished> {
        self.finished(Outcome::Time, Vec::new())
    }

    fn ask(mut self: Box<Self>) -> Step {
        if self.is_late(Instant::now()) {
            return Step::Finished(self.end());
        }
        let (stream, choices) = (self.stream.named("choose"), &mut self.choices);
        let mut choose = |weights: &[f64]| {
            *choices += 1;
            pick(weights, stream.uniform(*choices))
        };
        match self.search.ask(&mut choose) {
            Ask::Finished(Finish::Proved(tactics)) => self.finish(Outcome::Proved, tactics),
            Ask::Finished(Finish::Exhausted) => self.finish(Outcome::Exhausted, Vec::new()),
            Ask::Finished(Finish::Budget) => self.finish(Outcome::Budget, Vec::new()),
            Ask::Expand(wanted) => {
                let asked = wanted.iter().map(|expand| self.question(expand)).collect();
                self.wanted = wanted;
                Step::Asks(self, asked)
            }
        }
    }

    fn question(&mut self, expand: &Expand) -> Question {
        let node = &mut self.nodes[expand.node.0 as usize];
        node.asked += 1;
        let stream = self.stream.named("sample").child(u64::from(expand.node.0));
        let (stream, urn) = match &node.urn {
            Some(urn) => (stream, Some(urn.clone())),
            None => (stream.child(node.asked), None),
        };
        Question { state: node.text.clone(), samples: expand.samples, stream, urn }
    }

    fn grow(&mut self, node: NodeId, sample: &Sample, reached: Reached, text: String) {
        let Some(tree) = &mut self.tree else { return };
        let (verdict, score) = match reached {
            Reached::Open(child) => (TreeVerdict::Open, self.search.score(child)),
            Reached::TooDeep => (TreeVerdict::Open, None),
            Reached::Rejected => (TreeVerdict::Rejected, None),
            Reached::Proved => (TreeVerdict::Proved, None),
        };
        tree.expansions.push(TreeExpansion {
            parent: self.nodes[node.0 as usize].made_by,
            tactic: sample.tactic.clone(),
            log_p: sample.log_p,
            verdict,
            text,
            score,
        });
    }

    fn finish(self: Box<Self>, outcome: Outcome, tactics: Vec<String>) -> Step {
        Step::Finished(self.finished(outcome, tactics))
    }

    fn finished(self: Box<Self>, outcome: Outcome, tactics: Vec<String>) -> Box<Finished> {
        let urns = || self.nodes.iter().flat_map(|node| &node.urn);
        let record = Record {
            cell: String::new(),
            theorem: self.theorem.name.clone(),
            outcome,
            expansions: self.search.expansions(),
            tactics,
            axioms: self.axioms,
            note: self.note,
            relative_to: self.relative_to,
            demonstrated: self.demonstrated,
            valid: self.counts.valid,
            rejected: self.counts.rejected,
            refused: self.counts.refused,
            distinct: self.counts.distinct,
            duplicates: self.counts.duplicates,
            redrawn: urns().map(Urn::repeats).sum(),
            drawn_out: urns().filter(|urn| urn.left() == 0.0).count() as u64,
            depths: self.search.depths().to_vec(),
            tokens: self.counts.tokens,
            reason: None,
        };
        let time = TimeRecord {
            theorem: self.theorem.name,
            seconds: self.started.elapsed().as_secs_f64(),
            prover_seconds: self.counts.prover.as_secs_f64(),
            recalled: self.session.recalled(),
        };
        Box::new(Finished { record, time, tree: self.tree })
    }

    fn fault(self: Box<Self>, fault: Fault) -> Step {
        failed(self.theorem, self.demonstrated, fault, self.started, self.counts.prover)
    }
}

/// The answer, the state reached if there is one, and the prover's reason if there is one.
type Tried = (Answer, Option<(StateId, String)>, String);

fn remembered(reached: Reached) -> Answer {
    match reached {
        Reached::Open(_) | Reached::TooDeep => Answer::Open,
        Reached::Rejected => Answer::Rejected,
        Reached::Proved => Answer::Proved,
    }
}

/// The index that a uniform number picks among unnormalised weights.
fn pick(weights: &[f64], uniform: f64) -> usize {
    let mut left = uniform * weights.iter().sum::<f64>();
    for (index, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return index;
        }
    }
    weights.len() - 1
}

/// A panic in a prover's code is a fault of that prover, not the end of an evaluation.
fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catamount_base::guarded(work)
        .unwrap_or_else(|text| Err(Fault(format!("the prover panicked: {text}"))))
}

fn failed(
    theorem: Theorem,
    demonstrated: Option<usize>,
    fault: Fault,
    started: Instant,
    prover: Duration,
) -> Step {
    let (seconds, prover_seconds) = (started.elapsed().as_secs_f64(), prover.as_secs_f64());
    let time = TimeRecord { theorem: theorem.name.clone(), seconds, prover_seconds, recalled: 0 };
    let record = Record {
        cell: String::new(),
        theorem: theorem.name,
        outcome: if fault.is_late() { Outcome::Time } else { Outcome::Error },
        expansions: 0,
        tactics: Vec::new(),
        axioms: Vec::new(),
        note: String::new(),
        relative_to: Vec::new(),
        demonstrated,
        valid: 0,
        rejected: 0,
        refused: 0,
        distinct: 0,
        duplicates: 0,
        redrawn: 0,
        drawn_out: 0,
        depths: Vec::new(),
        tokens: 0,
        reason: Some(fault).filter(|fault| !fault.is_late()).map(|fault| fault.0),
    };
    Step::Finished(Box::new(Finished { record, time, tree: None }))
}
