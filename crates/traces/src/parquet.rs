//! Parquet as on the Hugging Face hub, in any of three shapes:
//!
//! - nested: a row is a trace: `name`, `statement`, `header`, `file`, `line`, `column`,
//!   `end_line`, `end_column`, `url`, `commit`, and `steps`, a list of `{state, tactic, next}`;
//! - flat: a row is a step: `name`, `statement`, `step` (its place in the proof), `state`,
//!   `tactic`, and optionally `next`;
//! - LeanDojo's: as nested, with `full_name`, `file_path` and `traced_tactics`, a list of
//!   `{state_before, tactic, state_after}`.
//!
//! All three are read, LeanDojo's names also where the flat shape uses them; the first two are
//! written.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use ::parquet::errors::ParquetError;
use ::parquet::file::reader::FileReader;
use ::parquet::record::{Field, Row};
use serde_json::{Map, Value};

use crate::leandojo::Entry;
use crate::{Error, Step, Theorem, Trace, jsonl};

mod pages;
mod scores;
mod writer;

pub use scores::{Table, Weights, read_scores, write_weights};
pub use writer::write;

/// How traces are laid out in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A row is a trace.
    Nested,
    /// A row is a step.
    Flat,
}

/// Reads a file in any of the three shapes. LeanDojo's theorems whose proof is a term come back
/// without steps.
pub fn read(path: &Path) -> Result<Vec<Trace>, Error> {
    // The Parquet library panics on some damaged files; to our callers that is one more unreadable
    // file.
    catamount_base::guarded(|| read_rows(path))
        .unwrap_or_else(|_| Err(Error::file(path, "not a readable Parquet file: it is damaged")))
}

fn read_rows(path: &Path) -> Result<Vec<Trace>, Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    let broken = |e: ParquetError| Error::file(path, format!("not a readable Parquet file: {e}"));
    let reader = pages::check(path, &file)?;
    let columns: Vec<String> = reader
        .metadata()
        .file_metadata()
        .schema()
        .get_fields()
        .iter()
        .map(|field| field.name().to_owned())
        .collect();
    let has = |name: &str| columns.iter().any(|column| column == name);
    let rows = reader.get_row_iter(None).map_err(broken)?.enumerate().map(|(at, row)| {
        let record = at + 1;
        let wrong = |reason: String| Error::Record { path: path.to_owned(), record, reason };
        Ok((
            record,
            row.map_err(|e| wrong(e.to_string())).and_then(|row| object(&row).map_err(wrong))?,
        ))
    });
    if has("traced_tactics") {
        rows.map(|row| nested::<Entry>(path, row?).map(|entry| entry.trace())).collect()
    } else if has("steps") {
        rows.map(|row| {
            let (record, row) = row?;
            let trace: Trace = nested(path, (record, canonical(row)))?;
            jsonl::check(&trace).map_err(|reason| Error::Record {
                path: path.to_owned(),
                record,
                reason,
            })?;
            Ok(trace)
        })
        .collect()
    } else if has("tactic") {
        flat(path, rows)
    } else {
        let reason = format!(
            "no known shape of traces: the columns are {}; expected steps, traced_tactics, or one \
             row a step with tactic",
            columns.join(", ")
        );
        Err(Error::file(path, reason))
    }
}

type Numbered = (usize, Map<String, Value>);

fn nested<T: serde::de::DeserializeOwned>(
    path: &Path,
    (record, row): Numbered,
) -> Result<T, Error> {
    serde_json::from_value(Value::Object(row)).map_err(|e| Error::Record {
        path: path.to_owned(),
        record,
        reason: format!("not a trace: {e}"),
    })
}

/// Rows of steps, in any order, gathered by theorem in the order in which the theorems first
/// appear.
fn flat(
    path: &Path,
    rows: impl Iterator<Item = Result<Numbered, Error>>,
) -> Result<Vec<Trace>, Error> {
    let mut traces: Vec<(Theorem, Vec<(u64, Step)>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for row in rows {
        let (record, row) = row?;
        let wrong = |reason: String| Error::Record { path: path.to_owned(), record, reason };
        let mut row = canonical(row);
        let number = row
            .remove("step")
            .map(|step| step.as_u64().ok_or_else(|| wrong("step is not a whole number".into())));
        let row = Value::Object(row);
        let theorem: Theorem =
            serde_json::from_value(row.clone()).map_err(|e| wrong(format!("not a step: {e}")))?;
        let step: Step =
            serde_json::from_value(row).map_err(|e| wrong(format!("not a step: {e}")))?;
        let place = *places.entry(theorem.name.clone()).or_insert_with(|| {
            traces.push((theorem, Vec::new()));
            traces.len() - 1
        });
        let steps = &mut traces[place].1;
        // Without numbers the rows' own order is the proof's.
        let number = number.transpose()?.unwrap_or(steps.len() as u64);
        steps.push((number, step));
    }
    let gather = |(theorem, mut steps): (Theorem, Vec<(u64, Step)>)| {
        steps.sort_by_key(|(number, _)| *number);
        if let Some(pair) = steps.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::file(
                path,
                format!("{:?} has two steps numbered {}", theorem.name, pair[0].0),
            ));
        }
        let trace = Trace { theorem, steps: steps.into_iter().map(|(_, step)| step).collect() };
        jsonl::check(&trace).map_err(|reason| Error::file(path, reason))?;
        Ok(trace)
    };
    traces.into_iter().map(gather).collect()
}

/// LeanDojo's names for the fields that we have other names for.
fn canonical(mut row: Map<String, Value>) -> Map<String, Value> {
    for (theirs, ours) in
        [("full_name", "name"), ("theorem_statement", "statement"), ("file_path", "file")]
    {
        if !row.contains_key(ours)
            && let Some(value) = row.remove(theirs)
        {
            row.insert(ours.to_owned(), value);
        }
    }
    row
}

/// A row as a JSON object; nulls are left out, as in the JSON formats.
fn object(row: &Row) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    for (name, field) in row.get_column_iter() {
        if !matches!(field, Field::Null) {
            object.insert(name.clone(), value(name, field)?);
        }
    }
    Ok(object)
}

fn value(name: &str, field: &Field) -> Result<Value, String> {
    Ok(match field {
        Field::Null => Value::Null,
        Field::Bool(x) => (*x).into(),
        Field::Byte(x) => (*x).into(),
        Field::Short(x) => (*x).into(),
        Field::Int(x) => (*x).into(),
        Field::Long(x) => (*x).into(),
        Field::UByte(x) => (*x).into(),
        Field::UShort(x) => (*x).into(),
        Field::UInt(x) => (*x).into(),
        Field::ULong(x) => (*x).into(),
        Field::Float(x) => (*x).into(),
        Field::Double(x) => (*x).into(),
        Field::Str(x) => x.as_str().into(),
        // Some writers leave out the annotation that says that bytes are text.
        Field::Bytes(x) => x
            .as_utf8()
            .map_err(|_| format!("column {name} holds bytes that are not UTF-8 text"))?
            .into(),
        Field::Group(row) => Value::Object(object(row)?),
        Field::ListInternal(list) => {
            list.elements().iter().map(|element| value(name, element)).collect::<Result<_, _>>()?
        }
        // Dates, maps and the like carry nothing that a trace needs.
        other => other.to_string().into(),
    })
}
