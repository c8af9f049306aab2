//! The command line: parse, build objects, call, print. Everything else lives in the crates beside this one.

mod check;
mod command;
mod data;
mod environment;
mod eval;
mod export;
mod policy;
mod pool;
mod progress;
mod prove;
mod stop;
mod weights;

use std::process::ExitCode;

use clap::Parser;

/// Compute-aligned training for theorem-proving search.
#[derive(Parser)]
#[command(name = "catamount", version, about, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Weights of traces from their tactics' log-probabilities (JSON lines in, JSON lines out).
    Weights(weights::Arguments),
    /// Import, extract, split, validate and describe proof traces.
    #[command(subcommand)]
    Data(data::Command),
    /// Search a proof of one theorem, live.
    Prove(prove::Arguments),
    /// Search a pool of theorems: one cell (objective x strategy x budget), resumable.
    Eval(eval::Arguments),
    /// Check finished proofs with the prover alone.
    Check(check::Arguments),
    /// Write found proofs for another program to verify.
    Export(export::Arguments),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Weights(arguments) => weights::run(&arguments),
        Command::Data(command) => data::run(&command),
        Command::Prove(arguments) => prove::run(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
    };
    match result {
        Ok(()) if stop::requested() => ExitCode::from(130),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The reader of our output has seen enough (`catamount ... | head`): not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe))
}
