//! The probabilities that weights were computed from, beside those of held-out tactics.

use std::fmt::Write;

use crate::run::Run;
use crate::table::{Entry, Table, field};

pub(super) fn table(run: &Run) -> Option<Table> {
    if run.readings.is_empty() {
        return None;
    }
    let mut csv = String::from(
        "probabilities,temperature,training_p_median,training_p_mean,used_p_median,used_p_mean,\
         held_out_p_median,held_out_p_mean,held_out_tactics,training_distance,used_distance\n",
    );
    let mut rows = Vec::new();
    for r in &run.readings {
        let numbers = [
            r.training.p_median,
            r.used.p_median,
            r.held_out.p_median,
            r.training_distance,
            r.used_distance,
        ];
        let head = [r.probabilities.clone(), r.temperature.to_string()];
        let numbers = numbers.map(|number| format!("{number:.3}"));
        rows.push(head.into_iter().chain(numbers).map(Entry::from).collect());
        let _ = writeln!(
            csv,
            "{},{},{},{},{},{},{},{},{},{},{}",
            field(&r.probabilities),
            r.temperature,
            r.training.p_median,
            r.training.p_mean,
            r.used.p_median,
            r.used.p_mean,
            r.held_out.p_median,
            r.held_out.p_mean,
            r.held_out.tactics,
            r.training_distance,
            r.used_distance
        );
    }
    Some(Table {
        name: "probabilities".into(),
        title: "Probabilities that weights were computed from".into(),
        caption:
            "Median p of demonstrated tactics: under the warm-up that was trained on them, as \
         used for the weights, and of validation tactics under the same warm-up, which is what a \
         search on new theorems meets. A distance is the area between two distributions of p: 0 \
         where they agree, at most 1."
                .into(),
        header: [
            "probabilities",
            "temperature",
            "training",
            "used",
            "held out",
            "distance, training",
            "distance, used",
        ]
        .map(String::from)
        .to_vec(),
        text_columns: 1,
        rows,
        csv,
    })
}
