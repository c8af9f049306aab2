//! Text to tokens and back, on other threads than the one that keeps the device busy: the tokenizer
//! takes a hundred microseconds for a state, of which a small model on a GPU computes dozens in a
//! step. States and tactics come again and again in a search, so the recent ones are remembered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use catamount_search::{Fault, Request, RequestId, Sample, Stream, Urn};
use rayon::prelude::*;

use super::recent::Recent;
use crate::{Error, Result, Tokenizer};

/// Texts of each kind that are remembered.
const REMEMBERED: usize = 1 << 16;

/// Draws of a question that may repeat a tactic in other tokens before it is answered with fewer
/// samples than it asked for.
const REPEATS: usize = 64;

/// A question as tokens.
pub(super) struct Prompt {
    pub id: RequestId,
    pub stream: Stream,
    pub samples: usize,
    pub tokens: Arc<[u32]>,
    /// Where samples are drawn without replacement.
    pub taking: Option<Taking>,
}

impl Prompt {
    /// The question, and its state as text.
    fn new(request: Request, tokens: Arc<[u32]>) -> (Self, String) {
        let Request { id, samples, stream, urn, state } = request;
        let taking = urn.map(|urn| Taking { urn, taken: Vec::new(), repeats: 0, wasted: 0 });
        (Prompt { id, stream, samples, tokens, taking }, state)
    }

    /// Samples that are still to be drawn.
    pub fn missing(&self) -> usize {
        self.samples - self.taking.as_ref().map_or(0, |taking| taking.taken.len())
    }

    /// Whether there is an urn, and nothing left in it.
    pub fn is_drawn_out(&self) -> bool {
        self.taking.as_ref().is_some_and(|taking| taking.urn.left() == 0.0)
    }

    /// The answer, or the question again where different tokens were the same tactic.
    fn finish(mut self, drawn: impl Iterator<Item = (usize, f64, Sample)>) -> Ready {
        let Some(taking) = &mut self.taking else {
            return Ready::Answer((self.id, Ok(drawn.map(|(_, _, sample)| sample).collect())));
        };
        for (tokens, share, mut sample) in drawn {
            if taking.urn.take(&sample.tactic, share) {
                sample.tokens += std::mem::take(&mut taking.wasted);
                taking.taken.push(sample);
            } else {
                taking.wasted += tokens;
                taking.repeats += 1;
            }
        }
        let more = taking.taken.len() < self.samples && taking.repeats < REPEATS;
        if more && taking.urn.left() > 0.0 { Ready::Prompt(self) } else { self.into_answer() }
    }

    /// The answer as far as it goes.
    pub fn into_answer(self) -> Ready {
        let mut taken = Vec::new();
        if let Some(taking) = self.taking {
            taken = taking.taken;
            taken.last_mut().into_iter().for_each(|last| last.tokens += taking.wasted);
        }
        Ready::Answer((self.id, Ok(taken)))
    }
}

/// What has come of a question with an urn.
pub(super) struct Taking {
    pub urn: Urn,
    taken: Vec<Sample>,
    repeats: usize,
    /// Tokens of repeats since the last sample.
    wasted: usize,
}

/// A sampled tactic as tokens.
pub(super) struct Drawn {
    pub tokens: Vec<u32>,
    pub log_p: f64,
    pub share: f64,
}

impl Drawn {
    fn sample(&self, tactic: String) -> (usize, f64, Sample) {
        let tokens = self.tokens.len();
        (tokens, self.share, Sample { tactic, log_p: self.log_p, tokens })
    }
}

/// The answer to a question.
pub(super) type Answer = (RequestId, std::result::Result<Vec<Sample>, Fault>);

/// What has become ready.
pub(super) enum Ready {
    Prompt(Prompt),
    Answer(Answer),
}

/// What a thread of the pool has done.
enum Done {
    Read(Request, Result<Arc<[u32]>>),
    /// Each text twice: to be handed out, and to be remembered.
    Written(Prompt, Vec<(Drawn, [String; 2])>),
}

/// Texts on their way in and out.
pub(super) struct Texts {
    tokenizer: Arc<Tokenizer>,
    max_prompt: usize,
    states: Recent<String, Arc<[u32]>>,
    tactics: Recent<Vec<u32>, String>,
    questions: Vec<Request>,
    answers: Vec<(Prompt, Vec<Drawn>)>,
    /// What was remembered, and needs no thread.
    ready: VecDeque<Ready>,
    sender: Sender<Done>,
    receiver: Receiver<Done>,
    /// Handed in and not yet received.
    under_way: usize,
}

