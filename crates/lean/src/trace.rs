//! Traces from Lean files: every theorem proved by tactics, as the linear sequence that replays
//! before it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use catamount_traces::{Theorem, Trace};

use crate::compile::{Compiled, FULL_MB, Outcome, elaborate};
use crate::corpus::Corpus;
use crate::environment::launch;
use crate::error::Error;
use crate::launch::Launch;
use crate::options::Options;
use crate::source::{Library, Source, is_below, path_of};
use crate::wire::{FileError, FileTheorem, Reply};
use crate::worker::{Task, Worker};

/// A theorem that gave no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostTheorem {
    /// Its full name.
    pub name: String,
    /// Its file, relative to the root.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// The kind of loss, one of a small set, for counting.
    pub why: String,
    /// What the prover said.
    pub detail: String,
}

/// A command or a file that did not elaborate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The file, relative to the root.
    pub file: String,
    /// Where in it; 0 when it is the file as a whole.
    pub line: u32,
    /// What the prover said.
    pub error: String,
}

/// What tracing gave and what it lost.
#[derive(Clone, Debug, Default)]
pub struct TraceReport {
    /// The traces that replay, in the order of files and lines.
    pub traces: Vec<Trace>,
    /// Files elaborated.
    pub files: usize,
    /// Theorems seen.
    pub theorems: usize,
    /// Of these, proved by tactics.
    pub by_tactics: usize,
    /// Theorems proved by tactics that gave no trace.
    pub lost: Vec<LostTheorem>,
    /// Commands that failed.
    pub problems: Vec<FileProblem>,
}

impl TraceReport {
    /// How many theorems were lost, by kind of loss.
    pub fn losses(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for lost in &self.lost {
            *counts.entry(lost.why.as_str()).or_default() += 1;
        }
        counts
    }

    /// Into the order of files and lines.
    fn sort<'a>(&mut self, files: impl Iterator<Item = &'a str>) {
        let places: HashMap<&str, usize> = files.enumerate().map(|(at, file)| (file, at)).collect();
        let place = |file: &str| places.get(file);
        self.traces.sort_by_key(|t| (t.theorem.file.as_deref().and_then(place), t.theorem.line));
        self.lost.sort_by_key(|l| (place(&l.file), l.line));
        self.problems.sort_by_key(|p| (place(&p.file), p.line));
    }

    fn say(
        &self,
        progress: &mut impl FnMut(TraceProgress<'_>),
        file: &str,
        total: usize,
        new: usize,
        work: Work,
    ) {
        let traces = &self.traces[self.traces.len() - new..];
        progress(TraceProgress { file, done: self.files, total, traces, work });
    }

    /// A file that could not be elaborated at all.
    fn fails(&mut self, file: &str, error: String) {
        self.files += 1;
        self.problems.push(FileProblem { file: file.to_owned(), line: 0, error });
    }

    fn add(&mut self, source: &Source, theorems: Vec<FileTheorem>, errors: Vec<FileError>) {
        self.files += 1;
        self.problems.extend(errors.into_iter().map(|e| FileProblem {
            file: source.path.clone(),
            line: e.line,
            error: e.error,
        }));
        for theorem in theorems {
            self.theorems += 1;
            if theorem.proof != "tactics" {
                continue;
            }
            self.by_tactics += 1;
            let file = source.path.clone();
            match theorem.lost {
                Some(why) => self.lost.push(LostTheorem {
                    name: theorem.name,
                    file,
                    line: theorem.line,
                    why,
                    detail: theorem.detail,
                }),
                None => self.traces.push(Trace {
                    theorem: Theorem {
                        name: theorem.name,
                        statement: theorem.statement,
                        file: Some(file),
                        line: Some(theorem.line),
                        ..Theorem::default()
                    },
                    steps: theorem.steps,
                }),
            }
        }
    }
}

/// How far tracing has come.
#[derive(Clone, Debug)]
pub struct TraceProgress<'a> {
    /// The file just done.
    pub file: &'a str,
    /// Files done so far.
    pub done: usize,
    /// Files in all.
    pub total: usize,
    /// The file's traces.
    pub traces: &'a [Trace],
    /// What is done of all that has to be elaborated, what the files import included.
    pub work: Work,
}

