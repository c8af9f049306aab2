//! Who was busy, in a study whose provers had places of their own: those who sample, and those who
//! prove.

use std::io;
use std::path::Path;

use catamount_evaluate::read_timing;
use serde::{Deserialize, Serialize};

use crate::run::Run;
use crate::table::{Entry, Table};

/// The name of the file in a study's folder that says how busy its prover workers were.
pub const PROVERS: &str = "provers.json";

/// What a prover worker did in one of its lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProverUse {
    /// The machine.
    pub place: String,
    /// Where it was asked: one life of a worker.
    pub address: String,
    /// Seconds in which it had something to do.
    pub busy: f64,
    /// Seconds of that life.
    pub seconds: f64,
    /// Requests answered.
    pub answered: u64,
}

impl ProverUse {
    /// Writes down what workers have done so far, beside what earlier ones did.
    pub fn merge(path: &Path, uses: &[ProverUse]) -> io::Result<()> {
        let before = std::fs::read(path).unwrap_or_default();
        let mut all: Vec<ProverUse> = serde_json::from_slice(&before).unwrap_or_default();
        let same = |a: &ProverUse, b: &ProverUse| (&a.place, &a.address) == (&b.place, &b.address);
        all.retain(|old| !uses.iter().any(|new| same(old, new)));
        all.extend(uses.iter().cloned());
        catamount_base::write(path, serde_json::to_vec_pretty(&all)?)
    }
}

/// The table; none where nobody had a place of its own.
pub(crate) fn table(run: &Run) -> Option<Table> {
    if run.provers.is_empty() {
        return None;
    }
    let (mut sampling, mut searching) = (0.0, 0.0);
    for timing in run.cells().filter_map(|(_, _, cell)| read_timing(&cell.path)) {
        sampling += timing.policy;
        searching += timing.total;
    }
    let share = |busy: f64, seconds: f64| format!("{:.0}", 100.0 * busy / seconds.max(1e-9));
    let row = |who: String, busy: f64, seconds: f64, answered: Option<u64>| -> Vec<Entry> {
        let answered = answered.map(|count| count.to_string()).unwrap_or_default();
        vec![
            who.into(),
            format!("{seconds:.1}").into(),
            share(busy, seconds).into(),
            answered.into(),
        ]
    };
    let mut rows = vec![row("generators, sampling".into(), sampling, searching, None)];
    let sum = |of: fn(&ProverUse) -> f64| run.provers.iter().map(of).sum::<f64>();
    let answered = run.provers.iter().map(|one| one.answered).sum();
    rows.push(row("provers".into(), sum(|one| one.busy), sum(|one| one.seconds), Some(answered)));
    for one in &run.provers {
        let who = format!("the prover at {} on {}", one.address, one.place);
        rows.push(row(who, one.busy, one.seconds, Some(one.answered)));
    }
    Some(Table {
        name: "utilisation".into(),
        title: "Who was busy".into(),
        caption:
            "Generators: seconds of searching, summed over cells, and the share in which some \
                  search waited for tactics. Provers: seconds of a worker's life, and the share in \
                  which it had a tactic, a theorem or a proof before it."
                .into(),
        header: ["", "seconds", "busy (%)", "requests"].map(String::from).to_vec(),
        text_columns: 1,
        rows,
        csv: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_workers_did_is_kept_across_their_lives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PROVERS);
        let used = |address: &str, busy| ProverUse {
            place: "here".into(),
            address: address.into(),
            busy,
            seconds: 10.0,
            answered: 3,
        };
        ProverUse::merge(&path, &[used("a", 1.0)]).unwrap();
        ProverUse::merge(&path, &[used("a", 2.0), used("b", 4.0)]).unwrap();
        ProverUse::merge(&path, &[used("b", 5.0)]).unwrap();
        let read: Vec<ProverUse> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, [used("a", 2.0), used("b", 5.0)]);
    }
}
