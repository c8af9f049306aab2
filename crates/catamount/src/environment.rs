//! `--env`: which prover, and where its library is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use catamount_data::{Elsewhere, database_path, find_corpora};
use catamount_evaluate::Workload;
use catamount_lean::{Host, Lean, Options};
use catamount_metamath::{Database, Metamath};
use catamount_search::Environment;
use catamount_traces::Theorem;

use crate::arguments::range;

/// Lean's options are many: in a help they come after the others.
const LEAN: &str = "Lean";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Prover {
    /// Metamath, in this process.
    Metamath,
    /// Lean 4: the toolchain of a Lake project, or a WebAssembly build that needs only node.
    Lean,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// The prover.
    #[arg(long, value_enum, default_value = "metamath")]
    pub env: Prover,
    #[command(flatten)]
    pub metamath: MetamathArguments,
    #[command(flatten)]
    pub lean: LeanArguments,
}

#[derive(clap::Args)]
pub struct MetamathArguments {
    /// Metamath: a database file, or the name of one in Debian's metamath-databases.
    #[arg(long, default_value = "set.mm")]
    pub database: PathBuf,
    #[command(flatten)]
    pub trust: MetamathTrust,
}

/// What a verdict of Metamath's rests on.
#[derive(clap::Args)]
pub struct MetamathTrust {
    /// Metamath: accept proofs that rest on theorems which the database leaves without a proof.
    /// They are named among the axioms.
    #[arg(long)]
    pub allow_unproved: bool,
}

impl MetamathArguments {
    pub fn open(&self) -> Result<Database> {
        Ok(database(&self.database)?.allowing_unproved(self.trust.allow_unproved))
    }
}

/// Where the library is now that logs were searched in.
#[derive(clap::Args)]
pub struct ElsewhereArguments {
    /// Where the Metamath database is now, if it is not where the logs say.
    #[arg(long)]
    database: Option<PathBuf>,
    /// The Lake project whose toolchain replays proofs, where one found them. The logs' own word is
    /// not taken for it: a project runs programs.
    #[arg(long)]
    project: Option<PathBuf>,
    /// Where the files of Lean's theorems are now, if they are not where the logs say.
    #[arg(long)]
    root: Option<PathBuf>,
    /// Where the folders of what that library imports are now, in the order of --library.
    #[arg(long, value_delimiter = ',')]
    library: Vec<PathBuf>,
}

impl ElsewhereArguments {
    pub fn elsewhere(&self) -> Elsewhere {
        Elsewhere {
            database: self.database.clone(),
            project: self.project.clone(),
            root: self.root.clone(),
            libraries: self.library.clone(),
        }
    }
}

#[derive(clap::Args)]
pub struct LeanArguments {
    /// The Lake project that the theorems live in; its own toolchain is used.
    #[arg(long, help_heading = LEAN)]
    pub project: Option<PathBuf>,
    /// Without a toolchain: the folder that the theorems' files are relative to.
    #[arg(long, help_heading = LEAN)]
    pub root: Option<PathBuf>,
    /// Without a toolchain: the recipes of the corpora, by name or by path, that the theorems live
    /// in; they say what --root, --library, --leave-out and --helpers would.
    #[arg(long, help_heading = LEAN, requires = "checkouts", value_delimiter = ',',
        conflicts_with_all = ["project", "root", "library", "leave_out", "helpers"])]
    pub corpus: Vec<String>,
    /// The folder with a checkout of each corpus, and of each that it depends on, under their
    /// names.
    #[arg(long, help_heading = LEAN, requires = "corpus")]
    pub checkouts: Option<PathBuf>,
    /// Without a toolchain: folders of what that library imports besides core Lean.
    #[arg(long, help_heading = LEAN, value_delimiter = ',')]
    pub library: Vec<PathBuf>,
    /// Without a toolchain: modules (and submodules) never to import, even if another module asks
    /// for them.
    #[arg(long, help_heading = LEAN, value_delimiter = ',')]
    pub leave_out: Vec<String>,
    /// Without a toolchain: compile with names for compiler-made helpers, for libraries that bring
    /// tactics of their own (Mathlib, Aesop).
    #[arg(long, help_heading = LEAN)]
    pub helpers: bool,
    /// Modules to import where a theorem's header names none.
    #[arg(long, help_heading = LEAN, value_delimiter = ',')]
    pub imports: Option<Vec<String>>,
    /// Lean processes at work.
    #[arg(long, help_heading = LEAN, default_value_t = 2)]
    #[arg(value_parser = range(1, Workload::MOST_THREADS))]
    pub workers: usize,
    /// Wall-clock limit for one tactic, in seconds.
    #[arg(long, help_heading = LEAN, default_value_t = 60.0)]
    pub tactic_limit: f64,
    /// Lean's own limit for one tactic, in the unit of its maxHeartbeats. This limit is cheap to
    /// hit; hitting --tactic-limit restarts the process.
    #[arg(long, help_heading = LEAN, default_value_t = Options::default().heartbeats)]
    pub heartbeats: u64,
    /// Wall-clock limit for checking one finished proof, in seconds.
    #[arg(long, help_heading = LEAN, default_value_t = 120.0)]
    pub check_limit: f64,
    #[command(flatten)]
    pub trust: LeanTrust,
}

