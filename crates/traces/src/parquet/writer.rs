//! Writes traces as Parquet. A column of a nested file is a flat list of values with two levels
//! each: the repetition level says where a trace begins (0), the definition level how much of the
//! path to the value exists.

use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;

use super::Shape;
use catamount_base::AtomicFile;

use crate::{Error, Step, Theorem, Trace, jsonl};

/// Traces to a row group: small enough to buffer, large enough to compress.
const GROUP: usize = 8192;

const NESTED: &str = "message trace {
    required binary name (UTF8);
    required binary statement (UTF8);
    optional binary header (UTF8);
    optional binary file (UTF8);
    optional int64 line;
    optional int64 column;
    optional int64 end_line;
    optional int64 end_column;
    optional binary url (UTF8);
    optional binary commit (UTF8);
    required group steps (LIST) {
        repeated group list {
            required group element {
                required binary state (UTF8);
                required binary tactic (UTF8);
                optional binary next (UTF8);
            }
        }
    }
}";

const FLAT: &str = "message step {
    required binary name (UTF8);
    required binary statement (UTF8);
    optional binary header (UTF8);
    optional binary file (UTF8);
    optional int64 line;
    optional int64 column;
    optional int64 end_line;
    optional int64 end_column;
    optional binary url (UTF8);
    optional binary commit (UTF8);
    required int64 step;
    required binary state (UTF8);
    required binary tactic (UTF8);
    optional binary next (UTF8);
}";

/// Writes a file in the given shape; the old file stays until the new one is complete.
pub fn write(path: &Path, traces: &[Trace], shape: Shape) -> Result<(), Error> {
    write_as(path, traces, shape, Compression::SNAPPY)
}

fn write_as(
    path: &Path,
    traces: &[Trace],
    shape: Shape,
    compression: Compression,
) -> Result<(), Error> {
    for (at, trace) in traces.iter().enumerate() {
        jsonl::check(trace).map_err(|reason| Error::Record {
            path: path.to_owned(),
            record: at + 1,
            reason,
        })?;
    }
    let file = AtomicFile::create(path).map_err(Error::io(path))?;
    let broken = |e: ParquetError| Error::file(path, format!("cannot write Parquet: {e}"));
    let schema = Arc::new(
        parse_message_type(if shape == Shape::Nested { NESTED } else { FLAT }).map_err(broken)?,
    );
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(broken)?;
    for traces in traces.chunks(GROUP) {
        let mut group = writer.next_row_group().map_err(broken)?;
        match shape {
            Shape::Nested => nested(&mut group, traces),
            Shape::Flat => flat(&mut group, traces),
        }
        .map_err(broken)?;
        group.close().map_err(broken)?;
    }
    writer.into_inner().map_err(broken)?.commit().map_err(Error::io(path))
}

type Group<'a> = SerializedRowGroupWriter<'a, AtomicFile>;

/// The columns must come in the schema's order.
fn nested(group: &mut Group<'_>, traces: &[Trace]) -> Result<(), ParquetError> {
    let theorems: Vec<&Theorem> = traces.iter().map(|trace| &trace.theorem).collect();
    theorem_columns(group, &theorems)?;
    let steps: Vec<&Step> = traces.iter().flat_map(|trace| &trace.steps).collect();
    let repeats: Vec<i16> = traces
        .iter()
        .flat_map(|trace| (0..trace.steps.len()).map(|at| i16::from(at > 0)))
        .collect();
    let present = vec![1; steps.len()];
    let states: Vec<ByteArray> = steps.iter().map(|step| bytes(&step.state)).collect();
    column::<ByteArrayType>(group, &states, Some(&present), Some(&repeats))?;
    let tactics: Vec<ByteArray> = steps.iter().map(|step| bytes(&step.tactic)).collect();
    column::<ByteArrayType>(group, &tactics, Some(&present), Some(&repeats))?;
    let nexts: Vec<ByteArray> =
        steps.iter().filter_map(|step| step.next.as_deref()).map(bytes).collect();
    let levels: Vec<i16> = steps.iter().map(|step| 1 + i16::from(step.next.is_some())).collect();
    column::<ByteArrayType>(group, &nexts, Some(&levels), Some(&repeats))
}

