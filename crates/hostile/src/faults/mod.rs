//! The program among failures that are not its own.

mod row;
mod server;
mod streams;
mod tries;
mod world;

use std::path::Path;

use anyhow::Result;

pub use row::Row;
use world::World;

/// Tries every fault on a program, handing each row over as it is done.
pub fn all(program: &Path, each: &mut dyn FnMut(&Row)) -> Result<Vec<Row>> {
    let world = World::new(program)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut done = |some: Vec<Row>| {
        some.iter().for_each(&mut *each);
        rows.extend(some);
    };
    done(streams::output(&world)?);
    done(streams::output_with_lean(&world)?);
    done(tries::servers(&world)?);
    done(tries::hanging(&world)?);
    done(tries::stopped_provers(&world)?);
    done(vec![tries::full_disk(&world)?]);
    done(tries::limits(&world)?);
    done(tries::signals(&world)?);
    done(vec![tries::clock(&world)?]);
    Ok(rows)
}
