//! Traces from Lean files: every theorem proved by tactics, as the linear sequence that replays
//! before it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use catamount_traces::{Theorem, Trace};

use crate::environment::launch;
use crate::error::Error;
use crate::options::{Host, Options};
use crate::source::{Library, Source};
use crate::wire::Reply;
use crate::worker::{Trouble, Worker};

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

    fn add(&mut self, source: &Source, reply: Reply) {
        self.files += 1;
        self.problems.extend(reply.errors.into_iter().map(|e| FileProblem {
            file: source.path.clone(),
            line: e.line,
            error: e.error,
        }));
        for theorem in reply.theorems {
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
                        header: None,
                        file: Some(file),
                        line: Some(theorem.line),
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
    /// Traces so far.
    pub traces: usize,
}

/// Traces every `.lean` file at or below `path`, which lies below `options.root` (by default `path`
/// itself, or its folder).
///
/// Under WebAssembly, files that import each other are elaborated one after another into one
/// growing environment; files that need only core Lean are elaborated side by side. A native
/// project's files take their compiled imports.
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
    let library = Library::new(&root);
    let paths = library.files(path)?;
    let native = matches!(options.host, Host::Native { .. });
    let order = if native {
        paths.iter().map(|p| library.source(p)).collect::<Result<_, _>>()?
    } else {
        library.order(&paths)?
    };
    let linked =
        !native && order.iter().any(|s| s.imports.iter().any(|i| library.local(i).is_some()));
    let launch = launch(&options.host)?;
    let options = Arc::new(options.clone());
    let new_worker = || Worker::new(launch.clone(), Arc::clone(&options));
    let total = order.len();
    let mut report = TraceReport::default();
    let mut record = |report: &mut TraceReport, source: &Source, outcome: Result<Reply, String>| {
        match outcome {
            Ok(reply) => report.add(source, reply),
            Err(error) => {
                report.files += 1;
                report.problems.push(FileProblem { file: source.path.clone(), line: 0, error });
            }
        }
        progress(TraceProgress {
            file: &source.path,
            done: report.files,
            total,
            traces: report.traces.len(),
        });
    };
    if linked {
        let imports = library.outside(&order, &options.imports);
        let mut worker = new_worker();
        let mut chain: Vec<Arc<Source>> = Vec::new();
        for source in &order {
            // A file that cannot be elaborated at all is left out of the chain, so that the files
            // after it are tried without it.
            let outcome = in_chain(&mut worker, &imports, &chain, source)?;
            if outcome.is_ok() {
                chain.push(Arc::clone(source));
            }
            record(&mut report, source, outcome);
        }
    } else {
        let next = AtomicUsize::new(0);
        let (sender, outcomes) = mpsc::channel();
        let threads = options.workers.clamp(1, total.max(1));
        thread::scope(|scope| {
            for _ in 0..threads {
                let (sender, next, order, library, new_worker, options) =
                    (sender.clone(), &next, &order, &library, &new_worker, &options);
                scope.spawn(move || {
                    let mut worker = new_worker();
                    while let Some(source) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let imports = if native {
                            options.imports.clone()
                        } else {
                            library.outside(std::slice::from_ref(source), &options.imports)
                        };
                        let outcome = in_chain(&mut worker, &imports, &[], source);
                        if native {
                            worker.stop();
                        }
                        let failed = outcome.is_err();
                        if sender.send((Arc::clone(source), outcome)).is_err() || failed {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            for (source, outcome) in outcomes {
                record(&mut report, &source, outcome?);
            }
            Ok::<_, Error>(())
        })?;
        let place = |file: &str| order.iter().position(|s| s.path == file);
        report.traces.sort_by_key(|t| (t.theorem.file.as_deref().and_then(place), t.theorem.line));
        report.lost.sort_by_key(|l| (place(&l.file), l.line));
        report.problems.sort_by_key(|p| (place(&p.file), p.line));
    }
    Ok(report)
}

/// Traces one file after a chain of others. The inner error is about the file; the outer one about
/// everything.
fn in_chain(
    worker: &mut Worker,
    imports: &[String],
    chain: &[Arc<Source>],
    source: &Source,
) -> Result<Result<Reply, String>, Error> {
    for last_attempt in [false, true] {
        let tried = worker.ready(imports).and_then(|()| {
            let ctx = worker.files(chain, |_, _| ())?;
            let reply = worker.file(source, ctx, true)?;
            worker.remember(chain, source, reply.ctx);
            Ok(reply)
        });
        match tried {
            Ok(reply) => return Ok(Ok(reply)),
            Err(Trouble::Start(error)) => return Err(error),
            Err(Trouble::Failure(_)) if !last_attempt => {}
            Err(trouble) => return Ok(Err(trouble.to_string())),
        }
    }
    Ok(Err("it was not tried".into()))
}
