//! A policy for tests: plays demonstrations back, with a given probability of getting each step
//! right.

use std::collections::{BTreeSet, HashMap};

use catamount_base::Content;
use catamount_search::{Fault, Identity, Policy, Request, RequestId, Sample, Stream};
use catamount_traces::Trace;

/// The tactic played where there is no other to be wrong with.
const NOISE: &str = "noise";

/// At a demonstrated state, plays its demonstrated tactic with probability `p` and otherwise one of
/// the wrong ones, all equally likely. At any other state every tactic is equally likely. A state
/// that several traces share plays their first tactic.
pub struct Replay {
    right: HashMap<String, usize>,
    tactics: Vec<String>,
    p: f64,
    /// Of the demonstrations.
    content: Content,
    pending: Vec<Request>,
}

impl Replay {
    /// A policy that plays these traces, each step with probability `p` (held to between 0 and 1).
    pub fn new<'a>(traces: impl IntoIterator<Item = &'a Trace>, p: f64) -> Self {
        let steps: Vec<_> = traces.into_iter().flat_map(|trace| &trace.steps).collect();
        let content = Content::of_texts(steps.iter().flat_map(|s| [&s.state, &s.tactic]));
        // One wrong tactic at least, and an order that does not depend on that of the traces.
        let names: BTreeSet<&str> =
            steps.iter().map(|step| step.tactic.as_str()).chain([NOISE]).collect();
        let tactics: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let mut right = HashMap::new();
        for step in steps {
            let place = tactics.binary_search(&step.tactic).expect("collected from the same steps");
            right.entry(step.state.clone()).or_insert(place);
        }
        let p = if p.is_nan() { 0.0 } else { p.clamp(0.0, 1.0) };
        Replay { right, tactics, p, content, pending: Vec::new() }
    }

    fn draw(&self, state: &str, stream: Stream) -> Sample {
        let among = |count: usize| ((stream.uniform(1) * count as f64) as usize).min(count - 1);
        let (at, p) = match self.right.get(state) {
            Some(right) if stream.uniform(0) < self.p => (*right, self.p),
            Some(right) => {
                let wrong = among(self.tactics.len() - 1);
                (
                    wrong + usize::from(wrong >= *right),
                    (1.0 - self.p) / (self.tactics.len() - 1) as f64,
                )
            }
            None => (among(self.tactics.len()), 1.0 / self.tactics.len() as f64),
        };
        let tactic = self.tactics[at].clone();
        let tokens = tactic.split_whitespace().count() + 1;
        Sample { tactic, log_p: p.ln(), tokens }
    }
}

impl Policy for Replay {
    fn submit(&mut self, request: Request) {
        self.pending.push(request);
    }

    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
        let pending = std::mem::take(&mut self.pending);
        let sample = |request: &Request| {
            (0..request.samples as u64)
                .map(|n| self.draw(&request.state, request.stream.child(n)))
                .collect()
        };
        pending.iter().map(|request| (request.id, Ok(sample(request)))).collect()
    }

    fn describe(&self) -> String {
        format!("replay (p = {}; {} states)", self.p, self.right.len())
    }

    fn identity(&self) -> Identity {
        Identity::new("replay").with("demonstrations", &self.content).with("p", self.p)
    }
}
