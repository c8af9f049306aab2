//! Opens the prover that a log was made with, from what its manifest says.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catamount_lean::{Host, Kernel, Lean, Options};
use catamount_metamath::{Database, Metamath};
use catamount_search::{Environment, Identity, Setup};
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::library::database_path;

/// Where a library is now, if it is not where it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Metamath's database.
    pub database: Option<PathBuf>,
    /// Lean's Lake project.
    pub project: Option<PathBuf>,
    /// The folder that Lean's theorems' files are relative to.
    pub root: Option<PathBuf>,
    /// The folders of what that library imports, in their order; none: where they were.
    pub libraries: Vec<PathBuf>,
}

/// What a verdict rests on. Whoever asks for it says so: a log that could would be its own judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Metamath: whether proofs may rest on theorems that have no proof of their own.
    pub unproved: bool,
    /// Lean: the axioms that a proof may rest on.
    pub axioms: Vec<String>,
    /// Lean: whether a native toolchain is refused where nothing would confine it.
    pub confine: bool,
    /// Lean: whose word makes a verdict.
    pub kernel: Kernel,
}

impl Default for Trust {
    fn default() -> Self {
        let Options { allowed_axioms: axioms, confine, kernel, .. } = Options::default();
        Trust { unproved: false, axioms, confine, kernel }
    }
}

/// A prover that is open again.
#[derive(Clone)]
pub struct Reopened {
    /// The prover, which waits longer for a proof than the search did.
    pub environment: Arc<dyn Environment>,
    /// What it is by content, with the limits that the search had.
    pub identity: Identity,
}

impl Reopened {
    fn new(environment: impl Environment + 'static) -> Self {
        Reopened { identity: environment.identity(), environment: Arc::new(environment) }
    }
}

/// Opens a prover as it was set up, as far as that is where its library is, what it imports and
/// what limits it: the rest is `trust`. What is no longer where it was is looked for by its name in
/// `near`, the folder that the log is in. Whether it is still the same is for the caller to
/// compare, by content.
pub fn reopen(
    setup: &Setup,
    elsewhere: &Elsewhere,
    trust: &Trust,
    near: &Path,
) -> Result<Reopened> {
    match setup.prover.as_str() {
        catamount_metamath::PROVER => {
            let settings: catamount_metamath::Settings = settings(setup)?;
            let recorded = found(settings.database, near);
            let path = match &elsewhere.database {
                Some(given) => database_path(given)?,
                None => database_path(&recorded).map_err(|_| gone(&recorded, "--database"))?,
            };
            let database = Database::open(path)?.allowing_unproved(trust.unproved);
            Ok(Reopened::new(Metamath::new(database)))
        }
        catamount_lean::PROVER => {
            let options = options(settings(setup)?, elsewhere, trust, near)?;
            let identity = options.identity()?;
            let environment = Arc::new(Lean::new(patient(options))?);
            Ok(Reopened { environment, identity })
        }
        other => Err(Error::Setup {
            reason: format!("there is no prover `{other}`; was this made by a newer version?"),
        }),
    }
}

/// With ten minutes for everything at least: a proof may have been found on a faster machine, where
/// its tactics were done within the recorded limits.
fn patient(recorded: Options) -> Options {
    let at_least = |limit: Duration| limit.max(Duration::from_secs(600));
    Options {
        request_limit: at_least(recorded.request_limit),
        file_limit: at_least(recorded.file_limit),
        start_limit: at_least(recorded.start_limit),
        check_limit: at_least(recorded.check_limit),
        ..recorded
    }
}

/// Lean's options: of those recorded, only what is named here.
fn options(
    recorded: Options,
    elsewhere: &Elsewhere,
    trust: &Trust,
    near: &Path,
) -> Result<Options> {
    let host = match (&recorded.host, &elsewhere.project) {
        // Where its files are kept and which package it is are for this machine to say.
        (Host::Wasm { .. }, _) => Host::default(),
        (Host::Native { .. }, Some(project)) => Host::Native { project: project.clone() },
        (Host::Native { project }, None) => return Err(native(project)),
    };
    let root = match (&elsewhere.root, &elsewhere.project, &host) {
        (Some(root), ..) => Some(root.clone()),
        (None, Some(project), Host::Native { .. }) => Some(project.clone()),
        _ => recorded.root.map(|root| found(root, near)),
    };
    let libraries = match elsewhere.libraries.is_empty() {
        true => recorded.libraries.into_iter().map(|library| found(library, near)).collect(),
        false => elsewhere.libraries.clone(),
    };
    let roots = root.iter().map(|root| (root, "--root"));
    let mut places = roots.chain(libraries.iter().map(|library| (library, "--library")));
    if let Some((path, flag)) = places.find(|(path, _)| !path.is_dir()) {
        return Err(gone(path, flag));
    }
    Ok(Options {
        host,
        root,
        libraries,
        left_out: recorded.left_out,
        helpers: recorded.helpers,
        imports: recorded.imports,
        heartbeats: recorded.heartbeats,
        request_limit: recorded.request_limit,
        file_limit: recorded.file_limit,
        start_limit: recorded.start_limit,
        check_limit: recorded.check_limit,
        memory_mb: recorded.memory_mb,
        confine: trust.confine,
        kernel: trust.kernel,
        allowed_axioms: trust.axioms.clone(),
        ..Options::default()
    })
}

