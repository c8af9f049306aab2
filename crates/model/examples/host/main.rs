//! What sampling costs the host: a generator whose device takes no time, and whose thread does
//! what it does beside a GPU. Words on the command line choose loads by their names; none means
//! all. With `new`, a machine of few cores spends most of its time on reading states, on other
//! threads, and steps have few rows.

mod idle;

use std::sync::Arc;
use std::time::{Duration, Instant};

use catamount_model::{Config, Generator, GeneratorConfig, Model, Sampling, Tokenizer};
use catamount_search::{Policy, Request, Stream, Urn};

use self::idle::Idle;

const CONFIG: GeneratorConfig = GeneratorConfig {
    sampling: Sampling { temperature: 1.0, top_p: 1.0 },
    max_tokens: 64,
    max_prompt: 512,
    batch: 512,
    cache: 262_144,
};

/// Searches in flight, and symbols of a state.
const SEARCHES: u64 = 256;
const SYMBOLS: u64 = 60;

/// What a search asks for.
struct Load {
    name: &'static str,
    /// Questions of a search.
    questions: u64,
    /// Samples of a question.
    samples: usize,
    /// Which state a question is about, given the round, the search and the question.
    state: fn(u64, u64, u64) -> u64,
    distinct: bool,
}

const LOADS: [Load; 4] = [
    // States that were read before, and more of them than the cache has room for.
    Load { name: "plain", questions: 64, samples: 4, state: seen, distinct: false },
    Load { name: "new", questions: 64, samples: 4, state: new, distinct: false },
    Load { name: "again", questions: 256, samples: 1, state: root, distinct: false },
    Load { name: "distinct", questions: 256, samples: 4, state: root, distinct: true },
];

fn seen(_: u64, search: u64, question: u64) -> u64 {
    (question * SEARCHES + search) % 8192
}

fn new(round: u64, search: u64, question: u64) -> u64 {
    (round << 32) + question * SEARCHES + search
}

fn root(_: u64, search: u64, _: u64) -> u64 {
    search
}

/// The processor time that this thread has used.
fn thread_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split_whitespace().next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn tokenizer(words: &[String]) -> Tokenizer {
    Tokenizer::train_symbols(words.iter(), 8192).expect("a tokenizer")
}

/// A state's text.
fn text(words: &[String], state: u64) -> String {
    let stream = Stream::new(state);
    let word = |i| &*words[(stream.uniform(i) * words.len() as f64) as usize];
    (0..SYMBOLS).map(word).collect::<Vec<_>>().join(" ")
}

/// All searches of a load, each going on when it is answered; counts samples and tokens.
fn run(generator: &mut Generator<Idle>, words: &[String], load: &Load, round: u64) -> [u64; 2] {
    let urns: Vec<Option<Urn>> = (0..SEARCHES).map(|_| load.distinct.then(Urn::default)).collect();
    let request = |search: u64, question: u64| {
        let stream = Stream::new(round).child(search);
        // The draws of an urn share a stream.
        let stream = if load.distinct { stream } else { stream.child(question) };
        Request {
            id: question * SEARCHES + search,
            state: text(words, (load.state)(round, search, question)),
            samples: load.samples,
            stream,
            urn: urns[search as usize].clone(),
        }
    };
    let [mut samples, mut tokens] = [0; 2];
    (0..SEARCHES).for_each(|search| generator.submit(request(search, 0)));
    loop {
        let answers = generator.poll();
        if answers.is_empty() {
            return [samples, tokens];
        }
        for (id, answer) in answers {
            let answer = answer.expect("an answer");
            samples += answer.len() as u64;
            tokens += answer.iter().map(|sample| sample.tokens as u64).sum::<u64>();
            let (search, question) = (id % SEARCHES, id / SEARCHES + 1);
            if question < load.questions {
                generator.submit(request(search, question));
            }
        }
    }
}

/// What making the questions costs, which is not the generator's.
fn asking(words: &[String], load: &Load) -> Duration {
    let started = thread_time();
    let length: usize = (0..load.questions * SEARCHES).map(|state| text(words, state).len()).sum();
    assert!(length > 0);
    thread_time() - started
}

fn main() {
    let words: Vec<String> = (0..6000).map(|n| format!("s{n}")).collect();
    let end = tokenizer(&words).end();
    let config = Config::small(tokenizer(&words).vocab(), 32, 1, 1024);
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let is_chosen = |load: &&Load| chosen.is_empty() || chosen.iter().any(|c| c == load.name);
    for load in LOADS.iter().filter(is_chosen) {
        let idle = Arc::new(Idle::new(config.vocab, end, 0.2));
        let model = Model::zeros(Arc::clone(&idle), config.clone(), false).expect("a model");
        let mut generator =
            Generator::new(model, tokenizer(&words), CONFIG, "idle").expect("a generator");
        run(&mut generator, &words, load, 1);
        for round in 2..5 {
            let (started, wall, drawing) = (thread_time(), Instant::now(), idle.drawing());
            let before = generator.work();
            let [samples, tokens] = run(&mut generator, &words, load, round);
            let rows = tokens as f64 / (generator.work() - before).steps as f64;
            let (wall, used) = (wall.elapsed(), thread_time() - started);
            let host = used.saturating_sub(idle.drawing() - drawing + asking(&words, load));
            let each = |time: Duration, n: u64| 1e6 * time.as_secs_f64() / n as f64;
            println!(
                "{:9} {samples} samples, {tokens} tokens, {rows:.0} a step: {:.2} us a sample, \
                 {:.3} us a token on the generator's thread; by the clock {:.2} us a sample, \
                 drawing included",
                load.name,
                each(host, samples),
                each(host, tokens),
                each(wall, samples),
            );
        }
    }
}
