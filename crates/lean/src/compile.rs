//! Compiling a library's modules: several workers at once, each module after what it imports, and
//! every one of them kept as soon as it is done.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use crate::assets;
use crate::cache::{self, Prepared};
use crate::error::Error;
use crate::helpers;
use crate::launch::{Launch, WRITTEN_AT};
use crate::modules::{Node, Order, Record, Store, View};
use crate::olean;
use crate::options::Options;
use crate::process::Failure;
use crate::source::{Library, Source};
use crate::wire::{FileTheorem, Reply};
use crate::worker::{Task, Trouble, Worker};

/// A process that has grown so large makes room for a new one before the next module.
pub(crate) const FULL_MB: u64 = 1100;
/// What a process imports before it is given a module: as little as there is.
pub(crate) const BARE: &str = "Init.Prelude";
/// The name under which a process writes its module.
const WRITTEN: &str = "module.olean";

/// A library and its compiled modules, as far as there are any.
pub(crate) struct Compiled {
    pub library: Library,
    pub order: Order,
    pub view: View,
    store: Store,
    launch: Launch,
    /// The folder of the helpers' module, if it is compiled with that.
    helpers: Option<PathBuf>,
    options: Arc<Options>,
    /// Modules that are in the view.
    seen: Mutex<BTreeSet<usize>>,
}

/// What became of a module.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is kept: since before, or since now.
    Kept { record: Record, now: bool, traced: Option<Vec<FileTheorem>> },
    /// It could not be elaborated at all.
    Failed { why: String },
    /// Something that it imports could not.
    Blocked { by: String },
}

impl Compiled {
    /// The library at `root`, with what `paths` (files below the roots) import.
    pub fn open(
        options: &Options,
        prepared: &Prepared,
        root: &Path,
        paths: impl FnOnce(&Library) -> Result<Vec<String>, Error>,
    ) -> Result<Compiled, Error> {
        let library = Library::new(root, &options.libraries, &options.left_out);
        let order = Order::of(&library, &paths(&library)?, prepared, options.helpers)?;
        let store = Store::open(prepared)?;
        let view = store.view(&order)?;
        let launch = Launch::Wasm(prepared.clone()).with_library(&view.folder, true);
        let helpers = match options.helpers {
            true => Some(helpers::folder(prepared, options)?),
            false => None,
        };
        let launch = launch.with_helpers(helpers.clone());
        // Whoever compiles a library can wait: a busy machine is no reason to give up half-way.
        let start_limit = options.start_limit.max(options.file_limit);
        let options = Arc::new(Options { start_limit, ..options.clone() });
        let seen = Mutex::default();
        Ok(Compiled { library, order, view, store, launch, helpers, options, seen })
    }

    /// What starts a server that sees the library as far as it is compiled, and writes nothing.
    pub fn reader(&self, launch: &Launch) -> Launch {
        launch.with_library(&self.view.folder, false).with_helpers(self.helpers.clone())
    }

    /// The file at `path`, after making sure that it and all that it imports are compiled.
    pub fn need(&self, path: &str) -> Result<Arc<Source>, Error> {
        let source = self.library.source(path)?;
        let mut seen = lock(&self.seen);
        let Some(place) = self.order.place(&source.module) else {
            let why = self.order.unavailable.get(&source.module);
            let why = why.map_or("it is not below the library's root", String::as_str);
            return Err(Error::File { path: path.into(), why: why.to_owned() });
        };
        if seen.contains(&place) {
            return Ok(source);
        }
        let wanted = self.order.closure([place]);
        let missing = self.uncompiled(&wanted)?.len();
        let progress = match missing {
            0 => catamount_base::Progress::hidden(),
            n => catamount_base::Progress::new(n as u64, "Lean modules").named("compiling"),
        };
        let mut failed = None;
        self.compile(
            &wanted,
            |_| false,
            |at, outcome| match outcome {
                Outcome::Kept { now, .. } => {
                    seen.insert(at);
                    progress.advance(u64::from(now));
                }
                Outcome::Failed { why } => {
                    failed.get_or_insert((self.order.nodes[at].source.path.clone(), why));
                }
                Outcome::Blocked { .. } => {}
            },
        )?;
        progress.finish();
        match failed {
            None => Ok(source),
            Some((file, why)) => Err(Error::Module(format!(
                "{file} does not compile, so nothing can be opened in {path}: {why}"
            ))),
        }
    }

    /// Which of these modules are not kept yet.
    pub fn uncompiled(&self, wanted: &[usize]) -> Result<Vec<usize>, Error> {
        let mut missing = Vec::new();
        for &at in wanted {
            if self.store.record(&self.order.nodes[at].key)?.is_none() {
                missing.push(at);
            }
        }
        Ok(missing)
    }

