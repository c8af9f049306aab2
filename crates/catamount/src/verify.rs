//! `catamount verify`: every proof in a folder replayed by the prover, every hash compared.

use std::path::PathBuf;

use anyhow::{Result, bail};
use catamount_data::Trust;
use catamount_experiment::{Error, Verification, Verified, VerifiedRow};

use crate::environment::{ElsewhereArguments, LeanTrust, MetamathTrust};
use crate::stop;

#[derive(clap::Args)]
pub struct Arguments {
    /// A study's folder, or a folder of cells.
    folder: PathBuf,
    #[command(flatten)]
    elsewhere: ElsewhereArguments,
    #[command(flatten)]
    metamath: MetamathTrust,
    #[command(flatten)]
    lean: LeanTrust,
    /// Look at the hashes and at the logs only, without the prover.
    #[arg(long)]
    hashes_only: bool,
    /// Print the table as JSON, for programs.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn trust(&self) -> Trust {
        let usual = Trust::default();
        Trust {
            unproved: self.metamath.allow_unproved,
            axioms: self.lean.axioms.clone().unwrap_or(usual.axioms),
            confine: !self.lean.unconfined,
            kernel: self.lean.kernel.into(),
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = &arguments.folder;
    if !folder.is_dir() {
        bail!("{} is not a folder", folder.display());
    }
    let how = Verification {
        elsewhere: arguments.elsewhere.elsewhere(),
        trust: arguments.trust(),
        replay: !arguments.hashes_only,
        stop: stop::on_interrupt(),
    };
    let verified = match how.of(folder) {
        Err(Error::Interrupted) => {
            bail!("interrupted; nothing was decided, run the same command again")
        }
        verified => verified?,
    };
    match arguments.json {
        true => println!("{}", serde_json::to_string(&verified)?),
        false => show(&verified),
    }
    match verified.failures.len() {
        0 => Ok(()),
        count => bail!("{count} things in {} are not what they should be", folder.display()),
    }
}

fn show(verified: &Verified) {
    for failure in &verified.failures {
        eprintln!("{failure}");
    }
    for prover in &verified.provers {
        note!("replayed by {prover}");
    }
    let rows = &verified.rows;
    let width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0).max(4);
    println!("{:<width$}  {:>8}  {:>6}", "what", "checked", "failed");
    for row in rows {
        println!("{:<width$}  {:>8}  {:>6}", row.what, row.checked, row.failed);
    }
    let sum = |of: fn(&VerifiedRow) -> usize| rows.iter().map(of).sum::<usize>();
    println!("{:<width$}  {:>8}  {:>6}", "all", sum(|row| row.checked), sum(|row| row.failed));
}
