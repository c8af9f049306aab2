//! Traces a folder of Lean files and says what was kept and what was lost.
//!
//! `cargo run --release -p catamount-lean --example trace -- FOLDER [SUBFOLDER [LIBRARY ...]]`,
//! with the traces on standard output; libraries are what the folder's files import besides core
//! Lean.

use std::path::PathBuf;
use std::time::Instant;

use catamount_lean::{Options, trace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let root = PathBuf::from(args.next().ok_or("usage: trace FOLDER [SUBFOLDER [LIBRARY ...]]")?);
    let path = args.next().map_or_else(|| root.clone(), |sub| root.join(sub));
    let libraries = args.map(PathBuf::from).collect();
    let options = Options { root: Some(root), libraries, ..Options::default() };
    let begin = Instant::now();
    let mut traces = 0;
    let report = trace(&options, &path, |p| {
        traces += p.traces.len();
        eprintln!(
            "[{:6.1} s] {}/{} {}: {traces} traces so far",
            begin.elapsed().as_secs_f64(),
            p.done,
            p.total,
            p.file
        );
    })?;
    for trace in &report.traces {
        println!("{}", serde_json::to_string(trace)?);
    }
    for problem in &report.problems {
        eprintln!(
            "{}:{}: {}",
            problem.file,
            problem.line,
            problem.error.lines().next().unwrap_or_default()
        );
    }
    for lost in &report.lost {
        let said = lost.detail.lines().take(3).collect::<Vec<_>>().join(" / ");
        eprintln!("lost {}:{}: {}: {}: {said}", lost.file, lost.line, lost.name, lost.why);
    }
    eprintln!(
        "{} files, {} theorems, {} by tactics, {} traces; lost: {:?}",
        report.files,
        report.theorems,
        report.by_tactics,
        report.traces.len(),
        report.losses()
    );
    Ok(())
}
