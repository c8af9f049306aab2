//! Distinct samples from a policy that knows nothing of them: what is repeated is drawn again, a
//! bounded number of times.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use catamount_search::{Deployment, Fault, Policy, Request, RequestId, Sample, Urn};

/// Times that the repeated tactics of a question are drawn again. Those that are still repeated
/// then stand, and cost what duplicates cost: a policy that has little else to say cannot hold a
/// search up.
const REDRAWS: u32 = 4;

/// What a manifest says of a policy that is deployed so.
pub(crate) fn describe(policy: &dyn Policy, deployment: &Deployment) -> String {
    let text = policy.describe();
    match (deployment.distinct(), policy.draws_without_replacement()) {
        (false, _) => text,
        (true, true) => format!("{text}, distinct samples: drawn without replacement, exactly"),
        (true, false) => format!("{text}, distinct samples: drawn again up to {REDRAWS} times"),
    }
}

/// The least that is taken to be left: how little is really left nobody knows.
const LEAST: f64 = 1e-3;

/// A policy whose questions with an urn are answered by one that
/// [draws without replacement](Policy::draws_without_replacement) itself, or by drawing again.
pub(crate) struct Redraw<'a> {
    policy: &'a mut dyn Policy,
    open: HashMap<RequestId, Open>,
}

/// A question with an urn, and what has come of it.
struct Open {
    request: Request,
    urn: Urn,
    taken: Vec<Sample>,
    repeated: Vec<Sample>,
    redraws: u32,
}

impl Open {
    fn missing(&self) -> usize {
        self.request.samples - self.taken.len()
    }

    /// The question as an independent one, for what is missing.
    fn question(&self) -> Request {
        let stream = self.request.stream.child(self.urn.next_draw());
        Request { samples: self.missing(), stream, urn: None, ..self.request.clone() }
    }

    fn take_in(&mut self, samples: Vec<Sample>) {
        for sample in samples {
            // Without a temperature of its own a policy has the probabilities it reports.
            let share = if self.urn.has_taken(&sample.tactic) { 0.0 } else { sample.log_p.exp() };
            let is_new = self.urn.take(&sample.tactic, share);
            if is_new { &mut self.taken } else { &mut self.repeated }.push(sample);
        }
    }

    /// As many samples as were asked for, the repeated ones last; all tokens are accounted for.
    fn answer(mut self) -> Vec<Sample> {
        self.urn.set_left((1.0 - self.urn.taken()).max(LEAST));
        let stands = self.repeated.split_off(self.repeated.len().saturating_sub(self.missing()));
        let wasted: usize = self.repeated.iter().map(|sample| sample.tokens).sum();
        self.taken.extend(stands);
        self.taken.last_mut().into_iter().for_each(|last| last.tokens += wasted);
        self.taken
    }
}

impl<'a> Redraw<'a> {
    pub fn new(policy: &'a mut dyn Policy) -> Self {
        Redraw { policy, open: HashMap::new() }
    }

    fn settle(
        &mut self,
        id: RequestId,
        answer: Result<Vec<Sample>, Fault>,
    ) -> Option<(RequestId, Result<Vec<Sample>, Fault>)> {
        let Some(mut open) = self.open.remove(&id) else { return Some((id, answer)) };
        let samples = match answer {
            Ok(samples) => samples,
            Err(fault) => return Some((id, Err(fault))),
        };
        open.take_in(samples);
        if open.missing() == 0 || open.redraws == REDRAWS {
            return Some((id, Ok(open.answer())));
        }
        open.redraws += 1;
        self.policy.submit(open.question());
        self.open.insert(id, open);
        None
    }
}

impl Policy for Redraw<'_> {
    fn submit(&mut self, request: Request) {
        let urn = match &request.urn {
            Some(urn) if !self.policy.draws_without_replacement() => urn.clone(),
            _ => return self.policy.submit(request),
        };
        let open = Open { request, urn, taken: Vec::new(), repeated: Vec::new(), redraws: 0 };
        self.policy.submit(open.question());
        self.open.insert(open.request.id, open);
    }

    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
        loop {
            let some = self.policy.poll();
            let gave_up = some.is_empty();
            let ready: Vec<_> =
                some.into_iter().filter_map(|(id, answer)| self.settle(id, answer)).collect();
            if gave_up || !ready.is_empty() {
                return ready;
            }
        }
    }

    fn interrupt(&self) -> Option<Arc<AtomicBool>> {
        self.policy.interrupt()
    }

    fn describe(&self) -> String {
        self.policy.describe()
    }

    fn draws_without_replacement(&self) -> bool {
        self.policy.draws_without_replacement()
    }
}

#[cfg(test)]
mod tests {
    use catamount_search::Stream;

    use super::*;

    /// Draws one of `kinds` tactics, all equally likely.
    struct Dice {
        kinds: u64,
        pending: Vec<Request>,
    }

    impl Policy for Dice {
        fn submit(&mut self, request: Request) {
            assert!(request.urn.is_none());
            self.pending.push(request);
        }

        fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
            let draw = |stream: Stream| Sample {
                tactic: ((stream.uniform(0) * self.kinds as f64) as u64).to_string(),
                log_p: -(self.kinds as f64).ln(),
                tokens: 1,
            };
            let answer = |request: Request| {
                let samples = (0..request.samples as u64).map(|n| draw(request.stream.child(n)));
                (request.id, Ok(samples.collect()))
            };
            self.pending.drain(..).map(answer).collect()
        }

        fn describe(&self) -> String {
            "dice".into()
        }
    }

    fn ask(kinds: u64, urn: &Urn, samples: usize) -> Vec<Sample> {
        let mut dice = Dice { kinds, pending: Vec::new() };
        let mut policy = Redraw::new(&mut dice);
        let (state, stream) = (String::new(), Stream::new(3));
        policy.submit(Request { id: 7, state, samples, stream, urn: Some(urn.clone()) });
        let (id, answer) = policy.poll().remove(0);
        assert_eq!(id, 7);
        answer.unwrap()
    }

    #[test]
    fn what_is_repeated_is_drawn_again() {
        let urn = Urn::default();
        let mut all: Vec<Sample> = (0..5).flat_map(|_| ask(100, &urn, 6)).collect();
        assert_eq!(all.len(), 30);
        assert!(urn.repeats() > 0, "a hundred faces repeat within thirty draws");
        assert_eq!(all.iter().map(|s| s.tokens as u64).sum::<u64>(), 30 + urn.repeats());
        assert!((urn.left() - 0.7).abs() < 1e-9);
        all.sort_by(|a, b| a.tactic.cmp(&b.tactic));
        all.dedup_by(|a, b| a.tactic == b.tactic);
        assert_eq!(all.len(), 30);
    }

    #[test]
    fn a_policy_with_little_to_say_is_not_asked_for_ever() {
        let urn = Urn::default();
        let answer = ask(2, &urn, 6);
        assert_eq!(answer.len(), 6, "the rest are duplicates");
        assert_eq!(urn.taken(), 1.0);
        assert_eq!(urn.left(), LEAST);
        assert_eq!(answer.iter().map(|s| s.tokens as u64).sum::<u64>(), 2 + urn.repeats());
    }
}