fn native(project: &Path) -> Error {
    Error::Setup {
        reason: format!(
            "this was searched with the toolchain of the Lake project {}, which would run programs \
             that the folder names; say which project may, with --project",
            project.display()
        ),
    }
}

fn settings<T: DeserializeOwned>(setup: &Setup) -> Result<T> {
    serde_json::from_value(setup.settings.clone()).map_err(|error| Error::Setup {
        reason: format!(
            "the settings of {} cannot be understood ({error}); was this made by another version?",
            setup.prover
        ),
    })
}

/// A path, or where its name is found: beside the log, or above it.
fn found(recorded: PathBuf, near: &Path) -> PathBuf {
    if recorded.exists() {
        return recorded;
    }
    let Some(name) = recorded.file_name() else { return recorded };
    let beside = near.ancestors().map(|folder| folder.join(name)).find(|path| path.exists());
    beside.unwrap_or_else(|| PathBuf::from(name))
}

fn gone(path: &Path, flag: &str) -> Error {
    Error::Setup {
        reason: format!("{} is not there any more; say where it is with {flag}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forged(near: &Path) -> Options {
        Options {
            host: Host::Wasm { cache: Some(near.join("cache")), package: Some(near.join("p.tgz")) },
            workers: 1_000_000,
            heartbeats: 7,
            imports: vec!["Std".into()],
            confine: false,
            kernel: Kernel::Nanoda,
            allowed_axioms: vec!["falsum".into(), "sorryAx".into()],
            ..Options::default()
        }
    }

    /// Whatever a manifest says, it says nothing about what a verdict rests on.
    #[test]
    fn of_a_manifest_only_limits_places_and_imports_are_taken() {
        let near = tempfile::tempdir().unwrap();
        let recorded = forged(near.path());
        let (elsewhere, trust) = (Elsewhere::default(), Trust::default());
        let opened = options(recorded.clone(), &elsewhere, &trust, near.path()).unwrap();
        let imports = vec!["Std".into()];
        assert_eq!(opened, Options { heartbeats: 7, imports, ..Options::default() });

        let axioms = vec!["propext".into()];
        let trust = Trust { axioms, confine: false, kernel: Kernel::Nanoda, unproved: true };
        let opened = options(recorded, &elsewhere, &trust, near.path()).unwrap();
        assert_eq!((opened.allowed_axioms, opened.confine), (trust.axioms, false));
        assert_eq!(opened.kernel, Kernel::Nanoda);
    }

    #[test]
    fn a_proof_is_waited_for_longer_than_the_search_waited() {
        let minute = Duration::from_secs(60);
        let recorded = Options { request_limit: minute, check_limit: minute, ..Options::default() };
        let waits = patient(recorded);
        for limit in [waits.request_limit, waits.file_limit, waits.start_limit, waits.check_limit] {
            assert!(limit >= 10 * minute, "{limit:?}");
        }
    }

    #[test]
    fn a_toolchain_is_started_only_in_a_project_that_is_named() {
        let near = tempfile::tempdir().unwrap();
        let project = near.path().join("project");
        std::fs::create_dir(&project).unwrap();
        let native = Host::Native { project: project.clone() };
        let recorded = Options { host: native, ..forged(near.path()) };
        let trust = Trust::default();
        let refused = options(recorded.clone(), &Elsewhere::default(), &trust, near.path());
        assert!(refused.unwrap_err().to_string().contains("--project"));

        let named = near.path().join("named");
        std::fs::create_dir(&named).unwrap();
        let elsewhere = Elsewhere { project: Some(named.clone()), ..Elsewhere::default() };
        let opened = options(recorded, &elsewhere, &trust, near.path()).unwrap();
        assert_eq!(
            (opened.host, opened.root),
            (Host::Native { project: named.clone() }, Some(named))
        );
        assert!(opened.confine);
    }

    #[test]
    fn a_library_that_moved_with_its_study_is_found() {
        let near = tempfile::tempdir().unwrap();
        let (root, library) = (near.path().join("cedar"), near.path().join("batteries"));
        let recorded = Options {
            root: Some("/gone/cedar".into()),
            libraries: vec!["/gone/batteries".into()],
            ..Options::default()
        };
        let (elsewhere, trust) = (Elsewhere::default(), Trust::default());
        let refused = options(recorded.clone(), &elsewhere, &trust, near.path()).unwrap_err();
        assert!(refused.to_string().contains("--root"), "{refused}");
        std::fs::create_dir(&root).unwrap();
        let refused = options(recorded.clone(), &elsewhere, &trust, near.path()).unwrap_err();
        assert!(refused.to_string().contains("--library"), "{refused}");
        std::fs::create_dir(&library).unwrap();
        let cells = near.path().join("study/cells");
        let opened = options(recorded.clone(), &elsewhere, &trust, &cells).unwrap();
        assert_eq!((opened.root, opened.libraries), (Some(root), vec![library]));

        let given = tempfile::tempdir().unwrap();
        let libraries = vec![given.path().to_path_buf()];
        let elsewhere = Elsewhere { libraries: libraries.clone(), ..elsewhere };
        let opened = options(recorded, &elsewhere, &trust, near.path()).unwrap();
        assert_eq!(opened.libraries, libraries);
    }
}
