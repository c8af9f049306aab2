//! `catamount view`: the report of a study on localhost, while it runs and afterwards.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use catamount_evaluate::log::TreeRecord;
use catamount_experiment::Again;
use catamount_model::Backend;
use catamount_report::{SearchAgain, Server};

use crate::device::{Device, OnDevice};
use crate::output;

/// How often a folder that is not there is looked for.
const LOOK: Duration = Duration::from_millis(200);

/// Options of `catamount view`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The study's folder.
    folder: PathBuf,
    /// The port to listen on, on this machine alone; 0 takes a free one.
    #[arg(long, default_value_t = 8017)]
    port: u16,
    /// Where theorems whose trees were not kept are searched again: auto, cpu or cuda:0.
    #[arg(long, default_value = "auto")]
    device: Device,
}

/// Serves until Ctrl-C.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (port, folder) = (arguments.port, &arguments.folder);
    wait_for(folder)?;
    let server = Server::bind(folder, port)
        .with_context(|| format!("cannot listen on port {port}; try --port 0"))?;
    println!("http://{}/ (Ctrl-C to stop)", server.address()?);
    output::flush();
    Ok(server.searching(searching(arguments.device)).serve()?)
}

/// Waits for the folder of a study that is only just being started.
fn wait_for(folder: &Path) -> Result<()> {
    if folder.exists() && !folder.is_dir() {
        bail!("{} is a file; name the folder of a study", folder.display());
    }
    if folder.is_dir() {
        return Ok(());
    }
    note!("there is no folder {} yet; waiting for it (Ctrl-C to stop)", folder.display());
    while !folder.is_dir() {
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Searches again with the study that a log belongs to, which is opened once.
fn searching(device: Device) -> Box<SearchAgain> {
    let studies: Mutex<HashMap<PathBuf, Again>> = Mutex::default();
    Box::new(move |log, theorem| {
        let folder = log.parent().and_then(Path::parent).unwrap_or(log);
        let mut studies = studies.lock().unwrap_or_else(PoisonError::into_inner);
        let again = match studies.entry(folder.to_path_buf()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                new.insert(Again::open(folder).map_err(|error| catamount_base::causes(&error))?)
            }
        };
        let tree = device.run(Search { again, log, theorem });
        tree.map_err(|error| catamount_base::causes(error.as_ref()))
    })
}

struct Search<'a> {
    again: &'a Again,
    log: &'a Path,
    theorem: &'a str,
}

impl OnDevice for Search<'_> {
    type Output = TreeRecord;

    fn run<B: Backend>(self, backend: Arc<B>) -> Result<TreeRecord> {
        let never = AtomicBool::new(false);
        Ok(self.again.tree(backend, self.log, self.theorem, &never)?)
    }
}
