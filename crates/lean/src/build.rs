//! `catamount lean build`: a library's modules, compiled once and kept.

use std::path::PathBuf;

use crate::cache;
use crate::compile::{Compiled, Outcome};
use crate::environment::launch;
use crate::error::Error;
use crate::launch::Launch;
use crate::options::Options;
use crate::trace::FileProblem;

/// A module that is not there in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedModule {
    /// Its name.
    pub module: String,
    /// Why it could not be elaborated.
    pub why: String,
    /// The modules that import it, directly or not, and therefore were not tried.
    pub dependants: Vec<String>,
}

/// What a build did.
#[derive(Clone, Debug, Default)]
pub struct BuildReport {
    /// Modules that are compiled now ...
    pub modules: usize,
    /// ... of which so many were compiled by this build, the others before.
    pub compiled: usize,
    /// Their theorems.
    pub theorems: usize,
    /// What they take in the cache, in bytes.
    pub bytes: u64,
    /// Commands that failed in modules that are there all the same: what they declare is missing,
    /// or rests on `sorry`, which no check accepts.
    pub problems: Vec<FileProblem>,
    /// Modules that are not there.
    pub failed: Vec<FailedModule>,
}

/// How far a build is.
#[derive(Clone, Debug)]
pub struct BuildProgress<'a> {
    /// The module just done.
    pub module: &'a str,
    /// Modules done so far.
    pub done: usize,
    /// Modules in all.
    pub total: usize,
    /// The size of their sources done so far, of those that had to be compiled ...
    pub compiled_bytes: u64,
    /// ... and of all that have to be.
    pub to_compile_bytes: u64,
    /// Commands that failed so far.
    pub problems: usize,
}

/// Compiles the modules below `roots` (a library, and what it depends on), as far as they are not
/// kept already; with `only`, those modules, whatever is below them, and all that they import.
pub fn build(
    options: &Options,
    roots: &[PathBuf],
    only: &[String],
    mut progress: impl FnMut(BuildProgress<'_>),
) -> Result<BuildReport, Error> {
    let Launch::Wasm(prepared) = launch(&options.host)? else {
        return Err(Error::Module(
            "a Lake project's modules are compiled by Lake: run `lake build` in it".into(),
        ));
    };
    let [root, libraries @ ..] = roots else {
        return Err(Error::Module("no folder was given to compile".into()));
    };
    let options = Options { libraries: libraries.to_vec(), ..options.clone() };
    let compiled = Compiled::open(&options, &prepared, root, |library| {
        let mut files = Vec::new();
        for root in roots {
            files.extend(library.files(root)?);
        }
        Ok(files)
    })?;
    let order = &compiled.order;
    let chosen =
        |module: &str| only.is_empty() || only.iter().any(|o| crate::source::is_below(module, o));
    let places = (0..order.nodes.len()).filter(|&i| chosen(&order.nodes[i].source.module));
    let wanted = order.closure(places);
    if wanted.is_empty() && !order.unavailable.keys().any(|module| chosen(module)) {
        return Err(Error::Module(match only {
            [] => format!("{} has no Lean files", root.display()),
            _ => format!("no module is named {}, or stands below it", only.join(" or ")),
        }));
    }
    let mut report = BuildReport::default();
    for (module, why) in order.unavailable.iter().filter(|(module, _)| chosen(module)) {
        let failed =
            FailedModule { module: module.clone(), why: why.clone(), dependants: Vec::new() };
        report.failed.push(failed);
    }
    let size = |at: usize| order.nodes[at].source.text.len() as u64;
    let to_compile_bytes = compiled.uncompiled(&wanted)?.into_iter().map(size).sum();
    let (mut done, mut compiled_bytes) = (0, 0);
    compiled.compile(
        &wanted,
        |_| false,
        |at, outcome| {
            let source = &order.nodes[at].source;
            done += 1;
            match outcome {
                Outcome::Kept { record, now, .. } => {
                    report.modules += 1;
                    report.compiled += usize::from(now);
                    report.theorems += record.theorems;
                    report.bytes += record.bytes;
                    compiled_bytes += if now { size(at) } else { 0 };
                    report.problems.extend(record.errors.into_iter().map(|e| FileProblem {
                        file: source.path.clone(),
                        line: e.line,
                        error: e.error,
                    }));
                }
                Outcome::Failed { why } => {
                    compiled_bytes += size(at);
                    let dependants = order.dependants(at).into_iter().map(str::to_owned).collect();
                    let module = source.module.clone();
                    report.failed.push(FailedModule { module, why, dependants });
                }
                Outcome::Blocked { .. } => compiled_bytes += size(at),
            }
            progress(BuildProgress {
                module: &source.module,
                done,
                total: wanted.len(),
                compiled_bytes,
                to_compile_bytes,
                problems: report.problems.len(),
            });
        },
    )?;
    Ok(report)
}

/// Where compiled modules are kept by default.
pub fn modules_folder() -> PathBuf {
    cache::default_folder().join("modules")
}

/// The folder of the cache that holds this version's prepared Lean; for the tests that run it in a
/// way of their own.
#[doc(hidden)]
pub fn runtime_name() -> String {
    cache::folders(std::path::Path::new("")).runtime_name()
}
