//! The sweep: every objective against the control, by strategy and budget.

use std::fmt::Write;

use catamount_statistics::{Spread, holm};

use super::{PAIRED_CSV, minus, paired_csv, paired_entries, paired_header};
use crate::names::{CONTROL, Objective, TUNED, strategy_label, strategy_rank};
use crate::run::Run;
use crate::table::{Entry, Table, field};

/// What differs with several seeds.
const POOLED: &str = "Seeds are pooled, the theorem being the unit: a theorem counts the sum of \
                      its seeds' differences, the interval has the theorems' variance, and p is \
                      the exact sign-flip test over theorems. Over seeds: the smallest and the \
                      largest gain of a single seed, and their standard deviation. ";

fn over_seeds(spread: Spread) -> String {
    minus(format!("{:+.1} to {:+.1} (sd {:.1})", spread.min, spread.max, spread.sd))
}

/// Every objective against a control, where both are there.
pub(super) fn table(run: &Run, against: &Objective) -> Option<Table> {
    let control = against.full.as_str();
    let mut compared: Vec<_> = run
        .groups
        .iter()
        .filter(|g| g.objective.full != control)
        .filter_map(|g| Some((g, g.against(run.group(control, &g.strategy, g.budget)?)?)))
        .collect();
    if compared.is_empty() {
        return None;
    }
    compared.sort_by_key(|(g, _)| (strategy_rank(&g.strategy), g.objective.rank(), g.budget));
    let corrected = holm(&compared.iter().map(|(_, c)| c.p).collect::<Vec<_>>());
    let several = compared.iter().any(|(g, _)| g.cells.len() > 1);
    let mut csv = format!("strategy,objective,budget,{PAIRED_CSV},seed_min,seed_max,seed_sd\n");
    let mut rows = Vec::new();
    for ((group, c), holm) in compared.iter().zip(&corrected) {
        let mut row: Vec<Entry> = vec![
            strategy_label(&group.strategy).into(),
            group.objective.label().into(),
            group.budget.to_string().into(),
        ];
        row.extend(paired_entries(c, *holm));
        let base = run.group(control, &group.strategy, group.budget);
        let spread = base.and_then(|base| group.gain_spread(base));
        if several {
            row.push(spread.map_or("\u{2013}".into(), over_seeds).into());
        }
        rows.push(row);
        let _ = writeln!(
            csv,
            "{},{},{},{},{}",
            field(&group.strategy),
            field(&group.objective.full),
            group.budget,
            paired_csv(c, *holm),
            spread.map_or(",,".into(), |s| format!("{},{},{}", s.min, s.max, s.sd))
        );
    }
    let header = ["strategy", "objective", "N"]
        .map(String::from)
        .into_iter()
        .chain(paired_header())
        .chain(several.then(|| "over seeds".to_string()))
        .collect();
    Some(Table {
        name: match control {
            CONTROL => "sweep".to_string(),
            TUNED => "sweep-tuned".to_string(),
            other => format!("sweep-{other}"),
        },
        title: format!("Paired gain over {}", against.label()),
        caption: format!(
            "{}n: theorems both completed; b and c: solved by the objective only and by the \
             control only. The 95 % interval uses the variance (b + c)/n\u{b2}; p is the exact \
             two-sided McNemar test, and Holm p corrects it for the {} comparisons of this table. \
             *: p < 0.05; bold: Holm p < 0.05.",
            if several { POOLED } else { "" },
            rows.len()
        ),
        header,
        text_columns: 2,
        rows,
        csv,
    })
}
