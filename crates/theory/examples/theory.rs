//! Writes every figure and the index: `cargo run --release -p catamount-theory --example theory --
//! FOLDER`.

use std::path::PathBuf;

fn main() -> Result<(), catamount_theory::TheoryError> {
    let out = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("theory"), PathBuf::from);
    let written = catamount_theory::theory(&out, &mut |what| eprintln!("{what}"))?;
    println!("{} files, starting with {}", written.len(), written[0].display());
    Ok(())
}
