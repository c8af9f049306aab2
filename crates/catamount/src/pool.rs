//! `--theorems`: which theorems are searched.

use std::path::PathBuf;

use anyhow::{Context, Result};
use catamount_evaluate::Theorems;
use catamount_traces::{Manifest, Steps, read_theorems};

#[derive(clap::Args)]
pub struct Arguments {
    /// Traces or theorems to search: the project's JSON lines, LeanDojo JSON or Parquet.
    #[arg(long)]
    pub theorems: PathBuf,
    /// Only theorems whose demonstrated proof has this many steps, e.g. 2-5.
    #[arg(long)]
    pub steps: Option<Steps>,
    /// Use at most this many theorems (a fixed selection by name hash).
    #[arg(long)]
    pub limit: Option<usize>,
}

impl Arguments {
    /// The theorems; with `verify`, only of a file that the manifest beside it knows as it is.
    pub fn open(&self, verify: bool) -> Result<Theorems> {
        if verify {
            Manifest::verify_file(&self.theorems)?;
        }
        let traces = read_theorems(&self.theorems)?.traces;
        // Whole, so that the log can be verified from anywhere.
        let file = std::path::absolute(&self.theorems)?.display().to_string();
        let theorems = Theorems::select(traces, &file, self.steps, self.limit);
        theorems.with_context(|| {
            format!(
                "{file} has no theorem of that many steps; `catamount data stats` shows what it has"
            )
        })
    }
}
