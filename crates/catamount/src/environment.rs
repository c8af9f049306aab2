//! `--env`: which prover, and where its library is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use catamount_metamath::{Database, Metamath};
use catamount_search::Environment;

/// Where Debian's package `metamath-databases` puts its files.
const DEBIAN: &str = "/usr/share/metamath/databases";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Prover {
    /// Metamath, in this process.
    Metamath,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// The prover.
    #[arg(long, value_enum, default_value = "metamath")]
    pub env: Prover,
    /// Metamath database: a file, or the name of one in Debian's metamath-databases.
    #[arg(long, default_value = "set.mm")]
    pub database: PathBuf,
}

impl Arguments {
    pub fn open(&self) -> Result<Arc<dyn Environment>> {
        match self.env {
            Prover::Metamath => Ok(Arc::new(Metamath::new(database(&self.database)?))),
        }
    }
}

/// Opens a Metamath database by path, or by name among Debian's.
pub fn database(path: &Path) -> Result<Database> {
    Ok(Database::open(database_path(path)?)?)
}

pub fn database_path(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        return Ok(path.to_path_buf());
    }
    let installed = Path::new(DEBIAN).join(path);
    if path.components().count() == 1 && installed.exists() {
        return Ok(installed);
    }
    bail!(
        "there is no database {} here or in {DEBIAN}; give its path, or install Debian's package metamath-databases (set.mm, iset.mm, ...)",
        path.display()
    )
}
