//! `catamount completions` and `catamount man`: what shells and readers want of a command line.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

#[derive(clap::Args)]
pub struct Completions {
    /// bash, zsh, fish, elvish or powershell.
    shell: Shell,
}

#[derive(clap::Args)]
pub struct Manual {
    /// The command to describe, such as `eval` or `data convert`; the program itself if not given.
    command: Vec<String>,
    /// Write the pages of all commands to this folder instead.
    #[arg(long, conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Prints a script that teaches a shell to complete our commands and options.
pub fn completions(arguments: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::clap_command(), "catamount", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    Ok(())
}

/// Prints or writes manual pages.
pub fn manual(arguments: &Manual) -> Result<()> {
    // Built, so that names are whole (`catamount-data-convert`) and inherited options are there.
    let mut command = crate::clap_command().disable_help_subcommand(true);
    command.build();
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        write_all(&command, folder)
            .with_context(|| format!("cannot write to {}", folder.display()))?;
        println!("manual pages written to {}", folder.display());
        return Ok(());
    }
    let mut described = &command;
    for name in &arguments.command {
        let Some(sub) = described.find_subcommand(name) else {
            let known: Vec<&str> = described.get_subcommands().map(|sub| sub.get_name()).collect();
            bail!("there is no command `{name}`; the known ones are {}", known.join(", "));
        };
        described = sub;
    }
    print!("{}", page(described)?);
    Ok(())
}

/// The page of a command and of every command below it.
fn write_all(command: &Command, folder: &Path) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    std::fs::write(folder.join(format!("{name}.1")), page(command)?)?;
    command.get_subcommands().try_for_each(|sub| write_all(sub, folder))
}

/// A page. What stands after the options are examples, in the section that manuals have for them.
fn page(command: &Command) -> std::io::Result<String> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    let page = String::from_utf8_lossy(&page);
    let Some((before, examples)) = page.split_once(".SH EXTRA\nExamples:\n") else {
        return Ok(page.into_owned());
    };
    let end = examples.find(".SH ").unwrap_or(examples.len());
    let (examples, after) = examples.split_at(end);
    Ok(format!("{before}.SH EXAMPLES\n.nf\n{examples}\n.fi\n{after}"))
}
