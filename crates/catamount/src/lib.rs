//! The command line: parse, build objects, call, print. Everything else lives in the crates beside
//! this one.
//!
//! A library, so that the program (`bin/catamount.rs`) and the Python package's `catamount` command
//! are the same code.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
// What is printed goes by way of `output`, which knows what to do where it cannot be written.
macro_rules! print {
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*)) };
}
macro_rules! println {
    () => { $crate::output::print(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($text)*))) };
}
/// Says something on the way, unless `--quiet`.
macro_rules! note {
    ($($text:tt)*) => { catamount_base::say(format!($($text)*)) };
}
/// Says something that only `--verbose` wants to know.
macro_rules! detail {
    ($($text:tt)*) => { $crate::output::detail(format_args!($($text)*)) };
}
macro_rules! eprint {
    ($($text:tt)*) => { catamount_base::complain(format_args!($($text)*)) };
}
macro_rules! eprintln {
    ($($text:tt)*) => { catamount_base::complain(format_args!("{}\n", format_args!($($text)*))) };
}

mod arguments;
mod check;
mod cluster;
mod command;
mod compare;
mod data;
mod device;
mod doctor;
mod environment;
mod eval;
mod examples;
mod experiment;
mod export;
mod fleet;
mod forecast;
mod found;
mod generate;
mod lean;
mod model;
mod nodes;
mod output;
mod policy;
mod pool;
mod processes;
mod prove;
mod provers;
mod score;
mod search;
mod serve;
mod server;
mod shell;
mod step;
mod stop;
mod together;
mod verify;
mod view;
mod weights;

pub use server::{layout, served};

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::experiment::Scope;

/// Compute-aligned training for theorem-proving search.
#[derive(Parser)]
#[command(name = "catamount", version, about, max_term_width = 110)]
struct Cli {
    /// Hide progress and notes; results, warnings and errors are still printed.
    #[arg(short, long, global = true, conflicts_with = "verbose", display_order = 900)]
    quiet: bool,
    /// Print more detail, such as the prover and policy in use.
    #[arg(short, long, global = true, display_order = 901)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Weights of traces from their tactics' log-probabilities (JSON lines in, JSON lines out).
    Weights(weights::Arguments),
    /// The paper's analysis as numbers and figures.
    Theory {
        /// Folder for the figures (SVG), their data (CSV) and an index.
        #[arg(long)]
        out: std::path::PathBuf,
        /// Print what was written as JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Import, extract, split, validate and describe proof traces.
    #[command(subcommand)]
    Data(data::Command),
    /// Compile a Lean library once, or trace a known one by its recipe.
    #[command(subcommand)]
    Lean(lean::Command),
    /// Search for a proof of one theorem and watch it.
    Prove(prove::Arguments),
    /// Search a pool of theorems: one cell (objective x strategy x budget), resumable.
    Eval(eval::Arguments),
    /// Check finished proofs with the prover alone.
    Check(check::Arguments),
    /// Offer a prover over HTTP: open a theorem, run tactics, have a proof judged.
    Serve(serve::Arguments),
    /// Write found proofs for another program, or a person, to verify.
    Export(export::Arguments),
    /// Run a whole study from one file: data, warm-up, branches, cells, report.
    Run(experiment::Arguments),
    /// The first half of a study: data, warm-up and one branch per objective.
    Train(experiment::Arguments),
    /// Compare a study's surrogates with real searches of validation theorems, and fit them.
    Calibrate(experiment::Arguments),
    /// Choose objective, budget, floor and temperature on a study's validation theorems.
    Tune(experiment::Arguments),
    /// Run only the given steps of a study (for external schedulers).
    Step(step::Arguments),
    /// log p of every tactic of a file of traces, for `catamount weights`.
    Score(score::Arguments),
    /// Sample tactics for a state.
    Generate(generate::Arguments),
    /// Paired statistics of two cells.
    Compare(compare::Arguments),
    /// Tables, figures and the page of a study's folder.
    Report {
        /// The study's folder.
        folder: std::path::PathBuf,
        /// Print every table, and what is missing, as JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Show the report of a study in a browser, while it runs.
    View(view::Arguments),
    /// Replay every proof of a study's cells with the prover, and compare every hash.
    Verify(verify::Arguments),
    /// Say what is installed, which versions, and what is missing.
    Doctor(doctor::Arguments),
    /// Print a script that makes a shell complete commands and options.
    Completions(shell::Completions),
    /// Print a manual page, or write all of them.
    Man(shell::Manual),
}

/// The command line as clap sees it, with examples in every help.
fn clap_command() -> clap::Command {
    let command = examples::with_examples(Cli::command());
    command.mut_subcommand("eval", search::several_strategies)
}

/// Does what the arguments say, of which the first is the program's name, and returns the exit
/// code.
pub fn command_line(arguments: Vec<OsString>) -> u8 {
    command::remember(&arguments);
    let parsed = clap_command().try_get_matches_from(arguments);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    output::set_level(cli.quiet, cli.verbose);
    let result = match cli.command {
        Command::Weights(arguments) => weights::run(&arguments),
        Command::Data(command) => data::run(&command),
        Command::Lean(command) => lean::run(&command),
        Command::Prove(arguments) => prove::run(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Theory { out, json } => theory(&out, json),
        Command::Run(arguments) => experiment::run(&arguments, Scope::Whole),
        Command::Train(arguments) => experiment::run(&arguments, Scope::Training),
        Command::Calibrate(arguments) => experiment::run(&arguments, Scope::Calibration),
        Command::Tune(arguments) => experiment::run(&arguments, Scope::Tuning),
        Command::Step(arguments) => step::run(&arguments),
        Command::Score(arguments) => score::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Report { folder, json } => report(&folder, json),
        Command::View(arguments) => view::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::manual(&arguments),
    };
    output::flush();
    match result {
        Ok(()) if stop::requested() => 130,
        Ok(()) => 0,
        Err(error) => {
            eprintln!("error: {}", catamount_base::causes(error.as_ref()));
            2
        }
    }
}

fn theory(out: &std::path::Path, json: bool) -> anyhow::Result<()> {
    let written = catamount_theory::theory(out, &mut |what| note!("{what}"))?;
    if json {
        println!("{}", serde_json::json!({ "folder": out, "files": written }));
        return Ok(());
    }
    println!("{} files written to {}", written.len(), out.display());
    Ok(())
}

fn report(folder: &std::path::Path, json: bool) -> anyhow::Result<()> {
    experiment::show(&catamount_report::report(folder)?, json)
}

/// What is wrong with the command line; or the help, or the version, which were asked for.
fn explain(error: &clap::Error) -> u8 {
    if let Err(unwritten) = error.print()
        && !error.use_stderr()
    {
        let _ = output::end::<()>(unwritten);
    }
    output::flush();
    error.exit_code() as u8
}