/// How much source has to be elaborated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes of it that are done.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Traces every `.lean` file at or below `path`, which lies below `options.root` (by default `path`
/// itself, or its folder), `options.workers` at a time.
///
/// What a file imports is there compiled: by Lake, or under WebAssembly by this program, which
/// keeps every module it has compiled, with its traces, for the next time.
pub fn trace(
    options: &Options,
    path: &Path,
    mut progress: impl FnMut(TraceProgress<'_>),
) -> Result<TraceReport, Error> {
    let root = match &options.root {
        Some(root) => root.clone(),
        None if path.is_dir() => path.to_path_buf(),
        None => path.parent().unwrap_or(Path::new("")).to_path_buf(),
    };
    let launch = launch(&options.host)?;
    match &launch {
        Launch::Wasm(prepared) => {
            let files = |library: &Library| library.files(path);
            let asked = files(&Library::new(&root, &options.libraries, &options.left_out))?;
            let asked: HashSet<String> = asked.into_iter().collect();
            let compiled = Compiled::open(options, prepared, &root, files)?;
            compiled_files(&compiled, |source| asked.contains(&source.path), progress)
        }
        Launch::Native { project, .. } => {
            let library = Library::of_project(&root, project.folder())?;
            let paths = library.files(path)?;
            let order: Vec<_> =
                paths.iter().map(|p| library.source(p)).collect::<Result<_, _>>()?;
            let mut report = TraceReport::default();
            let total = order.iter().map(|source| source.text.len() as u64).sum();
            let mut work = Work { done: 0, total };
            natively(options, &launch, &order, |source, outcome| {
                let before = report.traces.len();
                match outcome {
                    Ok(reply) => report.add(source, reply.theorems, reply.errors),
                    Err(why) => report.fails(&source.path, why),
                }
                work.done += source.text.len() as u64;
                let new = report.traces.len() - before;
                report.say(&mut progress, &source.path, order.len(), new, work);
            })?;
            report.sort(order.iter().map(|source| source.path.as_str()));
            Ok(report)
        }
    }
}

/// Traces the modules of a corpus and those of its own that they import.
pub fn trace_corpus(
    options: &Options,
    corpus: &Corpus,
    mut progress: impl FnMut(TraceProgress<'_>),
) -> Result<TraceReport, Error> {
    let Launch::Wasm(prepared) = launch(&options.host)? else {
        return Err(Error::Module(
            "a recipe is for Lean without a toolchain; trace a project by its path".into(),
        ));
    };
    let (recipe, root) = (&corpus.recipe, &corpus.root);
    let options = corpus.searched(options.clone());
    let compiled = Compiled::open(&options, &prepared, root, |library| {
        let named = |file: &String| {
            let module = library.source(file).map(|source| source.module.clone());
            module.is_ok_and(|module| recipe.modules.iter().any(|m| is_below(&module, m)))
        };
        Ok(library.files(root)?.into_iter().filter(named).collect())
    })?;
    let own = |source: &Source| root.join(&source.path).is_file();
    let from = |traces: &mut [Trace]| {
        for trace in traces {
            trace.theorem.url = Some(recipe.repository.clone());
            trace.theorem.commit = Some(recipe.commit.clone());
        }
    };
    let mut report = compiled_files(&compiled, own, |at| {
        let mut traces = at.traces.to_vec();
        from(&mut traces);
        progress(TraceProgress { traces: &traces, ..at });
    })?;
    from(&mut report.traces);
    Ok(report)
}

/// Traces those files of a library that are `asked` for, compiling all of it on the way.
fn compiled_files(
    compiled: &Compiled,
    asked: impl Fn(&Source) -> bool + Sync,
    mut progress: impl FnMut(TraceProgress<'_>),
) -> Result<TraceReport, Error> {
    let mut report = TraceReport::default();
    let nodes = &compiled.order.nodes;
    let wanted: Vec<usize> = (0..nodes.len()).collect();
    let total = nodes.iter().filter(|node| asked(&node.source)).count();
    for (module, why) in &compiled.order.unavailable {
        report.fails(&path_of(module), why.clone());
    }
    let total = total + compiled.order.unavailable.len();
    let traced = |at: usize| asked(&nodes[at].source);
    let size = |at: usize| nodes[at].source.text.len() as u64;
    let left: HashSet<usize> = compiled.unfinished(&wanted, traced)?.into_iter().collect();
    let mut work = Work { done: 0, total: left.iter().map(|at| size(*at)).sum() };
    compiled.compile(&wanted, traced, |at, outcome| {
        let source = &nodes[at].source;
        let before = report.traces.len();
        work.done += if left.contains(&at) { size(at) } else { 0 };
        match outcome {
            Outcome::Kept { record, traced: Some(theorems), .. } => {
                report.add(source, theorems, record.errors);
            }
            Outcome::Failed { why } => report.fails(&source.path, why),
            Outcome::Blocked { by } => {
                report.fails(&source.path, format!("it imports {by}, which failed"));
            }
            // What others import is told of, too: it is most of the work.
            Outcome::Kept { .. } => {}
        }
        let new = report.traces.len() - before;
        report.say(&mut progress, &source.path, total, new, work);
    })?;
    report.sort(nodes.iter().map(|node| node.source.path.as_str()));
    Ok(report)
}

/// Traces files whose imports Lake has compiled.
fn natively(
    options: &Options,
    launch: &Launch,
    order: &[Arc<Source>],
    mut each: impl FnMut(&Source, Result<Reply, String>),
) -> Result<(), Error> {
    let options = Arc::new(options.clone());
    let next = AtomicUsize::new(0);
    let (sender, outcomes) = mpsc::channel();
    let threads = options.workers.clamp(1, order.len().max(1));
    thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, options) = (sender.clone(), &next, &options);
            scope.spawn(move || {
                let mut worker = Worker::new(launch.clone(), Arc::clone(options));
                let task = Task { trace: true, proofs: true, save: "" };
                while let Some(source) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if worker.memory().is_some_and(|mb| mb >= FULL_MB) {
                        worker.stop();
                    }
                    let outcome = elaborate(&mut worker, source, task);
                    let failed = outcome.is_err();
                    if sender.send((Arc::clone(source), outcome)).is_err() || failed {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (source, outcome) in outcomes {
            each(&source, outcome?);
        }
        Ok(())
    })
}
