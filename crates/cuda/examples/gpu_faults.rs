//! What must not go wrong on a GPU: a process killed at any moment, a GPU lost in the middle, two
//! processes on one card, too little memory, NaN in a kernel. Each is made to happen in processes
//! of its own, and what is left afterwards is compared.
//!
//! `cargo run --release -p catamount-cuda --example gpu_faults [-- --require-gpu]`

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use catamount_cuda::Cuda;
use catamount_model::{Config, Generator, GeneratorConfig, Memory, Model, Sampling, Tokenizer};
use catamount_objective::{Objective, Surrogate};
use catamount_search::{Policy, Request, Stream};
use catamount_traces::{Step, Theorem, Trace};
use catamount_train::{Batching, Checkpoints, Dataset, Optimizer, Recipe, Run, prepare, train};

type Failure = Box<dyn std::error::Error>;
type Outcome<T> = Result<T, Failure>;

const STEPS: usize = 400;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        [] => check_all(false),
        ["--require-gpu"] => check_all(true),
        ["train", folder, lose] => {
            child_train(Path::new(folder), lose.parse().unwrap_or(0), 1024, false)
        }
        ["memory", folder] => child_train(Path::new(folder), 0, 1 << 24, false),
        ["nan", folder] => child_train(Path::new(folder), 0, 1024, true),
        ["sample"] => child_sample(),
        _ => Err("usage: gpu_faults [--require-gpu]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A sum of symbols is proved by naming them one after another.
fn traces() -> Vec<Trace> {
    let trace = |i: u64| {
        let stream = Stream::new(11).child(i);
        let length = 1 + i as usize % 5;
        let symbols: Vec<String> = (0..length as u64)
            .map(|s| format!("s{}", (stream.uniform(s) * 1000.0) as usize))
            .collect();
        let state = |from: usize| format!("|- {}", symbols[from..].join(" + "));
        let step = |s: usize| Step {
            state: state(s),
            tactic: format!("take {}", symbols[s]),
            next: Some(state(s + 1)),
            ..Step::default()
        };
        let theorem =
            Theorem { name: format!("sum{i}"), statement: state(0), ..Theorem::default() };
        Trace { theorem, steps: (0..length).map(step).collect() }
    };
    (0..3000).map(trace).collect()
}

fn world(cuda: &Arc<Cuda>) -> Outcome<(Model<Cuda>, Tokenizer, Vec<Trace>)> {
    let traces = traces();
    let texts = traces.iter().flat_map(|t| &t.steps).flat_map(|s| [&s.state, &s.tactic]);
    let tokenizer = Tokenizer::train_symbols(texts, 2048)?;
    let mut config = Config::small(tokenizer.vocab().next_multiple_of(8), 256, 4, 128);
    // A symbol's embedding is then its own business: it is not part of every row's logits.
    config.tied = false;
    Ok((Model::init(cuda.clone(), config, Stream::new(42))?, tokenizer, traces))
}

/// Trains from wherever the folder's run stands. `lose` milliseconds after the start the GPU is
/// lost, if that is not zero.
fn child_train(folder: &Path, lose: u64, tokens: usize, nan: bool) -> Outcome<()> {
    let cuda = Arc::new(Cuda::new(0)?);
    let (mut model, tokenizer, traces) = world(&cuda)?;
    if nan {
        // The embedding of one symbol: only the micro-batches that hold it are spoilt.
        let (hidden, token) = (model.config.hidden, 500);
        cuda.upload(&vec![f32::NAN; hidden], &mut model.embedding.value, token * hidden)?;
    }
    let recipe = Recipe {
        max_steps: Some(STEPS),
        epochs: 100,
        max_tokens: 128,
        batch: Batching { examples: 32, tokens, recompute: false },
        optimizer: Optimizer { lr: 1e-3, ..Optimizer::default() },
        checkpoints: Checkpoints { every: 20, keep: 2 },
        ..Recipe::default()
    };
    prepare(&mut model, &recipe)?;
    let (data, stop) =
        (Dataset::tokenize(&tokenizer, &traces, recipe.max_tokens)?, AtomicBool::new(false));
    if lose > 0 {
        std::thread::spawn(move || lose_gpu(Duration::from_millis(lose)));
    }
    let run = Run::new(folder, "run", &stop).resuming(true);
    let outcome = train(&mut model, &data, &Surrogate::new(Objective::Ce, 0), &recipe, &run)?;
    let summary = outcome.summary();
    println!("{} of {} steps, {} skipped", summary.step, summary.steps, summary.skipped);
    Ok(())
}

/// A kernel that writes where nothing is: the driver takes the whole context away, as it does when
/// hardware fails.
fn lose_gpu(after: Duration) {
    use cudarc::driver::{CudaContext, LaunchConfig};
    std::thread::sleep(after);
    let stray = || -> Outcome<()> {
        let context = CudaContext::new(0)?;
        let source = "extern \"C\" __global__ void stray() { *(volatile int*)8 = 1; }";
        let function =
            context.load_module(cudarc::nvrtc::compile_ptx(source)?)?.load_function("stray")?;
        // SAFETY: it does what it is for.
        unsafe {
            context
                .default_stream()
                .launch_builder(&function)
                .launch(LaunchConfig::for_num_elems(1))
        }?;
        Ok(())
    };
    if let Err(error) = stray() {
        eprintln!("the GPU could not be lost: {error}");
    }
}

/// Samples from the untrained model and prints what comes.
fn child_sample() -> Outcome<()> {
    let cuda = Arc::new(Cuda::new(0)?);
    let (model, tokenizer, traces) = world(&cuda)?;
    let sampling = Sampling { temperature: 0.8, top_p: 0.95 };
    let config =
        GeneratorConfig { sampling, max_tokens: 24, max_prompt: 64, batch: 64, cache: 16_384 };
    let mut generator = Generator::new(model, tokenizer, config, "untrained")?;
    for (i, trace) in traces.iter().enumerate().take(400) {
        let state = trace.steps[0].state.clone();
        generator.submit(Request {
            id: i as u64,
            state,
            samples: 8,
            stream: Stream::new(5).child(i as u64),
            urn: None,
        });
    }
    let mut answers = Vec::new();
    while answers.len() < 400 {
        answers.extend(generator.poll());
    }
    answers.sort_by_key(|(id, _)| *id);
    for (id, samples) in answers {
        let samples = samples.map_err(|fault| fault.0)?;
        println!(
            "{id} {:?}",
            samples.iter().map(|s| (&s.tactic, s.log_p.to_bits())).collect::<Vec<_>>()
        );
    }
    Ok(())
}

fn check_all(required: bool) -> Outcome<()> {
    match Cuda::new(0) {
        Ok(cuda) => println!("{}", cuda.describe()),
        Err(reason) if required => return Err(reason.into()),
        Err(reason) => {
            println!("nothing checked: {reason}");
            return Ok(());
        }
    }
    let root = std::env::temp_dir().join(format!("catamount-faults-{}", std::process::id()));
    let checked = Faults { root: root.clone() }.check();
    let _ = std::fs::remove_dir_all(root);
    checked
}

struct Faults {
    root: PathBuf,
}

impl Faults {
    fn check(&self) -> Outcome<()> {
        // Once before: kernels are compiled and algorithms chosen by the first process there is.
        self.finish("first")?;
        let start = Instant::now();
        self.finish("alone")?;
        let alone = start.elapsed();
        println!("alone: {} steps in {:.1} s", STEPS, alone.as_secs_f64());
        self.same("first", "a second run gives the same bits")?;
        self.killed(alone)?;
        self.lost(alone)?;
        self.together()?;
        self.memory()?;
        self.nan()
    }

    fn spawn(&self, words: &[&str]) -> Outcome<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        Ok(command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }

    fn folder(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    fn train(&self, name: &str, lose: u64) -> Outcome<Child> {
        self.spawn(&["train", &self.folder(name), &lose.to_string()])
    }

    fn finish(&self, name: &str) -> Outcome<()> {
        succeeded(name, &self.train(name, 0)?.wait_with_output()?)
    }

    fn checkpoints(&self, name: &str) -> Vec<String> {
        let found = std::fs::read_dir(self.root.join(name).join("run/checkpoints"));
        let mut names: Vec<String> = found
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn state(&self, name: &str) -> Outcome<Vec<u8>> {
        let folder = self.root.join(name).join(format!("run/checkpoints/step-{STEPS:08}"));
        Ok(std::fs::read(folder.join("state.safetensors"))?)
    }

    /// Parameters and moments on the disk against those of the undisturbed run.
    fn same(&self, name: &str, what: &str) -> Outcome<()> {
        if self.state(name)? != self.state("alone")? {
            return Err(format!("{what}: no, parameters or moments differ").into());
        }
        println!("{what}: parameters and moments on the disk are equal, bit for bit");
        Ok(())
    }

    fn killed(&self, alone: Duration) -> Outcome<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos() as u64;
        for i in 0..3 {
            let mut child = self.train("killed", 0)?;
            // Somewhere in the middle, also in the middle of a checkpoint.
            std::thread::sleep(alone.mul_f64(0.35 + 0.35 * Stream::new(now).uniform(i)));
            child.kill()?;
            child.wait()?;
            println!("  killed; on the disk: {}", self.checkpoints("killed").join(" "));
        }
        self.finish("killed")?;
        self.same("killed", "killed three times and resumed")
    }

    fn lost(&self, alone: Duration) -> Outcome<()> {
        let lose = alone.mul_f64(0.5).as_millis() as u64;
        let output = self.train("lost", lose)?.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("  the GPU lost after {lose} ms: {} {}", output.status, said.trim());
        println!("  on the disk: {}", self.checkpoints("lost").join(" "));
        if output.status.code() != Some(1) || !said.contains("the GPU is lost to this process") {
            return Err("a lost GPU must be said and end the process with 1".into());
        }
        self.finish("lost")?;
        self.same("lost", "the GPU lost in the middle, then resumed")
    }

    fn together(&self) -> Outcome<()> {
        let sampled = self.spawn(&["sample"])?.wait_with_output()?;
        succeeded("sampling", &sampled)?;
        let again = self.spawn(&["sample"])?.wait_with_output()?;
        same_samples("sampling a second time", &sampled, &again)?;
        let trainings = [("one", self.train("one", 0)?), ("other", self.train("other", 0)?)];
        let beside = self.spawn(&["sample"])?.wait_with_output()?;
        succeeded("sampling beside", &beside)?;
        for (name, child) in trainings {
            succeeded(name, &child.wait_with_output()?)?;
            self.same(name, "three processes on one card, a training")?;
        }
        same_samples("three processes on one card, sampling", &sampled, &beside)
    }

    fn memory(&self) -> Outcome<()> {
        let output = self.spawn(&["memory", &self.folder("memory")])?.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("  too little memory: {} {}", output.status, said.trim());
        if output.status.code() != Some(1)
            || !said.contains("GiB free")
            || !said.contains("% of this one's rows")
        {
            return Err("too little memory must be said, with what would fit".into());
        }
        if !self.checkpoints("memory").is_empty() {
            return Err("a checkpoint was begun".into());
        }
        println!("too little memory: said with what would fit, nothing half-written");
        Ok(())
    }

    fn nan(&self) -> Outcome<()> {
        let output = self.spawn(&["nan", &self.folder("nan")])?.wait_with_output()?;
        succeeded("nan", &output)?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let skipped: usize =
            said.split_whitespace().rev().nth(1).and_then(|w| w.parse().ok()).unwrap_or(0);
        if skipped == 0 || skipped >= STEPS {
            return Err(format!("some steps, not all, should have been skipped: {said}").into());
        }
        println!("NaN in one symbol's embedding: {}", said.trim());
        Ok(())
    }
}

/// Compares two processes' samples.
fn same_samples(what: &str, one: &Output, other: &Output) -> Outcome<()> {
    let lines = |output: &Output| {
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (one, other) = (lines(one), lines(other));
    let different: Vec<_> = one.iter().zip(&other).filter(|(a, b)| a != b).collect();
    if one.len() != 400 || other.len() != 400 || !different.is_empty() {
        let (a, b) = different.first().map_or(("", ""), |(a, b)| (a.as_str(), b.as_str()));
        return Err(format!(
            "{what}: {} of {} questions are answered differently, such as\n{a}\n{b}",
            different.len(),
            one.len()
        )
        .into());
    }
    println!("{what}: the same 3,200 samples and log-probabilities, bit for bit");
    Ok(())
}

fn succeeded(what: &str, output: &Output) -> Outcome<()> {
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{what}: {} {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}
