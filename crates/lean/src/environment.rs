//! Lean as the search's environment: a pool of workers, and where each theorem stands.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use catamount_search::{Checked, Environment, Fault, Session};
use catamount_traces::Theorem;

use crate::assets;
use crate::cache;
use crate::check::Checkers;
use crate::error::Error;
use crate::options::{Host, Options};
use crate::process::Launch;
use crate::session::{LeanSession, Slot, Target};
use crate::source::{Library, split_imports};
use crate::tool;
use crate::worker::{Place, PlaceText, Worker};

/// Lean 4, behind a pool of server processes. Each session is bound to one worker; more sessions than workers share.
pub struct Lean {
    pub(crate) options: Arc<Options>,
    pub(crate) launch: Launch,
    library: Option<Library>,
    slots: Vec<Arc<Slot>>,
    choice: Mutex<()>,
    pub(crate) checkers: Checkers,
}

impl Lean {
    /// Sets up the environment. With the WebAssembly host, the first call ever fetches and prepares Lean (about a minute).
    /// Workers start when they are first needed; see [`Lean::warm_up`].
    pub fn new(options: Options) -> Result<Lean, Error> {
        let launch = launch(&options.host)?;
        let options = Arc::new(options);
        let slots = (0..options.workers.max(1))
            .map(|_| {
                let worker = Mutex::new(Worker::new(launch.clone(), Arc::clone(&options)));
                Arc::new(Slot { worker, sessions: AtomicUsize::new(0) })
            })
            .collect();
        let library = options.root.as_deref().map(Library::new);
        Ok(Lean { options, launch, library, slots, choice: Mutex::new(()), checkers: Checkers::default() })
    }

    /// Starts all workers, side by side, with the default imports.
    pub fn warm_up(&self) -> Result<(), Error> {
        let failed = Mutex::new(None);
        thread::scope(|scope| {
            for slot in &self.slots {
                scope.spawn(|| {
                    if let Err(trouble) = slot.lock().ready(&self.options.imports) {
                        *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Error::Worker(trouble.to_string()));
                    }
                });
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Ids of the worker processes that run at this moment, so that a test or an operator can look at or kill them.
    pub fn process_ids(&self) -> Vec<u32> {
        // A worker that is busy is not waited for: its id is read when it is next at rest.
        self.slots.iter().filter_map(|s| s.worker.try_lock().ok().and_then(|w| w.process_id())).collect()
    }

    /// Resident memory of the workers at rest, in MiB.
    pub fn memory_mb(&self) -> Vec<u64> {
        self.slots.iter().filter_map(|s| s.worker.try_lock().ok().and_then(|w| w.memory())).collect()
    }

    /// Where a theorem stands and how the server finds it there.
    pub(crate) fn locate(&self, theorem: &Theorem) -> Result<(Place, Target), Error> {
        match (&theorem.file, &theorem.header) {
            (Some(file), None) => {
                let library = self.library.as_ref().ok_or_else(|| Error::File {
                    path: file.into(),
                    why: format!("theorem {} stands in a file, but no library root was given", theorem.name),
                })?;
                let native = matches!(self.options.host, Host::Native { .. });
                let files = if native { vec![library.source(file)?] } else { library.chain(file)? };
                let imports = if native { self.options.imports.clone() } else { library.outside(&files, &self.options.imports) };
                let target = Target::Named { name: theorem.name.clone(), line: theorem.line.unwrap_or(0) };
                Ok((Place { imports, text: PlaceText::Files(files) }, target))
            }
            (_, header) => {
                let (named, rest) = split_imports(header.as_deref().unwrap_or_default());
                let imports = if named.is_empty() { self.options.imports.clone() } else { named };
                let place = Place { imports, text: PlaceText::Header(rest.to_owned()) };
                Ok((place, Target::Statement(theorem.statement.clone())))
            }
        }
    }

    /// The worker with the fewest sessions; among equals, one that holds the place already.
    fn choose(&self, place: &Place) -> Arc<Slot> {
        let _one_at_a_time = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        let rank = |slot: &Arc<Slot>| {
            let away = slot.worker.try_lock().map_or(2, |w| if w.holds(place) { 0 } else { 1 });
            (slot.sessions.load(Ordering::Relaxed), away)
        };
        let slot = self.slots.iter().min_by_key(|s| rank(s)).expect("there is at least one worker");
        slot.sessions.fetch_add(1, Ordering::Relaxed);
        Arc::clone(slot)
    }
}

impl Environment for Lean {
    fn open(&self, theorem: &Theorem) -> Result<Box<dyn Session>, Fault> {
        let (place, target) = self.locate(theorem).map_err(|e| Fault(e.to_string()))?;
        let slot = self.choose(&place);
        let session = LeanSession::open(slot, Arc::clone(&self.options), Arc::new(place), target)
            .map_err(|f| Fault(format!("theorem {}: {f}", theorem.name)))?;
        Ok(Box::new(session))
    }

    fn check(&self, theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault> {
        let (place, target) = self.locate(theorem).map_err(|e| Fault(e.to_string()))?;
        Ok(self.check_at(&place, &target, tactics)?.checked)
    }

    fn describe(&self) -> String {
        let library = self.options.root.as_deref().map_or_else(String::new, |r| format!("; library {}", r.display()));
        let toolchain = match &self.options.host {
            Host::Wasm { .. } => format!("{} as WebAssembly ({})", cache::LEAN, cache::PACKAGE),
            Host::Native { project } => tool::lean_in(project).unwrap_or_else(|e| format!("Lean in {} ({e})", project.display())),
        };
        format!("{toolchain}; imports {}{library}", self.options.imports.join(" "))
    }
}

/// What starts a worker of this host, prepared if need be.
pub(crate) fn launch(host: &Host) -> Result<Launch, Error> {
    match host {
        Host::Wasm { cache, package } => {
            tool::node()?;
            let folder = cache.clone().unwrap_or_else(cache::default_folder);
            Ok(Launch::Wasm(cache::prepare(&folder, package.as_deref())?))
        }
        Host::Native { project } => {
            tool::version("lake", tool::LAKE_HINT)?;
            Ok(Launch::Native { project: project.clone(), server: native_server(&cache::default_folder())? })
        }
    }
}

/// Writes the server's source where `lean --run` can read it.
fn native_server(folder: &Path) -> Result<std::path::PathBuf, Error> {
    let key = assets::sha256(&[assets::SERVER.as_bytes()]);
    let folder = folder.join(format!("native-{}", &key[..16]));
    let path = folder.join("Server.lean");
    let doing = || format!("writing {}", path.display());
    std::fs::create_dir_all(&folder).map_err(|e| Error::prepare(doing(), e))?;
    std::fs::write(&path, assets::SERVER).map_err(|e| Error::prepare(doing(), e))?;
    Ok(path)
}
