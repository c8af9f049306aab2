//! `make fuzz`: mutated inputs against every parser, and a table of what became of them.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use catamount_hostile::fuzz::{self, Tally};
use catamount_hostile::target::{NAMES, Target};

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["read", name, from, to, notes] => {
            let code = fuzz::reader(name, from.parse()?, to.parse()?, notes.as_ref())?;
            Ok(ExitCode::from(code as u8))
        }
        ["show", name, number] => {
            let folder = tempfile::tempdir()?;
            let target = Target::new(name, folder.path())?;
            let bytes = fuzz::input(&target, number.parse()?);
            std::io::Write::write_all(&mut std::io::stdout(), &bytes)?;
            Ok(ExitCode::SUCCESS)
        }
        [] => all(100_000),
        [inputs] => all(inputs.parse().context("the number of inputs")?),
        _ => bail!("fuzz [INPUTS], or fuzz show TARGET NUMBER for one input"),
    }
}

/// Shares so many inputs out among the targets.
fn all(inputs: u64) -> Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let mut shares = Vec::new();
    for name in NAMES {
        let place = folder.path().join(name);
        std::fs::create_dir_all(&place)?;
        shares.push(Target::new(name, &place)?.share as u64);
    }
    let whole: u64 = shares.iter().sum();
    println!(
        "{:<12} {:>8} {:>7} {:>7} {:>6} {:>9}",
        "target", "inputs", "panics", "aborts", "hangs", "slowest"
    );
    let mut sum = Tally::default();
    for (name, share) in NAMES.into_iter().zip(shares) {
        let tally = fuzz::run(name, (inputs * share).div_ceil(whole), folder.path())?;
        row(name, &tally);
        for (number, words) in &tally.panics {
            println!("  panic at {name} {number}: {words}");
        }
        for number in &tally.aborts {
            println!("  abort at {name} {number}");
        }
        for number in &tally.hangs {
            println!("  hang at {name} {number}");
        }
        sum.inputs += tally.inputs;
        sum.panics.extend(tally.panics);
        sum.aborts.extend(tally.aborts);
        sum.hangs.extend(tally.hangs);
        sum.slowest = sum.slowest.max(tally.slowest);
    }
    row("all", &sum);
    Ok(if sum.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(name: &str, tally: &Tally) {
    println!(
        "{name:<12} {:>8} {:>7} {:>7} {:>6} {:>8.2}s",
        tally.inputs,
        tally.panics.len(),
        tally.aborts.len(),
        tally.hangs.len(),
        tally.slowest.as_secs_f64()
    );
}
