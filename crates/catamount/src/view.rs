//! `catamount view`: the report of a study on localhost, while it runs and afterwards.

use std::path::PathBuf;

use anyhow::{Context, Result};
use catamount_report::Server;

/// Options of `catamount view`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The study's folder.
    folder: PathBuf,
    /// The port to listen on, on this machine alone; 0 takes a free one.
    #[arg(long, default_value_t = 8017)]
    port: u16,
}

/// Serves until Ctrl-C.
pub fn run(arguments: &Arguments) -> Result<()> {
    let port = arguments.port;
    let server = Server::bind(&arguments.folder, port).with_context(|| {
        format!("cannot show {} on port {port}; try --port 0", arguments.folder.display())
    })?;
    println!("http://{}/ (Ctrl-C to stop)", server.address()?);
    crate::output::flush();
    Ok(server.serve()?)
}
