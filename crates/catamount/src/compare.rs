//! `catamount compare`: cells against a control, theorem by theorem.

use std::path::PathBuf;

use anyhow::Result;
use catamount_report::{Cost, Within, compare_family, comparison_table};

#[derive(clap::Args)]
pub struct Arguments {
    /// The control's log; several seeds separated by commas.
    a: String,
    /// The logs to compare with it, each with several seeds separated by commas; more than one make
    /// a family, with p-values corrected by Holm's method. One with fewer seeds is compared at
    /// those it has.
    #[arg(required = true)]
    b: Vec<String>,
    /// What had been proved within so many expansions, from the same logs; several separated by
    /// commas.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    budget: Vec<u64>,
    /// What --budget counts: expansions, distinct tactics (what the prover is asked), or tokens.
    #[arg(long, default_value = "expansions", requires = "budget", value_parser = unit)]
    unit: Cost,
    /// Print JSON: n, b, c, gain_pp, ci_low, ci_high, p and more (an array for a family).
    #[arg(long)]
    json: bool,
}

fn unit(name: &str) -> Result<Cost, String> {
    let found = Cost::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, cost)| *cost).ok_or_else(|| {
        let known: Vec<&str> = Cost::ALL.iter().map(|(known, _)| *known).collect();
        format!("one of {}", known.join(", "))
    })
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let seeds = |text: &String| text.split(',').map(PathBuf::from).collect::<Vec<_>>();
    let others: Vec<Vec<PathBuf>> = arguments.b.iter().map(seeds).collect();
    let within = |&limit: &u64| Within { cost: arguments.unit, limit };
    let within: Vec<Within> = arguments.budget.iter().map(within).collect();
    let family = compare_family(&seeds(&arguments.a), &others, &within)?;
    match (&family[..], arguments.json) {
        ([one], true) => println!("{}", one.to_json()),
        ([one], false) => println!("{one}"),
        (_, true) => println!("{}", serde_json::to_string_pretty(&family)?),
        (_, false) if within.is_empty() => {
            for comparison in &family {
                println!("{comparison}\n");
            }
        }
        (_, false) => print!("{}", comparison_table(&family)),
    }
    Ok(())
}
