//! Off-trace behaviour as measured from search trees: whatever quantities the measurement names.

use std::fmt::Write;

use serde_json::Value;

use crate::names::strategy_label;
use crate::run::Run;
use crate::table::{Entry, Table, field};

pub(super) fn table(run: &Run) -> Option<Table> {
    if run.offtrace.is_empty() {
        return None;
    }
    // What a row is about comes first, then every quantity any row has, by name.
    let mut keys: Vec<String> = Vec::new();
    for first in ["strategy", "objective", "name", "budget"] {
        if run.offtrace.iter().any(|row| row.get(first).is_some()) {
            keys.push(first.into());
        }
    }
    for key in run.offtrace.iter().filter_map(Value::as_object).flat_map(|o| o.keys()) {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    let text_columns = keys
        .iter()
        .take_while(|k| matches!(k.as_str(), "strategy" | "objective" | "name"))
        .count()
        .max(1);
    let mut csv = keys.iter().map(|k| field(k)).collect::<Vec<_>>().join(",");
    csv.push('\n');
    let mut rows = Vec::new();
    for object in &run.offtrace {
        let value = |key: &String| object.get(key).unwrap_or(&Value::Null);
        rows.push(keys.iter().map(|k| Entry::from(show(k, value(k)))).collect());
        let _ = writeln!(
            csv,
            "{}",
            keys.iter().map(|k| field(&raw(value(k)))).collect::<Vec<_>>().join(",")
        );
    }
    Some(Table {
        name: "offtrace".into(),
        title: "Off-trace behaviour, measured from search trees".into(),
        caption: "What demonstrations alone cannot determine: \u{3ba}, the expansions a miss \
         costs until the search is back on the trace; q or absorption, the share of misses it \
         never returns from; bypass, proofs found off the demonstrated trace. Columns are named \
         as the measurement names them."
            .into(),
        header: keys,
        text_columns,
        rows,
        csv,
    })
}

fn raw(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn show(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) if key == "strategy" => strategy_label(text),
        Value::Number(n) if n.is_f64() => {
            n.as_f64().map_or_else(String::new, |v| format!("{v:.3}"))
        }
        Value::Array(items) => {
            items.iter().map(|v| show("", v)).collect::<Vec<_>>().join(" \u{2013} ")
        }
        Value::Null => "\u{2014}".into(),
        other => raw(other),
    }
}
