//! `make verdicts`: mutated databases and proofs, judged here and by Debian's `metamath`.

use std::process::ExitCode;

use anyhow::Result;
use catamount_hostile::verdicts::{Part, TOY, compare};

/// Databases beside the toy; small, so that thousands are judged in seconds.
const DEBIAN: [&str; 2] = ["demo0.mm", "peano.mm"];

fn main() -> Result<ExitCode> {
    let count = std::env::args().nth(1).map_or(Ok(2000), |count| count.parse())?;
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
    for part in [Part::Database, Part::Proof] {
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
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
