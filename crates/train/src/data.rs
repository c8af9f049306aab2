//! Traces as tokens: every step an example, whose prompt is the state and whose target is the
//! tactic with its end token.

use std::ops::Range;

use catamount_model::{Batch, Tokenizer};
use catamount_traces::Trace;
use rayon::prelude::*;

use crate::{Error, Result, Scores};

/// One step of a trace, as tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The state and the separator.
    pub prompt: Vec<u32>,
    /// The tactic and the end token.
    pub tactic: Vec<u32>,
}

impl Example {
    /// Tokenises one step.
    pub(crate) fn new(tokenizer: &Tokenizer, state: &str, tactic: &str) -> Result<Self> {
        Ok(Example { prompt: tokenizer.prompt(state)?, tactic: tokenizer.tactic(tactic)? })
    }

    /// Tokens in all.
    pub(crate) fn tokens(&self) -> usize {
        self.prompt.len() + self.tactic.len()
    }
}

/// Where an example lies among the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    first: usize,
    prompt: u32,
    tactic: u32,
    /// The trace and the step it is, as they were given.
    trace: u32,
    step: u32,
}

/// Tokenised traces, in the order they were given.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    tokens: Vec<u32>,
    places: Vec<Place>,
    /// First example of each trace, then the number of examples.
    starts: Vec<usize>,
    dropped: usize,
    shortened: usize,
    /// log p of every example, where weights are not to be computed from the model's own.
    given: Option<Vec<f64>>,
}

impl Dataset {
    /// Tokenises traces. Examples of more than `max_tokens` tokens are dropped rather than cut, so
    /// that no half-shown state or tactic is learned; their trace is then weighed by the steps it
    /// has left.
    pub fn tokenize(tokenizer: &Tokenizer, traces: &[Trace], max_tokens: usize) -> Result<Self> {
        let tokenised: Vec<Vec<Example>> = traces
            .par_iter()
            .map(|trace| {
                trace
                    .steps
                    .iter()
                    .map(|step| Example::new(tokenizer, &step.state, &step.tactic))
                    .collect()
            })
            .collect::<Result<_>>()?;
        Self::new(tokenised, max_tokens)
    }

    /// Traces that are tokens already.
    pub fn new(traces: impl IntoIterator<Item = Vec<Example>>, max_tokens: usize) -> Result<Self> {
        let mut data = Dataset {
            tokens: Vec::new(),
            places: Vec::new(),
            starts: vec![0],
            dropped: 0,
            shortened: 0,
            given: None,
        };
        let mut longest = 0;
        for (index, examples) in traces.into_iter().enumerate() {
            let given = examples.len();
            for (step, example) in examples.into_iter().enumerate() {
                let Example { prompt, tactic } = &example;
                if prompt.is_empty() || tactic.is_empty() {
                    let which = if prompt.is_empty() { "state" } else { "tactic" };
                    let (trace, step) = (index + 1, step + 1);
                    return Err(Error::Data(format!(
                        "trace {trace}, step {step}: the {which} has no tokens, not even a \
                         separator"
                    )));
                }
                longest = longest.max(example.tokens());
                if example.tokens() > max_tokens {
                    data.dropped += 1;
                    continue;
                }
                data.places.push(Place {
                    first: data.tokens.len(),
                    prompt: prompt.len() as u32,
                    tactic: tactic.len() as u32,
                    trace: index as u32,
                    step: step as u32,
                });
                data.tokens.extend(prompt.iter().chain(tactic));
            }
            let kept = data.places.len() - data.starts[data.starts.len() - 1];
            data.shortened += usize::from(kept < given);
            if kept > 0 {
                data.starts.push(data.places.len());
            }
        }
        match (data.is_empty(), data.dropped) {
            (false, _) => Ok(data),
            (true, 0) => Err(Error::Data("there is no trace to train on".into())),
            (true, dropped) => Err(Error::Data(format!(
                "all {dropped} examples are longer than max_tokens = {max_tokens} (the longest \
                 has {longest}); raise it"
            ))),
        }
    }

    /// The same data, whose weights are computed from these scores instead of the model's own
    /// probabilities. `traces` are those that were tokenised.
    pub fn weighed_by(mut self, scores: &Scores, traces: &[Trace]) -> Result<Self> {
        let of = |place: &Place| {
            let (trace, step) = (&traces[place.trace as usize], place.step as usize);
            let name = &trace.theorem.name;
            let log_p = match scores.get(name) {
                Some(log_p) if log_p.len() == trace.steps.len() => log_p[step],
                Some(log_p) => {
                    return Err(Error::Data(format!(
                        "{name} has {} steps, and scores of {}; score these very traces",
                        trace.steps.len(),
                        log_p.len()
                    )));
                }
                None => None,
            };
            log_p.ok_or_else(|| {
                Error::Data(format!("step {} of {name} has no score; score it", step + 1))
            })
        };
        self.given = Some(self.places.iter().map(of).collect::<Result<_>>()?);
        Ok(self)
    }

    /// The log-probabilities that weights are computed from, if they were given.
    pub fn given(&self) -> Option<&[f64]> {
        self.given.as_deref()
    }

    /// Which trace and which of its steps an example is, as they were given.
    pub fn origin(&self, example: usize) -> (usize, usize) {
        let Place { trace, step, .. } = self.places[example];
        (trace as usize, step as usize)
    }

