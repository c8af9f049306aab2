//! `catamount compare`: two cells, theorem by theorem.

use std::path::PathBuf;

use anyhow::Result;

#[derive(clap::Args)]
pub struct Arguments {
    /// The control's log; several seeds separated by commas.
    #[arg(value_delimiter = ',', num_args = 1)]
    a: Vec<PathBuf>,
    /// The log to compare with it; several seeds separated by commas, in the same order.
    #[arg(value_delimiter = ',', num_args = 1)]
    b: Vec<PathBuf>,
    /// Print JSON: n, b, c, gain_pp, ci_low, ci_high, p and more.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let comparison = catamount_report::compare_seeds(&arguments.a, &arguments.b)?;
    if arguments.json {
        println!("{}", comparison.to_json());
    } else {
        println!("{comparison}");
    }
    Ok(())
}
