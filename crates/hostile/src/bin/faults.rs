//! `make faults`: the program among failures that are not its own, and a table of how it took them.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use catamount_hostile::faults;

fn main() -> Result<ExitCode> {
    let beside = || -> Result<PathBuf> {
        let folder = std::env::current_exe()?;
        Ok(folder.parent().context("this program has no folder")?.join("catamount"))
    };
    let program = std::env::args().nth(1).map_or_else(beside, |path| Ok(path.into()))?;
    if !program.exists() {
        bail!("{} is not there; build it with `make build`", program.display());
    }
    println!("{:<52} {:>6} {:>9}", "fault", "tries", "failures");
    let rows = faults::all(&program.canonicalize()?, &mut |row| println!("{row}"))?;
    let tries: usize = rows.iter().map(|row| row.tries).sum();
    let failures: usize = rows.iter().map(|row| row.failures.len()).sum();
    println!("{:<52} {tries:>6} {failures:>9}", "all");
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
