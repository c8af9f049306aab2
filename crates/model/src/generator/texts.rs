//! Text to tokens and back, on other threads than the one that keeps the device busy: a question's state takes the tokenizer about
//! as long as a small model needs for a whole step.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use catamount_search::{Fault, Request, RequestId, Sample, Stream};

use crate::{Error, Result, Tokenizer};

/// Questions that one task of the thread pool reads, or answers that it writes.
const HANDFUL: usize = 8;

/// A question as tokens.
pub(super) struct Prompt {
    pub id: RequestId,
    pub stream: Stream,
    pub samples: usize,
    pub tokens: Vec<u32>,
}

/// A sampled tactic as tokens.
pub(super) struct Drawn {
    pub tokens: Vec<u32>,
    pub log_p: f64,
}

/// The answer to a question.
pub(super) type Answer = (RequestId, std::result::Result<Vec<Sample>, Fault>);

/// What has become ready.
pub(super) enum Ready {
    Prompt(Prompt),
    Answer(Answer),
}

/// Texts on their way in and out.
pub(super) struct Texts {
    tokenizer: Arc<Tokenizer>,
    max_prompt: usize,
    questions: Vec<Request>,
    answers: Vec<(RequestId, Vec<Drawn>)>,
    sender: Sender<Ready>,
    receiver: Receiver<Ready>,
    /// Handed in and not yet received.
    under_way: usize,
}

impl Texts {
    pub fn new(tokenizer: Tokenizer, max_prompt: usize) -> Self {
        let (sender, receiver) = channel();
        let (questions, answers) = Default::default();
        Texts { tokenizer: Arc::new(tokenizer), max_prompt, questions, answers, sender, receiver, under_way: 0 }
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
        self.questions.push(request);
    }

    /// An answer that goes out.
    pub fn answer(&mut self, id: RequestId, samples: Vec<Drawn>) {
        self.under_way += 1;
        self.answers.push((id, samples));
    }

    /// Hands what has gathered to the thread pool.
    pub fn start(&mut self) {
        let max_prompt = self.max_prompt;
        spread(&self.tokenizer, &self.sender, &mut self.questions, move |tokenizer, request| {
            read(tokenizer, max_prompt, request)
        });
        spread(&self.tokenizer, &self.sender, &mut self.answers, write);
    }

    /// Something that is ready.
    pub fn receive(&mut self) -> Option<Ready> {
        let ready = self.receiver.try_recv().ok()?;
        self.under_way -= 1;
        Some(ready)
    }

    /// Waits until something is ready; `None` if nothing is under way.
    pub fn wait(&mut self) -> Option<Ready> {
        self.start();
        if self.under_way == 0 {
            return None;
        }
        let ready = self.receiver.recv().ok()?;
        self.under_way -= 1;
        Some(ready)
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.under_way == 0
    }
}

/// Works on items in the thread pool, a handful at a time, since waking a thread costs as much as an item.
fn spread<T: Send + 'static>(
    tokenizer: &Arc<Tokenizer>,
    sender: &Sender<Ready>,
    items: &mut Vec<T>,
    work: impl Fn(&Tokenizer, T) -> Ready + Clone + Send + 'static,
) {
    while !items.is_empty() {
        let some: Vec<T> = items.drain(..items.len().min(HANDFUL)).collect();
        let (tokenizer, sender, work) = (Arc::clone(tokenizer), sender.clone(), work.clone());
        // Nobody listens any more once the generator is gone.
        let task = move || some.into_iter().for_each(|item| _ = sender.send(work(&tokenizer, item)));
        // A thread of the pool must not wait for the pool.
        if rayon::current_thread_index().is_some() {
            task();
        } else {
            rayon::spawn_fifo(task);
        }
    }
}

fn read(tokenizer: &Tokenizer, max_prompt: usize, request: Request) -> Ready {
    match prompt(tokenizer, max_prompt, &request.state) {
        Ok(tokens) => Ready::Prompt(Prompt { id: request.id, stream: request.stream, samples: request.samples, tokens }),
        Err(error) => Ready::Answer((request.id, Err(Fault(error.to_string())))),
    }
}

/// A state that does not fit loses its end, where the later goals are; the separator stays. A search must be able to go on from any
/// state, and the prover judges whatever comes of it.
fn prompt(tokenizer: &Tokenizer, most: usize, state: &str) -> Result<Vec<u32>> {
    let mut tokens = tokenizer.prompt(state)?;
    if tokens.len() > most {
        let separator = tokens.split_off(tokens.len() - tokenizer.separator().len());
        tokens.truncate(most.saturating_sub(separator.len()));
        tokens.extend(separator);
    }
    if tokens.is_empty() { Err(Error::Tokenizer("an empty prompt".into())) } else { Ok(tokens) }
}

fn write(tokenizer: &Tokenizer, (id, samples): (RequestId, Vec<Drawn>)) -> Ready {
    let sample = |Drawn { tokens, log_p }: Drawn| {
        // Decoding known tokens does not fail; should it, an empty tactic is refused by every prover.
        let tactic = tokenizer.decode(&tokens).unwrap_or_default();
        Sample { tactic, log_p, tokens: tokens.len() }
    };
    Ready::Answer((id, Ok(samples.into_iter().map(sample).collect())))
}
