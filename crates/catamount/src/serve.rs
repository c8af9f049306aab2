//! `catamount serve`: a prover behind HTTP, for programs that are not this one, and for searches on
//! other machines. See docs/guides/lean-service.md.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, bail};
use catamount_lean::Lean;
use catamount_service::{Limits, Service};

use crate::environment::{self, Prover};
use crate::stop;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    environment: environment::Arguments,
    /// Where to listen. Whoever can reach this address can use the prover.
    #[arg(long, default_value = "127.0.0.1:8417")]
    listen: SocketAddr,
    /// Requests that may wait; more are turned away with status 503.
    #[arg(long, default_value_t = 64)]
    queue: usize,
    /// Theorems that may be open at a time; more are turned away with status 503.
    #[arg(long, default_value_t = 256)]
    sessions: usize,
    /// Close a theorem after this many idle seconds.
    #[arg(long, default_value_t = 600.0)]
    idle: f64,
    /// Exit when standard input closes (the parent has ended).
    #[arg(long)]
    tied: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let idle = environment::seconds(arguments.idle, "--idle")?;
    if arguments.queue == 0 || arguments.sessions == 0 {
        bail!("--queue and --sessions are at least 1");
    }
    // A thread that waits for its prover must not keep others from the queue.
    let threads = 2 * arguments.environment.lean.workers.max(1);
    let limits = Limits { queue: arguments.queue, sessions: arguments.sessions, idle, threads };
    let service = match arguments.environment.env {
        Prover::Lean => {
            let lean = Arc::new(Lean::new(arguments.environment.lean.options()?)?);
            lean.warm_up()?;
            Service::of_lean(lean, limits)
        }
        Prover::Metamath => Service::new(arguments.environment.open()?, limits),
    };
    if arguments.tied {
        stop::when_input_ends();
    }
    Ok(service.run(arguments.listen, stop::on_interrupt(), |address| {
        println!("listening on http://{address}");
        crate::output::flush();
    })?)
}
