//! Lean as the search's environment: a pool of workers, and where each theorem stands.

use std::iter;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use catamount_search::{Checked, Environment, Fault, Identity, Session, Setup, Spent};
use catamount_traces::Theorem;

use crate::assets;
use crate::cache;
use crate::challengers::Challengers;
use crate::checkouts::Checkouts;
use crate::compile::{BARE, Compiled, all_files};
use crate::error::Error;
use crate::found::Found;
use crate::helpers;
use crate::identity;
use crate::judge::Judges;
use crate::launch::Launch;
use crate::ledger::{Ledger, Work};
use crate::native::Programs;
use crate::options::{Host, Options, PROVER};
use crate::pool::Pool;
use crate::project::Project;
use crate::seat::Seat;
use crate::session::{LeanSession, Opening, Target};
use crate::slot::Slot;
use crate::source::{Library, split_imports};
use crate::warnings::Warnings;
use crate::worker::{Owner, Place, PlaceText, Worker};

/// Lean 4, behind a pool of server processes. Each session is bound to one worker; more sessions
/// than workers share.
pub struct Lean {
    pub(crate) options: Arc<Options>,
    pub(crate) launch: Launch,
    library: Option<Sources>,
    pub(crate) pool: Arc<Pool>,
    /// Processes that elaborate whole files, and nothing else: a file may run code of its own.
    pub(crate) files: Arc<Pool>,
    pub(crate) challengers: Challengers,
    pub(crate) judges: Judges,
    /// Where the theorems' files come from, looked up when a theorem first says where it is from.
    checkouts: OnceLock<Checkouts>,
    /// Terms that sessions have handed over.
    pub(crate) found: Arc<Found>,
    pub(crate) warnings: Warnings,
    /// What the provers worked at ...
    proving: Arc<Ledger>,
    /// ... and the processes that check what they found.
    pub(crate) checking: Arc<Ledger>,
}

/// Where the theorems' files are.
enum Sources {
    /// In a Lake project, which compiles what they import.
    Project(Library),
    /// In a library that this program compiles.
    Compiled(Box<Compiled>),
}

impl Lean {
    /// Sets up the environment. With the WebAssembly host, the first call ever fetches and prepares
    /// Lean (about a minute). Workers start when they are first needed; see [`Lean::warm_up`].
    pub fn new(options: Options) -> Result<Lean, Error> {
        let mut launch = launch(&options.host)?;
        let mut library = None;
        if let Some(root) = &options.root {
            library = Some(match &launch {
                Launch::Native { project, .. } => {
                    Sources::Project(Library::of_project(root, project.folder())?)
                }
                Launch::Wasm(prepared) => {
                    let compiled = Compiled::open(&options, prepared, root, all_files)?;
                    launch = compiled.reader(&launch);
                    Sources::Compiled(Box::new(compiled))
                }
            });
        }
        let options = Arc::new(options);
        let (proving, checking): (Arc<Ledger>, Arc<Ledger>) = Default::default();
        let pool = |ledger: &Arc<Ledger>| {
            let worker =
                |_| Worker::accounted(launch.clone(), Arc::clone(&options), Arc::clone(ledger));
            Arc::new(Pool::new((0..options.workers.max(1)).map(worker), options.recycle_mb))
        };
        let (pool, files) = (pool(&proving), pool(&Arc::default()));
        let challengers = Challengers::new(options.workers.max(1), options.recycle_mb);
        let judges = Judges::new(launch.judge(), Arc::clone(&options), checking.clone());
        let (found, warnings) = (Arc::default(), Warnings::default());
        let checkouts = OnceLock::new();
        Ok(Lean {
            options,
            launch,
            library,
            pool,
            files,
            challengers,
            judges,
            checkouts,
            found,
            warnings,
            proving,
            checking,
        })
    }

