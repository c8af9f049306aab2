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
    let (options, paths): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let strict = match options.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--strict"] => true,
        _ => bail!("faults [--strict] [PROGRAM]: with --strict, a row that is skipped has failed"),
    };
    let program = paths.first().map_or_else(beside, |path| Ok(path.into()))?;
    if !program.exists() {
        bail!("{} is not there; build it with `make build`", program.display());
    }
    println!("{:<52} {:>6} {:>9}", "fault", "tries", "failures");
    let rows = faults::all(&program.canonicalize()?, &mut |row| println!("{row}"))?;
    let tries: usize = rows.iter().map(|row| row.tries).sum();
    let failures: usize = rows.iter().map(|row| row.failures.len()).sum();
    let skipped = rows.iter().filter(|row| row.skipped.is_some()).count();
    println!("{:<52} {tries:>6} {failures:>9}", "all");
    if skipped > 0 {
        println!("{skipped} rows were skipped");
    }
    let well = failures == 0 && (skipped == 0 || !strict);
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
