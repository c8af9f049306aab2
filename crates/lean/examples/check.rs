//! Rules on claims, one JSON object a line: what `catamount check --env lean` does, with one
//! process for many claims.
//!
//! `cargo run --release -p catamount-lean --example check -- FILE`

use catamount_lean::{Lean, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: check FILE")?;
    let options =
        Options { workers: 1, checks_per_header: 1000, heartbeats: 50_000, ..Options::default() };
    let lines = std::fs::read(file)?;
    Lean::new(options)?.rule_lines(&lines, |ruling| match serde_json::to_string(ruling) {
        Ok(line) => println!("{line}"),
        Err(error) => eprintln!("{error}"),
    })?;
    Ok(())
}