    /// Traces with at least one example.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is nothing to train on.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Examples that are kept.
    pub fn examples(&self) -> usize {
        self.places.len()
    }

    /// Examples that were too long.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Traces that lost examples, all of them or some.
    pub fn shortened(&self) -> usize {
        self.shortened
    }

    /// The examples of a trace.
    pub fn trace(&self, trace: usize) -> Range<usize> {
        self.starts[trace]..self.starts[trace + 1]
    }

    /// The prompt and the target of an example.
    pub fn example(&self, example: usize) -> (&[u32], &[u32]) {
        let Place { first, prompt, tactic, .. } = self.places[example];
        self.tokens[first..first + (prompt + tactic) as usize].split_at(prompt as usize)
    }

    /// Token rows an example takes in a batch.
    pub(crate) fn rows(&self, example: usize) -> usize {
        let Place { prompt, tactic, .. } = self.places[example];
        (prompt + tactic) as usize - 1
    }

    /// Token rows of the longest example.
    pub(crate) fn longest(&self) -> usize {
        (0..self.examples()).map(|e| self.rows(e)).max().unwrap_or(0)
    }

    /// Adds an example to a batch.
    pub(crate) fn push(&self, example: usize, batch: &mut Batch) -> Range<usize> {
        let (prompt, tactic) = self.example(example);
        batch.push(prompt, tactic)
    }

    /// A number that tells data apart: whether a checkpoint was made with this very data.
    pub fn fingerprint(&self) -> u64 {
        let places = self.places.iter().flat_map(|p| [p.prompt, p.tactic]);
        let numbers =
            self.tokens.iter().copied().chain(places).chain(self.starts.iter().map(|s| *s as u32));
        let given = self.given.iter().flatten().map(|l| l.to_bits());
        let given = given.flat_map(|bits| [bits as u32, (bits >> 32) as u32]);
        // FNV-1a over whole numbers: stable across platforms and versions.
        numbers.chain(given).fold(0xcbf2_9ce4_8422_2325, |h: u64, n| {
            (h ^ u64::from(n)).wrapping_mul(0x100_0000_01b3)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(prompt: usize, tactic: usize) -> Example {
        Example { prompt: vec![1; prompt], tactic: vec![2; tactic] }
    }

    #[test]
    fn too_long_is_dropped_and_counted_never_cut() {
        let traces = [vec![example(3, 2), example(4, 4)], vec![example(9, 1)], vec![example(5, 1)]];
        let data = Dataset::new(traces, 6).unwrap();
        assert_eq!((data.len(), data.examples(), data.dropped(), data.shortened()), (2, 2, 2, 2));
        assert_eq!(data.example(1), (&[1; 5][..], &[2][..]));
        assert_eq!((data.trace(1), data.rows(0)), (1..2, 4));
    }

    #[test]
    fn nothing_to_train_on_is_said() {
        let none = Dataset::new([vec![example(9, 1)]], 6).unwrap_err().to_string();
        assert!(none.contains("max_tokens = 6") && none.contains("longest has 10"), "{none}");
        assert!(Dataset::new([], 6).unwrap_err().to_string().contains("no trace"));
        assert!(
            Dataset::new([vec![example(0, 2)]], 6)
                .unwrap_err()
                .to_string()
                .contains("trace 1, step 1")
        );
    }

    #[test]
    fn scores_find_their_examples_by_name_and_step() {
        let step = |n: usize| catamount_traces::Step {
            state: "x ".repeat(n),
            tactic: "y".into(),
            ..Default::default()
        };
        let trace = |name: &str, lengths: &[usize]| Trace {
            theorem: catamount_traces::Theorem { name: name.into(), ..Default::default() },
            steps: lengths.iter().map(|n| step(*n)).collect(),
        };
        // The second step of `b` is too long.
        let traces = [trace("a", &[1]), trace("b", &[2, 9, 3]), trace("c", &[1, 1])];
        let tokens = traces.iter().map(|t| t.steps.iter().map(|s| example(s.state.len(), 1)));
        let data = Dataset::new(tokens.map(Iterator::collect), 12).unwrap();
        assert_eq!((1..4).map(|e| data.origin(e)).collect::<Vec<_>>(), [(1, 0), (1, 2), (2, 0)]);
        let scores = Scores::new(&traces, &data, &[-1.0, -2.0, -3.0, -4.0, -5.0]);
        assert_eq!(scores.get("b"), Some(&[Some(-2.0), None, Some(-3.0)][..]));
        let given = data.clone().weighed_by(&scores, &traces).unwrap();
        assert_eq!(given.given(), Some(&[-1.0, -2.0, -3.0, -4.0, -5.0][..]));
        assert_ne!(given.fingerprint(), data.fingerprint());
        let other = [trace("a", &[1]), trace("d", &[2, 9, 3]), trace("c", &[1, 1])];
        let error = data.weighed_by(&scores, &other).unwrap_err().to_string();
        assert!(error.contains("step 1 of d has no score"), "{error}");
    }

    #[test]
    fn fingerprints_tell_data_apart() {
        let data =
            |a, b| Dataset::new([vec![example(a, 2), example(b, 2)]], 20).unwrap().fingerprint();
        assert_eq!(data(3, 4), data(3, 4));
        assert_ne!(data(3, 4), data(4, 3));
        let apart =
            Dataset::new([vec![example(3, 2)], vec![example(4, 2)]], 20).unwrap().fingerprint();
        assert_ne!(data(3, 4), apart);
    }
}
