//! The sweep: every objective against the control, by strategy and budget.

use std::fmt::Write;

use catamount_statistics::holm;

use super::{PAIRED_CSV, paired_csv, paired_entries, paired_header};
use crate::names::{CONTROL, strategy_label, strategy_rank};
use crate::run::Run;
use crate::table::{Entry, Table, field};

pub(super) fn table(run: &Run) -> Option<Table> {
    let mut compared: Vec<_> = run
        .groups
        .iter()
        .filter(|g| g.objective.full != CONTROL)
        .filter_map(|g| Some((g, g.against(run.control(g)?)?)))
        .collect();
    if compared.is_empty() {
        return None;
    }
    compared.sort_by_key(|(g, _)| (strategy_rank(&g.strategy), g.objective.rank(), g.budget));
    let corrected = holm(&compared.iter().map(|(_, c)| c.p).collect::<Vec<_>>());
    let mut csv = format!("strategy,objective,budget,{PAIRED_CSV}\n");
    let mut rows = Vec::new();
    for ((group, c), holm) in compared.iter().zip(&corrected) {
        let mut row: Vec<Entry> = vec![
            strategy_label(&group.strategy).into(),
            group.objective.label().into(),
            group.budget.to_string().into(),
        ];
        row.extend(paired_entries(c, *holm));
        rows.push(row);
        let _ = writeln!(
            csv,
            "{},{},{},{}",
            field(&group.strategy),
            field(&group.objective.full),
            group.budget,
            paired_csv(c, *holm)
        );
    }
    let header = ["strategy", "objective", "N"]
        .map(String::from)
        .into_iter()
        .chain(paired_header())
        .collect();
    Some(Table {
        name: "sweep".into(),
        title: "Paired gain over CE".into(),
        caption: format!(
            "n: theorems both completed; b and c: solved by the objective only and by CE only. \
             The 95 % interval uses the variance (b + c)/n\u{b2}; p is the exact two-sided \
             McNemar test, and Holm p corrects it for the {} comparisons of this table. *: p < \
             0.05; bold: Holm p < 0.05.",
            rows.len()
        ),
        header,
        text_columns: 2,
        rows,
        csv,
    })
}