/// What a verdict of Lean's rests on.
#[derive(clap::Args)]
pub struct LeanTrust {
    /// Run a native toolchain even where nothing on this machine would confine it. Tactics run
    /// code: use this for tactics of your own.
    #[arg(long, help_heading = LEAN)]
    pub unconfined: bool,
    /// Kernel that checks proofs; with `nanoda`, that kernel must accept the proof too (its
    /// program nanoda_bin, which you build, must be on the PATH).
    #[arg(long, help_heading = LEAN, value_enum, default_value = "lean")]
    pub kernel: Kernel,
    /// Axioms that a proof may rest on.
    #[arg(long, help_heading = LEAN, value_delimiter = ',')]
    pub axioms: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kernel {
    /// Lean's own.
    Lean,
    /// Lean's own, and nanoda's after it.
    Nanoda,
}

impl From<Kernel> for catamount_lean::Kernel {
    fn from(kernel: Kernel) -> Self {
        match kernel {
            Kernel::Lean => catamount_lean::Kernel::Lean,
            Kernel::Nanoda => catamount_lean::Kernel::Nanoda,
        }
    }
}

impl LeanArguments {
    pub fn options(&self) -> Result<Options> {
        let mut options = Options { workers: self.workers, ..Options::default() };
        if let Some(project) = &self.project {
            options.host = Host::Native { project: project.clone() };
        }
        options.root = self.root.clone().or_else(|| self.project.clone());
        options.libraries.clone_from(&self.library);
        options.left_out.clone_from(&self.leave_out);
        options.helpers = self.helpers;
        if let Some(checkouts) = &self.checkouts {
            options = find_corpora(&self.corpus, checkouts)?.searched(options);
        }
        options.request_limit = seconds(self.tactic_limit, "--tactic-limit")?;
        options.heartbeats = self.heartbeats;
        options.confine = !self.trust.unconfined;
        options.kernel = self.trust.kernel.into();
        options.check_limit = seconds(self.check_limit, "--check-limit")?;
        if let Some(imports) = &self.imports {
            options.imports.clone_from(imports);
        }
        if let Some(axioms) = &self.trust.axioms {
            options.allowed_axioms.clone_from(axioms);
        }
        Ok(options)
    }

    /// Provers elsewhere have settings of their own; a second kernel that was asked for here must
    /// be among them.
    pub fn has_kernel(&self, elsewhere: &impl Environment) -> Result<()> {
        let theirs = elsewhere.identity();
        if self.trust.kernel == Kernel::Nanoda && theirs.get("second kernel") != Some("nanoda") {
            bail!(
                "the provers elsewhere judge without nanoda: start them with `catamount serve \
                 --kernel nanoda`, or leave out --kernel here"
            );
        }
        Ok(())
    }
}

/// A limit on time, by the flag that sets it.
pub fn seconds(value: f64, flag: &str) -> Result<Duration> {
    if !(value > 0.0 && value <= Workload::LONGEST) {
        let longest = Workload::LONGEST;
        bail!("{flag} is a positive number of seconds up to {longest}, not {value}");
    }
    Ok(Duration::from_secs_f64(value))
}

impl Arguments {
    pub fn open(&self) -> Result<Arc<dyn Environment>> {
        match self.env {
            Prover::Metamath => Ok(Arc::new(Metamath::new(self.metamath.open()?))),
            Prover::Lean => Ok(Arc::new(Lean::new(self.lean.options()?)?)),
        }
    }

    /// A theorem from the command line: a label, or for Lean a whole statement.
    pub fn theorem(&self, text: &str, header: Option<&str>) -> Theorem {
        let statement = text.trim_start();
        let named = statement.split_whitespace().nth(1).unwrap_or(statement);
        match self.env {
            Prover::Lean
                if statement.starts_with("theorem ") || statement.starts_with("lemma ") =>
            {
                Theorem {
                    name: named.trim_end_matches(':').to_string(),
                    statement: statement.to_string(),
                    header: Some(header.unwrap_or_default().to_string()),
                    ..Theorem::default()
                }
            }
            _ => Theorem { name: text.to_string(), ..Theorem::default() },
        }
    }
}

/// Opens a Metamath database by path, or by name among Debian's.
pub fn database(path: &Path) -> Result<Database> {
    Ok(Database::open(database_path(path)?)?)
}