impl Texts {
    pub fn new(tokenizer: Tokenizer, max_prompt: usize) -> Self {
        let (sender, receiver) = channel();
        Texts {
            tokenizer: Arc::new(tokenizer),
            max_prompt,
            states: Recent::new(REMEMBERED),
            tactics: Recent::new(REMEMBERED),
            questions: Vec::new(),
            answers: Vec::new(),
            ready: VecDeque::new(),
            sender,
            receiver,
            under_way: 0,
        }
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub fn into_tokenizer(self) -> Tokenizer {
        Arc::unwrap_or_clone(self.tokenizer)
    }

    /// A question that comes in.
    pub fn ask(&mut self, request: Request) {
        self.under_way += 1;
        match self.states.get(&request.state) {
            Some(tokens) => {
                let (prompt, _) = Prompt::new(request, Arc::clone(tokens));
                self.ready.push_back(Ready::Prompt(prompt));
            }
            None => self.questions.push(request),
        }
    }

    /// An answer that goes out.
    pub fn answer(&mut self, prompt: Prompt, drawn: Vec<Drawn>) {
        self.under_way += 1;
        if let Some(drawn) = drawn.iter().find(|drawn| !drawn.log_p.is_finite()) {
            let fault = Fault(format!(
                "the model gives its own sample log p = {}: are its weights damaged?",
                drawn.log_p
            ));
            self.ready.push_back(Ready::Answer((prompt.id, Err(fault))));
            return;
        }
        let tactics = &mut self.tactics;
        let known = |d: &Drawn| tactics.get(&d.tokens).map(|text| d.sample(text.clone()));
        match drawn.iter().map(known).collect::<Option<Vec<_>>>() {
            Some(samples) => self.ready.push_back(prompt.finish(samples.into_iter())),
            None => self.answers.push((prompt, drawn)),
        }
    }

    /// Hands what has gathered to the thread pool.
    pub fn start(&mut self) {
        let max_prompt = self.max_prompt;
        spread(
            &self.tokenizer,
            &self.sender,
            &mut self.questions,
            move |tokenizer, request: Request| {
                let tokens = prompt(tokenizer, max_prompt, &request.state);
                Done::Read(request, tokens.map(Arc::from))
            },
        );
        spread(
            &self.tokenizer,
            &self.sender,
            &mut self.answers,
            |tokenizer, (prompt, drawn): (Prompt, Vec<Drawn>)| {
                // Decoding known tokens does not fail; should it, an empty tactic is refused by
                // every prover.
                let text = |d: Drawn| {
                    let text = tokenizer.decode(&d.tokens).unwrap_or_default();
                    (d, [text.clone(), text])
                };
                Done::Written(prompt, drawn.into_iter().map(text).collect())
            },
        );
    }

    /// Something that is ready.
    pub fn receive(&mut self) -> Option<Ready> {
        let ready = self
            .ready
            .pop_front()
            .or_else(|| self.receiver.try_recv().ok().map(|done| self.remember(done)))?;
        self.under_way -= 1;
        Some(ready)
    }

    /// Waits until something is ready; `None` if nothing is under way.
    pub fn wait(&mut self) -> Option<Ready> {
        self.start();
        if let Some(ready) = self.receive() {
            return Some(ready);
        }
        if self.under_way == 0 {
            return None;
        }
        let done = self.receiver.recv().ok()?;
        self.under_way -= 1;
        Some(self.remember(done))
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    fn remember(&mut self, done: Done) -> Ready {
        match done {
            Done::Read(request, Ok(tokens)) => {
                let (prompt, state) = Prompt::new(request, Arc::clone(&tokens));
                self.states.insert(state, tokens);
                Ready::Prompt(prompt)
            }
            Done::Read(request, Err(error)) => {
                Ready::Answer((request.id, Err(Fault(error.to_string()))))
            }
            Done::Written(prompt, texts) => {
                let one = |(drawn, [text, remembered]): (Drawn, [String; 2])| {
                    let sample = drawn.sample(text);
                    self.tactics.insert(drawn.tokens, remembered);
                    sample
                };
                prompt.finish(texts.into_iter().map(one))
            }
        }
    }
}

/// Works on items in the thread pool. One task is handed in, which spreads the rest from inside:
/// waking a thread takes longer than most items, and the thread that keeps the device busy has no
/// time for more than one.
fn spread<T: Send + 'static>(
    tokenizer: &Arc<Tokenizer>,
    sender: &Sender<Done>,
    items: &mut Vec<T>,
    work: impl Fn(&Tokenizer, T) -> Done + Send + Sync + 'static,
) {
    if items.is_empty() {
        return;
    }
    let (items, tokenizer, sender) = (std::mem::take(items), Arc::clone(tokenizer), sender.clone());
    // Nobody listens any more once the generator is gone.
    let task = move || {
        items
            .into_par_iter()
            .for_each_with(sender, |sender, item| _ = sender.send(work(&tokenizer, item)))
    };
    // A thread of the pool must not wait for the pool.
    if rayon::current_thread_index().is_some() {
        task();
    } else {
        rayon::spawn_fifo(task);
    }
}

/// A state that does not fit loses its end, where the later goals are; the separator stays. A
/// search must be able to go on from any state, and the prover judges whatever comes of it.
fn prompt(tokenizer: &Tokenizer, most: usize, state: &str) -> Result<Vec<u32>> {
    let mut tokens = tokenizer.prompt(state)?;
    if tokens.len() > most {
        let separator = tokens.split_off(tokens.len() - tokenizer.separator().len());
        tokens.truncate(most.saturating_sub(separator.len()));
        tokens.extend(separator);
    }
    if tokens.is_empty() { Err(Error::Tokenizer("an empty prompt".into())) } else { Ok(tokens) }
}