fn flat(group: &mut Group<'_>, traces: &[Trace]) -> Result<(), ParquetError> {
    let theorems: Vec<&Theorem> =
        traces.iter().flat_map(|trace| trace.steps.iter().map(|_| &trace.theorem)).collect();
    theorem_columns(group, &theorems)?;
    let steps: Vec<&Step> = traces.iter().flat_map(|trace| &trace.steps).collect();
    let numbers: Vec<i64> = traces.iter().flat_map(|trace| 0..trace.steps.len() as i64).collect();
    column::<Int64Type>(group, &numbers, None, None)?;
    required(group, steps.iter().map(|step| step.state.as_str()))?;
    required(group, steps.iter().map(|step| step.tactic.as_str()))?;
    optional::<ByteArrayType>(group, steps.iter().map(|step| step.next.as_deref().map(bytes)))
}

fn theorem_columns(group: &mut Group<'_>, theorems: &[&Theorem]) -> Result<(), ParquetError> {
    required(group, theorems.iter().map(|theorem| theorem.name.as_str()))?;
    required(group, theorems.iter().map(|theorem| theorem.statement.as_str()))?;
    texts(group, theorems, |theorem| &theorem.header)?;
    texts(group, theorems, |theorem| &theorem.file)?;
    numbers(group, theorems, |theorem| theorem.line)?;
    numbers(group, theorems, |theorem| theorem.column)?;
    numbers(group, theorems, |theorem| theorem.end_line)?;
    numbers(group, theorems, |theorem| theorem.end_column)?;
    texts(group, theorems, |theorem| &theorem.url)?;
    texts(group, theorems, |theorem| &theorem.commit)
}

fn numbers(
    group: &mut Group<'_>,
    theorems: &[&Theorem],
    field: impl Fn(&Theorem) -> Option<u32>,
) -> Result<(), ParquetError> {
    optional::<Int64Type>(group, theorems.iter().map(|theorem| field(theorem).map(i64::from)))
}

fn texts(
    group: &mut Group<'_>,
    theorems: &[&Theorem],
    field: impl Fn(&Theorem) -> &Option<String>,
) -> Result<(), ParquetError> {
    let values = theorems.iter().map(|theorem| field(theorem).as_deref().map(bytes));
    optional::<ByteArrayType>(group, values)
}

fn bytes(text: &str) -> ByteArray {
    ByteArray::from(text)
}

pub(super) fn required<'a>(
    group: &mut Group<'_>,
    texts: impl Iterator<Item = &'a str>,
) -> Result<(), ParquetError> {
    column::<ByteArrayType>(group, &texts.map(bytes).collect::<Vec<_>>(), None, None)
}

fn optional<T: DataType>(
    group: &mut Group<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    column::<T>(group, &values.into_iter().flatten().collect::<Vec<_>>(), Some(&levels), None)
}

pub(super) fn column<T: DataType>(
    group: &mut Group<'_>,
    values: &[T::T],
    definition: Option<&[i16]>,
    repetition: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns than were written".into());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, definition, repetition)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use ::parquet::basic::{GzipLevel, ZstdLevel};

    use super::*;
    use crate::read_any;

    #[test]
    fn files_of_every_codec_on_the_hub_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let step = Step { state: "⊢ p".into(), tactic: "simp".into(), ..Step::default() };
        let theorem = Theorem {
            name: "t".into(),
            url: Some("https://example.org/r".into()),
            commit: Some("c0ffee".into()),
            ..Theorem::default()
        };
        let traces = [Trace { theorem, steps: vec![step] }];
        for compression in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(GzipLevel::default()),
            Compression::ZSTD(ZstdLevel::default()),
        ] {
            for shape in [Shape::Nested, Shape::Flat] {
                write_as(&path, &traces, shape, compression).unwrap();
                assert_eq!(read_any(&path).unwrap().traces, traces, "{compression} {shape:?}");
            }
        }
    }
}
