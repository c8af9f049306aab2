//! Training and sampling speed on the processor: 6 layers, width 256, vocabulary 4096. Run beside
//! `benches/torch_reference.py`. Words on the command line choose parts: `train`, `equal`,
//! `search`, `distinct` (the same samples without replacement, and what that costs); none means
//! all.

use std::sync::Arc;
use std::time::Instant;

use catamount_model::{
    Activations, AdamW, Batch, Config, Cpu, CpuTensor, Generator, GeneratorConfig, Keep, Kind,
    Memory, Model, Optimize, Sampling, Tokenizer,
};
use catamount_search::{Policy, Request, Stream, Urn};

const SAMPLING: GeneratorConfig = GeneratorConfig {
    sampling: Sampling { temperature: 1.0, top_p: 1.0 },
    max_tokens: 64,
    max_prompt: 512,
    batch: 32,
    cache: 8192,
};

/// Seconds of processor time this process has used, where the system says so: on a busy machine,
/// wall time measures the neighbours.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(f64::NAN);
    (ticks(11) + ticks(12)) / 100.0
}

/// The most memory this process has held, in MiB.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(f64::NAN)
        / 1024.0
}

/// Calls `work` once to warm up, then `repeats` times; it returns how many tokens it handled.
fn measure(what: &str, repeats: usize, mut work: impl FnMut() -> usize) {
    if !is_chosen(what) {
        return;
    }
    work();
    let (start, processor) = (Instant::now(), processor_seconds());
    let mut tokens = 0;
    let mut rates: Vec<f64> = (0..repeats)
        .map(|_| {
            let start = Instant::now();
            let count = work();
            tokens += count;
            count as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let used = processor_seconds() - processor;
    let (rate, per_second, busy) =
        (rates[repeats / 2], tokens as f64 / used, used / start.elapsed().as_secs_f64());
    let memory = peak_memory();
    println!(
        "{what:8} {rate:6.0} tokens/s, {per_second:5.0} per processor second, {busy:.2} cores \
         busy, peak memory {memory:.0} MiB"
    );
}

fn is_chosen(what: &str) -> bool {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    chosen.is_empty() || chosen.iter().any(|c| c == what)
}

/// A model with what training it needs.
struct Trainer {
    model: Model<Cpu>,
    state: Vec<[CpuTensor; 2]>,
    acts: Activations<Cpu>,
    step: u64,
}

impl Trainer {
    fn new() -> Self {
        let config = Config { intermediate: 704, ..Config::small(4096, 256, 6, 512) };
        let model = Model::init(Arc::new(Cpu), config, Stream::new(1)).expect("a model");
        let moments = |len: usize| [0, 1].map(|_| Cpu.zeros(len, Kind::Exact).expect("memory"));
        let state = model.trained().map(|p| moments(p.len())).collect();
        let acts = Activations::new(&model, 8 * 256, Keep::All).expect("activations");
        Trainer { model, state, acts, step: 0 }
    }

    /// One step of AdamW on a batch, every token scored; returns how many.
    fn train(&mut self, batch: &Batch, lr: f32) -> usize {
        self.step += 1;
        self.model.clear_gradients().expect("cpu");
        self.model.forward(batch, &mut self.acts, None).expect("cpu");
        let scored = self.model.score(&mut self.acts).expect("cpu").len();
        self.model.backward(&mut self.acts, &vec![-1.0 / scored as f32; scored]).expect("cpu");
        let adamw = AdamW {
            lr,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: 0.01,
            step: self.step,
            grad_scale: 1.0,
        };
        let parameters = self.model.trained_mut().zip(&mut self.state);
        let mut updates: Vec<_> = parameters.filter_map(|(p, moments)| p.update(moments)).collect();
        Cpu.adamw(&adamw, &mut updates).expect("cpu");
        scored
    }
}

/// 8 sequences of 257 random tokens, a share of them `end`.
fn batch(seed: u64, end: u32, share: f64) -> Batch {
    let mut batch = Batch::new();
    for s in 0..8 {
        let draw = |i: u64| Stream::new(seed).child(s).uniform(i);
        let token = |i: u64| if draw(1000 + i) < share { end } else { (draw(i) * 4096.0) as u32 };
        let tokens: Vec<u32> = (0..257).map(token).collect();
        batch.push(&tokens[..1], &tokens[1..]);
    }
    batch
}

/// Draws `samples` tactics for each of `states` different states of 64 tokens, distinct ones or
/// not; returns how many tokens were drawn.
fn sample(
    generator: &mut Generator<Cpu>,
    round: &mut u64,
    states: u64,
    samples: usize,
    distinct: bool,
) -> usize {
    for id in 0..states {
        *round += 1;
        let state: String = (0..63)
            .map(|i| char::from(b'a' + (Stream::new(*round).uniform(i) * 26.0) as u8))
            .collect();
        generator.submit(Request {
            id,
            state,
            samples,
            stream: Stream::new(9).child(*round),
            urn: distinct.then(Urn::default),
        });
    }
    let (mut left, mut drawn) = (states, 0);
    while left > 0 {
        for (_, answer) in generator.poll() {
            drawn += answer.expect("an answer").iter().map(|s| s.tokens).sum::<usize>();
            left -= 1;
        }
    }
    drawn
}

fn main() {
    let tokenizer = || Tokenizer::train_bpe(["a b c d"].iter(), 258).expect("a tokenizer");
    let end = tokenizer().end();
    let mut trainer = Trainer::new();
    println!("{}, {} parameters", Cpu.describe(), trainer.model.config.parameters());
    let random = batch(2, end, 0.0);
    measure("train", 5, || trainer.train(&random, 1e-4));

    // Equal lengths: the end token has no chance to come early.
    let model = Trainer::new().model;
    let mut generator = Generator::new(model, tokenizer(), SAMPLING, "bench").expect("a generator");
    let mut round = 0;
    measure("equal", 5, || sample(&mut generator, &mut round, 32, 1, false));

    // As in a search: four samples of a state, tactics of 12 tokens on average (the model has
    // learnt how often they end) and up to 64, the next question taking a finished sample's place.
    let mut trainer = Trainer::new();
    (0..30).for_each(|step| _ = trainer.train(&batch(100 + step, end, 1.0 / 12.0), 3e-3));
    let mut generator =
        Generator::new(trainer.model, tokenizer(), SAMPLING, "bench").expect("a generator");
    let mut drawn = 0;
    measure("search", 5, || {
        drawn = sample(&mut generator, &mut round, 128, 4, false);
        drawn
    });
    println!("search: {:.1} tokens a tactic", drawn as f64 / 512.0);
    if is_chosen("distinct") {
        compare(&mut generator);
    }
}

/// Plain and distinct samples in turn, of the same states: a few of each as in a search's first
/// visits, and many of each, when most steps have scarce tokens.
fn compare(generator: &mut Generator<Cpu>) {
    for (states, samples) in [(128, 4), (32, 64)] {
        let (mut seconds, mut tokens) = ([0.0; 2], [0; 2]);
        for repeat in 0..4u64 {
            for distinct in [false, true] {
                let (mut round, start) = (1_000_000 * (1 + repeat), processor_seconds());
                let drawn = sample(generator, &mut round, states, samples, distinct);
                // The first time is to warm up.
                if repeat > 0 {
                    seconds[usize::from(distinct)] += processor_seconds() - start;
                    tokens[usize::from(distinct)] += drawn;
                }
            }
        }
        let each = (3 * states as usize * samples) as f64;
        let [plain, distinct] = [0, 1].map(|i| 1e6 * seconds[i] / each);
        let [plain_token, distinct_token] = [0, 1].map(|i| 1e6 * seconds[i] / tokens[i] as f64);
        println!(
            "distinct {samples} samples of {states} states: {distinct:.0} us of processor time a \
             sample, plain {plain:.0}, ratio {:.3}; {distinct_token:.1} us a token, plain \
             {plain_token:.1}, ratio {:.3}",
            distinct / plain,
            distinct_token / plain_token,
        );
    }
}
