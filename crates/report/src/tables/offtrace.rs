//! Off-trace behaviour as measured from search trees.

use std::fmt::Write;

use crate::names::strategy_label;
use crate::run::Run;
use crate::study::OffTrace;
use crate::table::{Entry, Table, field};

/// A column: its name, what a reader sees, and the bare value.
type Column = (&'static str, fn(&OffTrace) -> String, fn(&OffTrace) -> String);

const COLUMNS: [Column; 9] = [
    ("strategy", |row| strategy_label(&row.strategy), |row| row.strategy.clone()),
    ("budget", |row| row.budget.to_string(), |row| row.budget.to_string()),
    ("theorems", |row| row.theorems.to_string(), |row| row.theorems.to_string()),
    ("misses", |row| row.misses.to_string(), |row| row.misses.to_string()),
    ("returned", |row| row.returned.to_string(), |row| row.returned.to_string()),
    ("kappa", |row| format!("{:.3}", row.kappa), |row| row.kappa.to_string()),
    ("absorption", |row| format!("{:.3}", row.absorption), |row| row.absorption.to_string()),
    ("along_trace", |row| row.along_trace.to_string(), |row| row.along_trace.to_string()),
    ("bypass", |row| row.bypass.to_string(), |row| row.bypass.to_string()),
];

pub(super) fn table(run: &Run) -> Option<Table> {
    if run.offtrace.is_empty() {
        return None;
    }
    let mut csv = COLUMNS.map(|(name, ..)| name).join(",");
    csv.push('\n');
    let mut rows = Vec::new();
    for row in &run.offtrace {
        rows.push(COLUMNS.iter().map(|(_, shown, _)| Entry::from(shown(row))).collect());
        let bare: Vec<String> = COLUMNS.iter().map(|(.., bare)| field(&bare(row))).collect();
        let _ = writeln!(csv, "{}", bare.join(","));
    }
    let broken: usize = run.offtrace.iter().map(|row| row.broken).sum();
    let left_out = match broken {
        0 => String::new(),
        some => format!(" {some} damaged trees were left out."),
    };
    Some(Table {
        name: "offtrace".into(),
        title: "Off-trace behaviour, measured from search trees".into(),
        caption: format!(
            "What demonstrations alone cannot determine: \u{3ba}, the expansions a miss costs \
             until the search is back on the trace; q or absorption, the share of misses it never \
             returns from; bypass, proofs found off the demonstrated trace.{left_out}"
        ),
        header: COLUMNS.map(|(name, ..)| name.to_owned()).to_vec(),
        text_columns: 1,
        rows,
        csv,
    })
}