    /// Which of these modules are still to be compiled, or to be traced where `traced` says so.
    pub fn unfinished(
        &self,
        wanted: &[usize],
        traced: impl Fn(usize) -> bool,
    ) -> Result<Vec<usize>, Error> {
        let tracer = assets::tracer_key();
        let mut left = self.uncompiled(wanted)?;
        left.extend(wanted.iter().copied().filter(|&at| {
            traced(at) && self.store.traced(&self.order.nodes[at].key, &tracer).is_none()
        }));
        left.sort_unstable();
        left.dedup();
        Ok(left)
    }

    /// Compiles what is not kept yet of the modules at `wanted`, which holds all that these import;
    /// those for which `traced` says so are traced. `each` hears of every module, in the order in
    /// which they are done.
    pub fn compile(
        &self,
        wanted: &[usize],
        traced: impl Fn(usize) -> bool + Sync,
        mut each: impl FnMut(usize, Outcome),
    ) -> Result<(), Error> {
        let tracer = assets::tracer_key();
        let mut plan = Plan::default();
        for &at in wanted {
            let node = &self.order.nodes[at];
            let record = self.store.record(&node.key)?;
            let theorems = match traced(at) {
                true => self.store.traced(&node.key, &tracer),
                false => None,
            };
            match record {
                Some(record) if !traced(at) || theorems.is_some() => {
                    self.view.link(node)?;
                    each(at, Outcome::Kept { record, now: false, traced: theorems });
                }
                record => {
                    if record.is_some() {
                        self.view.link(node)?;
                    }
                    plan.add(at, node);
                }
            }
        }
        let total = plan.waiting.len() + plan.ready.len();
        let shared = Shared { plan: Mutex::new(plan), changed: Condvar::new() };
        let (sender, outcomes) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..self.options.workers.clamp(1, total.max(1)) {
                let (sender, shared, traced, tracer) = (sender.clone(), &shared, &traced, &tracer);
                scope.spawn(move || {
                    let mut worker = Worker::new(self.launch.clone(), Arc::clone(&self.options));
                    while let Some(at) = shared.next() {
                        let node = &self.order.nodes[at];
                        let done = self.one(&mut worker, node, traced(at).then_some(tracer));
                        let well = matches!(done, Ok(Outcome::Kept { .. }));
                        let over = done.is_err();
                        // The listener goes only when it has heard an error.
                        let _ = sender.send((at, done));
                        if over {
                            return shared.stop();
                        }
                        let blocked = shared.done(at, well, &self.order);
                        for (at, by) in blocked {
                            let _ = sender.send((at, Ok(Outcome::Blocked { by })));
                        }
                    }
                });
            }
            drop(sender);
            for (at, outcome) in outcomes {
                each(at, outcome?);
            }
            Ok(())
        })
    }

    /// Compiles one module, whose imports are in the view.
    fn one(
        &self,
        worker: &mut Worker,
        node: &Node,
        tracer: Option<&String>,
    ) -> Result<Outcome, Error> {
        if worker.memory().is_some_and(|mb| mb >= FULL_MB) {
            worker.stop();
        }
        let save = format!("{WRITTEN_AT}/{WRITTEN}");
        let task = Task { trace: tracer.is_some(), proofs: true, save: &save };
        let reply = match elaborate(worker, &node.source, task)? {
            Ok(reply) => reply,
            Err(why) => return Ok(Outcome::Failed { why }),
        };
        let Some(written) = worker.scratch().map(|folder| folder.join(WRITTEN)) else {
            return Ok(Outcome::Failed { why: "its process has no folder to write to".into() });
        };
        let record = Record {
            module: node.source.module.clone(),
            lean: cache::LEAN.to_owned(),
            bytes: 0,
            theorems: reply.theorems.len(),
            errors: reply.errors,
        };
        let record = self.store.keep(&node.key, &written, record)?;
        // A process that has compiled initialisers is not one in which they can be run.
        let initialises = self.helpers.is_some()
            && std::fs::read(&written)
                .is_ok_and(|bytes| olean::has_initialisers(bytes).unwrap_or(true));
        // The next module of this process overwrites what is left.
        let _ = std::fs::remove_file(&written);
        if initialises {
            worker.stop();
        }
        let traced = match tracer {
            Some(tracer) => {
                self.store.keep_traced(&node.key, tracer, &reply.theorems)?;
                Some(reply.theorems)
            }
            None => None,
        };
        self.view.link(node)?;
        Ok(Outcome::Kept { record, now: true, traced })
    }
}

