//! Matching: within the search-aware family, the objective of the deployed strategy against the
//! objectives of others.

use std::fmt::Write;

use catamount_statistics::holm;

use super::{PAIRED_CSV, paired_csv, paired_entries, paired_header, percent};
use crate::names::{Objective, strategy_label};
use crate::run::Run;
use crate::table::{Entry, Table, field};

pub(super) fn table(run: &Run, budget: u64) -> Option<Table> {
    let family: Vec<Objective> =
        run.objectives().into_iter().filter(Objective::is_search_aware).collect();
    let mut compared = Vec::new();
    for strategy in run.strategies() {
        let Some(matched) = run.matched(&strategy, budget) else { continue };
        for other in family.iter().filter(|o| !o.matches(&strategy)) {
            if let Some(other) = run.group(&other.full, &strategy, budget)
                && let Some(c) = matched.against(other)
            {
                compared.push((matched, other, c));
            }
        }
    }
    if compared.is_empty() {
        return None;
    }
    let corrected = holm(&compared.iter().map(|(_, _, c)| c.p).collect::<Vec<_>>());
    let mut csv =
        format!("strategy,matched,mismatched,budget,matched_rate,mismatched_rate,{PAIRED_CSV}\n");
    let mut rows = Vec::new();
    for ((matched, other, c), holm) in compared.iter().zip(&corrected) {
        let (x, y) = (matched.rate().rate, other.rate().rate);
        let mut row: Vec<Entry> = vec![
            strategy_label(&matched.strategy).into(),
            matched.objective.label().into(),
            other.objective.label().into(),
            Entry { text: percent(x), bold: x >= y, mark: String::new() },
            Entry { text: percent(y), bold: y >= x, mark: String::new() },
        ];
        row.extend(paired_entries(c, *holm));
        rows.push(row);
        let _ = writeln!(
            csv,
            "{},{},{},{budget},{x},{y},{}",
            field(&matched.strategy),
            field(&matched.objective.full),
            field(&other.objective.full),
            paired_csv(c, *holm)
        );
    }
    let header = ["strategy", "matched", "mismatched", "matched (%)", "mismatched (%)"]
        .map(String::from)
        .into_iter()
        .chain(paired_header())
        .collect();
    Some(Table {
        name: format!("matching-{budget}"),
        title: format!("Strategy matching within the search-aware family at N = {budget}"),
        caption: "Each row sets the objective that models the deployed strategy against one that \
         models another; a positive gain favours matching. One recurrence serves BFS and DFS, so \
         they match each other. Statistics as in the sweep."
            .into(),
        header,
        text_columns: 3,
        rows,
        csv,
    })
}
