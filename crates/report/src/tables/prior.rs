//! Priors on off-trace behaviour: each corrected objective against its uncorrected counterpart.

use std::fmt::Write;

use catamount_statistics::holm;

use super::{PAIRED_CSV, embolden, paired_csv, paired_entries, paired_header, percent};
use crate::names::{CONTROL, strategy_label, strategy_rank};
use crate::run::Run;
use crate::table::{Entry, Table, field};

pub(super) fn table(run: &Run) -> Option<Table> {
    let mut groups: Vec<_> = run.groups.iter().filter(|g| g.objective.has_prior()).collect();
    if groups.is_empty() {
        return None;
    }
    groups.sort_by_key(|g| (g.budget, strategy_rank(&g.strategy), g.objective.rank()));
    let compared: Vec<_> =
        groups.iter().map(|g| run.without_prior(g).and_then(|base| g.against(base))).collect();
    let corrected = holm(&compared.iter().map(|c| c.map_or(f64::NAN, |c| c.p)).collect::<Vec<_>>());
    let mut csv = format!("strategy,objective,budget,ce_rate,plain_rate,prior_rate,{PAIRED_CSV}\n");
    let mut rows = Vec::new();
    for ((group, c), holm) in groups.iter().zip(&compared).zip(&corrected) {
        let rate = |g: Option<&crate::group::Group>| g.map(|g| g.rate().rate);
        let rates = [
            rate(run.group(CONTROL, &group.strategy, group.budget)),
            rate(run.without_prior(group)),
            rate(Some(group)),
        ];
        let mut shown: Vec<Entry> =
            rates.iter().map(|r| r.map_or("\u{2014}".into(), percent).into()).collect();
        embolden(&mut rates.iter().copied().zip(shown.iter_mut()).collect::<Vec<_>>());
        let mut row: Vec<Entry> = vec![
            strategy_label(&group.strategy).into(),
            group.objective.base.clone().into(),
            group.objective.prior_label().into(),
            group.budget.to_string().into(),
        ];
        row.extend(shown);
        row.extend(
            c.as_ref()
                .map_or_else(|| vec![Entry::from("\u{2014}"); 5], |c| paired_entries(c, *holm)),
        );
        rows.push(row);
        let text = |r: Option<f64>| r.map(|r| r.to_string()).unwrap_or_default();
        let _ = writeln!(
            csv,
            "{},{},{},{},{},{},{}",
            field(&group.strategy),
            field(&group.objective.full),
            group.budget,
            text(rates[0]),
            text(rates[1]),
            text(rates[2]),
            c.as_ref().map_or_else(|| ",,,,,,,,".to_owned(), |c| paired_csv(c, *holm))
        );
    }
    let header = ["strategy", "objective", "prior", "N", "CE", "CAT", "+ prior"]
        .map(String::from)
        .into_iter()
        .chain(paired_header())
        .collect();
    Some(Table {
        name: "prior".into(),
        title: "Priors on off-trace behaviour".into(),
        caption: "Proofs found (%) with CE, with the uncorrected objective (\u{3ba} = 1, q = 0) \
         and with the prior; the paired columns compare the last two. \u{3ba}: expansions a miss \
         costs; q: share of misses never recovered from. Statistics as in the sweep. \u{2014}: no \
         such cell."
            .into(),
        header,
        text_columns: 3,
        rows,
        csv,
    })
}
