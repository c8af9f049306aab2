//! `catamount compare`: cells against a control, theorem by theorem.

use std::path::PathBuf;

use anyhow::{Result, bail};

#[derive(clap::Args)]
pub struct Arguments {
    /// The control's log; several seeds separated by commas.
    a: String,
    /// The log to compare with it; several seeds separated by commas, in the same order.
    b: String,
    /// Further logs to compare with the same control: a family, with p-values corrected by Holm's
    /// method.
    others: Vec<PathBuf>,
    /// Print JSON: n, b, c, gain_pp, ci_low, ci_high, p and more (an array for a family).
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let seeds = |text: &str| text.split(',').map(PathBuf::from).collect::<Vec<_>>();
    let (a, b) = (seeds(&arguments.a), seeds(&arguments.b));
    if arguments.others.is_empty() {
        let comparison = catamount_report::compare_seeds(&a, &b)?;
        println!("{}", if arguments.json { comparison.to_json() } else { comparison.to_string() });
        return Ok(());
    }
    let ([control], [first]) = (&a[..], &b[..]) else {
        bail!(
            "a family of several logs takes one seed each; compare several seeds two logs at a time"
        );
    };
    let family: Vec<PathBuf> = std::iter::once(first).chain(&arguments.others).cloned().collect();
    let comparisons = catamount_report::compare_family(control, &family)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&comparisons)?);
    } else {
        for comparison in comparisons {
            println!("{comparison}\n");
        }
    }
    Ok(())
}