/// Has a file elaborated; the inner error is about the file. A process that is lost over it is
/// replaced once: it may have been full of other files.
pub(crate) fn elaborate(
    worker: &mut Worker,
    source: &Source,
    task: Task<'_>,
) -> Result<Result<Reply, String>, Error> {
    let mut again = true;
    loop {
        let tried = worker.ready(&[BARE.to_owned()]).and_then(|()| worker.file(source, task));
        match tried {
            Ok(reply) => return Ok(Ok(reply)),
            Err(Trouble::Start(error)) => return Err(error),
            Err(Trouble::Failure(Failure::Killed(_) | Failure::Died(_) | Failure::Memory(_)))
                if again =>
            {
                again = false;
            }
            Err(trouble) => return Ok(Err(trouble.to_string())),
        }
    }
}

/// Which modules are to be done.
#[derive(Default)]
struct Plan {
    /// Those that wait, each with the imports it waits for.
    waiting: BTreeMap<usize, BTreeSet<usize>>,
    /// Those that can be begun.
    ready: BTreeSet<usize>,
    running: usize,
    stopped: bool,
}

impl Plan {
    /// Adds a module after all that it imports.
    fn add(&mut self, at: usize, node: &Node) {
        let unfinished = |i: &&usize| self.waiting.contains_key(i) || self.ready.contains(i);
        let imports: BTreeSet<usize> = node.imports.iter().filter(unfinished).copied().collect();
        if imports.is_empty() {
            self.ready.insert(at);
        } else {
            self.waiting.insert(at, imports);
        }
    }

    /// Notes what became of a module; answers with those that cannot be done any more, and why.
    fn done(&mut self, at: usize, well: bool, order: &Order) -> Vec<(usize, String)> {
        self.running -= 1;
        if well {
            for imports in self.waiting.values_mut() {
                imports.remove(&at);
            }
            let free: Vec<usize> =
                self.waiting.iter().filter(|(_, i)| i.is_empty()).map(|(at, _)| *at).collect();
            self.waiting.retain(|_, imports| !imports.is_empty());
            self.ready.extend(free);
            return Vec::new();
        }
        let by = &order.nodes[at].source.module;
        let mut lost = BTreeSet::from([at]);
        for (at, imports) in &self.waiting {
            if !imports.is_disjoint(&lost) {
                lost.insert(*at);
            }
        }
        self.waiting.retain(|at, _| !lost.contains(at));
        lost.remove(&at);
        lost.into_iter().map(|at| (at, by.clone())).collect()
    }
}

struct Shared {
    plan: Mutex<Plan>,
    changed: Condvar,
}

impl Shared {
    /// The next module that can be begun, once there is one; none when there will be none.
    fn next(&self) -> Option<usize> {
        let mut plan = lock(&self.plan);
        loop {
            if plan.stopped {
                return None;
            }
            if let Some(at) = plan.ready.pop_first() {
                plan.running += 1;
                return Some(at);
            }
            if plan.running == 0 {
                return None;
            }
            plan = self.changed.wait(plan).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, at: usize, well: bool, order: &Order) -> Vec<(usize, String)> {
        let blocked = lock(&self.plan).done(at, well, order);
        self.changed.notify_all();
        blocked
    }

    fn stop(&self) {
        let mut plan = lock(&self.plan);
        plan.stopped = true;
        plan.running -= 1;
        self.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every file below a library's roots.
pub(crate) fn all_files(library: &Library) -> Result<Vec<String>, Error> {
    let files = library.roots().iter().map(|root| library.files(root));
    Ok(files.collect::<Result<Vec<_>, _>>()?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(imports: &[usize]) -> Node {
        let source = Source {
            path: String::new(),
            module: format!("M{}", imports.len()),
            text: String::new(),
            imports: vec![],
            without: vec![],
            options: String::new(),
        };
        Node { source: Arc::new(source), imports: imports.to_vec(), key: String::new() }
    }

    #[test]
    fn a_module_waits_for_its_imports_and_falls_with_them() {
        // 0 and 1 stand alone, 2 needs both, 3 needs 2, 4 needs 1.
        let nodes = [&[][..], &[], &[0, 1], &[2], &[1]].map(node);
        let mut plan = Plan::default();
        nodes.iter().enumerate().for_each(|(at, node)| plan.add(at, node));
        let mut order = Order::default();
        order.nodes = nodes.to_vec();
        assert_eq!(Vec::from_iter(plan.ready.clone()), [0, 1]);
        plan.running = 2;
        assert_eq!(plan.done(1, true, &order), []);
        assert_eq!(Vec::from_iter(plan.ready.clone()), [0, 1, 4]);
        let lost = plan.done(0, false, &order);
        assert_eq!(lost, [(2, "M0".to_owned()), (3, "M0".to_owned())]);
        assert!(plan.waiting.is_empty());
    }
}