    /// Starts all workers, side by side, with what theorems in files or, where
    /// there is no library, in headers begin with.
    pub fn warm_up(&self) -> Result<(), Error> {
        let failed = Mutex::new(None);
        thread::scope(|scope| {
            for slot in &self.pool.slots {
                scope.spawn(|| {
                    let imports = match self.library {
                        Some(_) => &[BARE.to_owned()][..],
                        None => &self.options.imports,
                    };
                    if let Err(trouble) = slot.lock().ready(imports) {
                        *failed.lock().unwrap_or_else(PoisonError::into_inner) =
                            Some(Error::Worker(trouble.to_string()));
                    }
                });
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Ids of the worker processes that run at this moment, so that a test or an operator can look
    /// at or kill them.
    pub fn process_ids(&self) -> Vec<u32> {
        let ids = self.pool.slots.iter().map(|slot| slot.process.load(Ordering::Relaxed));
        ids.filter(|id| *id != 0).collect()
    }

    /// Resident memory of the workers at rest, in MiB.
    pub fn memory_mb(&self) -> Vec<u64> {
        let memory = |slot: &Arc<Slot>| slot.try_lock().and_then(|worker| worker.memory());
        self.pool.slots.iter().filter_map(memory).collect()
    }

    /// A module of this program among these. Their constants are dummies (see
    /// `host/ir-to-olean.cjs`), so nobody may reason about them.
    pub(crate) fn own_module<'a>(
        &self,
        mut named: impl Iterator<Item = &'a String>,
    ) -> Option<&'a String> {
        let ours = [&assets::MODULES[..], &[helpers::MODULE]].concat();
        let own = |module: &&String| ours.contains(&module.as_str());
        named.find(own).filter(|_| matches!(self.launch, Launch::Wasm(_)))
    }

    /// What is imported where these modules are named, and where none is.
    fn imports(&self, named: &[String]) -> Vec<String> {
        let mut imports = match named {
            [] => self.options.imports.clone(),
            // As in any Lean file, `Init` is there whatever else is imported.
            _ => {
                let others = named.iter().filter(|module| *module != "Init").cloned();
                iter::once("Init".to_owned()).chain(others).collect()
            }
        };
        // What a library's modules initialise may need helpers.
        if self.launch.has_helpers() && imports != ["Init"] {
            imports.insert(0, helpers::MODULE.to_owned());
        }
        imports
    }

    /// The modules that a text imports, those of the library compiled if they are not yet.
    pub(crate) fn imports_of(&self, text: &str) -> Result<Vec<String>, Error> {
        let (named, _) = split_imports(text);
        if let Some(Sources::Compiled(compiled)) = &self.library {
            for module in &named {
                if let Some(source) = compiled.library.local(module)? {
                    compiled.need(&source.path)?;
                }
            }
        }
        Ok(self.imports(&named))
    }

    /// Where a theorem stands and how the server finds it there.
    pub(crate) fn locate(&self, theorem: &Theorem, owner: Owner) -> Result<(Place, Target), Error> {
        match (&theorem.file, &theorem.header) {
            (Some(file), None) => {
                if theorem.commit.is_some() {
                    let checkouts = self.checkouts.get_or_init(|| Checkouts::of(&self.options));
                    let roots = match &self.library {
                        Some(Sources::Project(library)) => library.roots(),
                        Some(Sources::Compiled(compiled)) => compiled.library.roots(),
                        None => &[],
                    };
                    if let Some(why) = checkouts.disagreement(theorem, roots) {
                        return Err(Error::File { path: file.into(), why });
                    }
                }
                let library = self.library.as_ref().ok_or_else(|| Error::File {
                    path: file.into(),
                    why: format!(
                        "theorem {} stands in a file, but no library root was given",
                        theorem.name
                    ),
                })?;
                let source = match library {
                    Sources::Project(library) => library.source(file)?,
                    Sources::Compiled(compiled) => compiled.need(file)?,
                };
                // A file brings its imports: the process needs none, and they would take room.
                let imports = vec![BARE.to_owned()];
                let target =
                    Target::Named { name: theorem.name.clone(), line: theorem.line.unwrap_or(0) };
                Ok((Place { imports, text: PlaceText::File(source), owner }, target))
            }
            (_, header) => {
                let (named, rest) = split_imports(header.as_deref().unwrap_or_default());
                let imports = self.imports(&named);
                let place = Place { imports, text: PlaceText::Header(rest.to_owned()), owner };
                Ok((place, Target::Statement(theorem.statement.clone())))
            }
        }
    }
}

impl Lean {
    /// A session at this seat.
    pub(crate) fn session(&self, seat: Seat, target: Target) -> Result<LeanSession, Opening> {
        let (options, found) = (Arc::clone(&self.options), Arc::clone(&self.found));
        LeanSession::open(seat, options, target, found, !self.has_compiled())
    }

    /// Whether the theorems' own files are there compiled, so that a file can be opened without
    /// elaborating its proofs.
    pub(crate) fn has_compiled(&self) -> bool {
        matches!(self.library, Some(Sources::Compiled(_)))
    }
}

impl Environment for Lean {
    fn open(&self, theorem: &Theorem) -> Result<Box<dyn Session>, Fault> {
        let (place, target) =
            self.locate(theorem, Owner::User).map_err(|e| Fault(e.to_string()))?;
        let seat = self.pool.choose(&Arc::new(place));
        let session = self.session(seat, target).map_err(|e| match e {
            Opening::Refused(why) | Opening::Killed(Fault(why)) | Opening::Fault(Fault(why)) => {
                Fault(format!("theorem {}: {why}", theorem.name))
            }
        })?;
        Ok(Box::new(session))
    }

    fn check(&self, theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault> {
        let (place, target) =
            self.locate(theorem, Owner::User).map_err(|e| Fault(e.to_string()))?;
        Ok(self.check_at(&place, &target, tactics)?.checked)
    }

    fn describe(&self) -> String {
        let library = self
            .options
            .root
            .as_deref()
            .map_or_else(String::new, |r| format!("; library {}", r.display()));
        let imports = self.options.imports.join(" ");
        format!("{}; imports {imports}{library}", toolchain(&self.options.host))
    }

    fn identity(&self) -> Identity {
        let unreadable = |error| Identity::new("lean").with("unreadable", error);
        self.options.identity().unwrap_or_else(unreadable)
    }

    fn spent(&self) -> Option<Spent> {
        let seconds = |work| self.proving.seconds(work);
        Some(Spent {
            starting: seconds(Work::Starting),
            opening: seconds(Work::Opening),
            tactics: seconds(Work::Tactics),
            again: seconds(Work::Again),
            handing_over: seconds(Work::HandingOver),
            checking: self.checking.all(),
            tried: self.proving.times(Work::Tactics),
            provers: self.options.workers.max(1),
        })
    }

    fn setup(&self) -> Option<Setup> {
        let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let mut options = Options::clone(&self.options);
        options.root = options.root.as_ref().map(whole);
        options.libraries = options.libraries.iter().map(whole).collect();
        if let Host::Native { project } = &mut options.host {
            *project = whole(project);
        }
        Setup::of(PROVER, &options)
    }
}

/// Which Lean.
fn toolchain(host: &Host) -> String {
    let unknown = |project: &Path, e| format!("Lean in {} ({e})", project.display());
    match (identity::toolchain(host), host) {
        (Ok(toolchain), _) => toolchain,
        (Err(e), Host::Native { project }) => unknown(project, e),
        (Err(e), Host::Wasm { .. }) => e.to_string(),
    }
}

/// What starts a worker of this host, prepared if need be.
pub(crate) fn launch(host: &Host) -> Result<Launch, Error> {
    match host {
        Host::Wasm { cache, package } => {
            let folder = cache.clone().unwrap_or_else(cache::default_folder);
            Ok(Launch::Wasm(cache::prepare(&folder, package.as_deref())?))
        }
        Host::Native { project } => {
            let project = Project::open(project)?;
            let programs = Programs::open(&cache::default_folder(), &project)?;
            Ok(Launch::Native { project, programs })
        }
    }
}
