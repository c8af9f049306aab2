//! `make verdicts`: mutated databases and proofs, judged here and by Debian's `metamath`.
//! `verdicts suite FOLDER`: a copy of the public suite of good and bad databases.

#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use catamount_hostile::suite::{self, Verdict};
use catamount_hostile::verdicts::{Part, TOY, compare};

/// Databases beside the toy; small, so that thousands are judged in seconds.
const DEBIAN: [&str; 2] = ["demo0.mm", "peano.mm"];

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let clean = match arguments[..] {
        [] => mutations(2000)?,
        ["suite", folder] => public_suite(folder.as_ref())?,
        [count] => mutations(count.parse().context("the number of mutations")?)?,
        _ => bail!("verdicts [COUNT], or verdicts suite FOLDER"),
    };
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares so many mutated databases and so many mutated proofs; whether all is well.
fn mutations(count: usize) -> Result<bool> {
    let began = Instant::now();
    let mut seeds = vec![TOY.to_owned()];
    for name in DEBIAN {
        // Without the package, the toy alone is mutated.
        if let Ok(text) = std::fs::read_to_string(format!("/usr/share/metamath/databases/{name}")) {
            seeds.push(text);
        }
    }
    println!(
        "{:<10} {:>7} {:>9} {:>8} {:>13} {:>9} {:>5}",
        "mutated", "judged", "accepted", "refused", "disagreements", "replayed", "lost"
    );
    let mut clean = true;
    for part in Part::ALL {
        let compared = compare(part, count, &seeds)?;
        println!(
            "{:<10} {:>7} {:>9} {:>8} {:>13} {:>9} {:>5}",
            part.to_string(),
            compared.judged,
            compared.accepted,
            compared.refused,
            compared.disagreements.len(),
            compared.replayed,
            compared.lost.len()
        );
        for (number, (text, who)) in compared.disagreements.iter().enumerate() {
            let path = std::env::temp_dir().join(format!("disagreement-{part}-{number}.mm"));
            std::fs::write(&path, text)?;
            println!("  only {who} accepts {}", path.display());
        }
        for (label, why) in &compared.lost {
            println!("  not proved again: {label}: {why}");
        }
        clean &= compared.disagreements.is_empty() && compared.lost.is_empty();
    }
    println!("{:.0} s", began.elapsed().as_secs_f64());
    Ok(clean)
}

/// Judges a copy of the public suite; whether every verdict is the right one.
fn public_suite(folder: &Path) -> Result<bool> {
    let judged = suite::judge(folder)?;
    for (case, verdict) in &judged {
        let expected = if case.good { "good" } else { "bad" };
        println!("{:<28} {expected:<5} {verdict:?}", case.file);
    }
    let count = |wanted: Verdict| judged.iter().filter(|(_, verdict)| *verdict == wanted).count();
    let wrong = count(Verdict::Wrong);
    println!("{} right, {wrong} wrong, {} missing", count(Verdict::Right), count(Verdict::Missing));
    Ok(wrong == 0)
}
