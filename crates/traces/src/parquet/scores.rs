//! Log-probabilities of traces and their weights as Parquet, for who has many: a row is a trace.
//!
//! Read: `logp`, a list of numbers, and `name`, which may be missing. Written: `name`,
//! `log_success`, `weights` (a list, one for each tactic) and `infeasible`.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::column::reader::ColumnReader;
use ::parquet::data_type::{BoolType, ByteArray, DataType, DoubleType};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{FileReader, RowGroupReader};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use catamount_base::AtomicFile;

use super::pages;
use super::writer::{column, required};
use crate::Error;

/// Traces to a row group.
const GROUP: usize = 1 << 16;

const WEIGHTS: &str = "message weights {
    required binary name (UTF8);
    required double log_success;
    required group weights (LIST) {
        repeated group list {
            required double element;
        }
    }
    required boolean infeasible;
}";

/// What was read: every trace's name, and the log-probabilities of all of them in a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// A name for each trace; its row's number, from 1, where the file has no names.
    pub names: Vec<String>,
    /// The numbers of all traces, one after another.
    pub logp: Vec<f64>,
    /// Where each trace ends.
    pub ends: Vec<usize>,
}

impl Table {
    /// The traces, in the order of their rows.
    pub fn traces(&self) -> Vec<&[f64]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.logp[start..end]).collect()
    }
}

/// A row of what is written.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// The trace's name.
    pub name: &'a str,
    /// log J.
    pub log_success: f64,
    /// One for each tactic, at least one.
    pub weights: &'a [f64],
    /// Whether no search within the budget finds the trace.
    pub infeasible: bool,
}

/// Reads the columns `logp` and `name` of a file.
pub fn read_scores(path: &Path) -> Result<Table, Error> {
    // As for traces: the library panics on some damaged files.
    catamount_base::guarded(|| read(path))
        .unwrap_or_else(|_| Err(Error::file(path, "not a readable Parquet file: it is damaged")))
}

fn read(path: &Path) -> Result<Table, Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    let broken = |e: ParquetError| Error::file(path, format!("not a readable Parquet file: {e}"));
    let reader = pages::check(path, &file)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let place = |name: &str| {
        schema.columns().iter().position(|column| column.path().parts().first().unwrap() == name)
    };
    let Some(logp) = place("logp") else {
        let columns = schema.root_schema().get_fields().iter().map(|field| field.name());
        let columns = columns.collect::<Vec<_>>().join(", ");
        let reason = format!(
            "has no column logp, a list of the log-probabilities of a trace's tactics; its columns \
             are {columns}"
        );
        return Err(Error::file(path, reason));
    };
    let wrong = |row: usize, reason: &str| Error::Record {
        path: path.to_owned(),
        record: row + 1,
        reason: reason.to_owned(),
    };
    let mut table = Table::default();
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).map_err(broken)?;
        let first = table.ends.len();
        let numbers = Column::numbers(&*group, logp).map_err(broken)?;
        let numbers = numbers.ok_or_else(|| {
            Error::file(path, "column logp is not a list of numbers (double or float)")
        })?;
        numbers.append(&mut table).map_err(|row| {
            wrong(row, "has no log-probabilities, or one of them is missing (null)")
        })?;
        match place("name") {
            Some(name) => {
                let names = Column::texts(&*group, name).map_err(broken)?;
                let names = names
                    .ok_or_else(|| Error::file(path, "column name does not hold one text a row"))?;
                if let Some(at) = names.levels.iter().position(|level| *level < names.present) {
                    return Err(wrong(first + at, "has no name (null)"));
                }
                for (at, name) in names.values.iter().enumerate() {
                    let name = name.as_utf8();
                    let name = name.map_err(|_| wrong(first + at, "its name is not UTF-8 text"))?;
                    table.names.push(name.to_owned());
                }
            }
            None => table.names.extend((first..table.ends.len()).map(|row| (row + 1).to_string())),
        }
    }
    Ok(table)
}

/// A column of a row group as the file has it.
struct Column<T> {
    values: Vec<T>,
    /// How much of the path to each value exists; empty if all of it must.
    levels: Vec<i16>,
    /// The level of a value that is there.
    present: i16,
    /// 0 where a row begins.
    repeats: Vec<i16>,
}

impl Column<f64> {
    /// Nothing if it is not a list of numbers.
    fn numbers(group: &dyn RowGroupReader, at: usize) -> Result<Option<Self>, ParquetError> {
        match group.get_column_reader(at)? {
            ColumnReader::DoubleColumnReader(_) => {
                Column::<f64>::whole::<DoubleType>(group, at).map(|column| column.list())
            }
            ColumnReader::FloatColumnReader(_) => {
                let column = Column::whole::<::parquet::data_type::FloatType>(group, at)?;
                let Column { values, levels, present, repeats } = column;
                let values = values.into_iter().map(f64::from).collect();
                Ok(Column { values, levels, present, repeats }.list())
            }
            _ => Ok(None),
        }
    }

    fn list(self) -> Option<Self> {
        (!self.repeats.is_empty() || self.values.is_empty()).then_some(self)
    }

    /// Adds its rows to the table, or says which row is not whole.
    fn append(self, table: &mut Table) -> Result<(), usize> {
        for (at, &repeat) in self.repeats.iter().enumerate() {
            let row = table.ends.len();
            if self.levels.get(at).is_some_and(|level| *level < self.present) {
                return Err(if repeat == 0 { row } else { row.saturating_sub(1) });
            }
            let end = table.logp.len() + at + 1;
            match table.ends.last_mut() {
                Some(last) if repeat > 0 => *last = end,
                _ => table.ends.push(end),
            }
        }
        table.logp.extend(self.values);
        Ok(())
    }
}

impl Column<ByteArray> {
    /// Nothing if it does not hold one text a row.
    fn texts(group: &dyn RowGroupReader, at: usize) -> Result<Option<Self>, ParquetError> {
        let ColumnReader::ByteArrayColumnReader(_) = group.get_column_reader(at)? else {
            return Ok(None);
        };
        let column = Column::whole::<::parquet::data_type::ByteArrayType>(group, at)?;
        Ok(column.repeats.is_empty().then_some(column))
    }
}

impl<V> Column<V> {
    fn whole<T: DataType<T = V>>(
        group: &dyn RowGroupReader,
        at: usize,
    ) -> Result<Self, ParquetError> {
        let other = || ParquetError::General("a column of another type".into());
        let mut reader = T::get_column_reader(group.get_column_reader(at)?).ok_or_else(other)?;
        let rows = group.metadata().num_rows() as usize;
        let present = group.metadata().column(at).column_descr().max_def_level();
        let (mut values, mut levels, mut repeats) = (Vec::new(), Vec::new(), Vec::new());
        let mut read = 0;
        while read < rows {
            let left = rows - read;
            let (more, _, _) =
                reader.read_records(left, Some(&mut levels), Some(&mut repeats), &mut values)?;
            if more == 0 {
                return Err(ParquetError::General(format!("{left} rows are missing")));
            }
            read += more;
        }
        Ok(Column { values, levels, present, repeats })
    }
}

/// Writes a file; the old one stays until the new one is complete.
pub fn write_weights(path: &Path, rows: &[Weights<'_>]) -> Result<(), Error> {
    let file = AtomicFile::create(path).map_err(Error::io(path))?;
    let broken = |e: ParquetError| Error::file(path, format!("cannot write Parquet: {e}"));
    let schema = Arc::new(parse_message_type(WEIGHTS).map_err(broken)?);
    // Weights are all different: a dictionary would only be given up again.
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .build();
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(broken)?;
    for rows in rows.chunks(GROUP) {
        let mut group = writer.next_row_group().map_err(broken)?;
        let mut write = || -> Result<(), ParquetError> {
            required(&mut group, rows.iter().map(|row| row.name))?;
            let successes: Vec<f64> = rows.iter().map(|row| row.log_success).collect();
            column::<DoubleType>(&mut group, &successes, None, None)?;
            let weights: Vec<f64> = rows.iter().flat_map(|row| row.weights).copied().collect();
            let present = vec![1; weights.len()];
            let repeats: Vec<i16> = rows
                .iter()
                .flat_map(|row| (0..row.weights.len()).map(|at| i16::from(at > 0)))
                .collect();
            column::<DoubleType>(&mut group, &weights, Some(&present), Some(&repeats))?;
            let infeasible: Vec<bool> = rows.iter().map(|row| row.infeasible).collect();
            column::<BoolType>(&mut group, &infeasible, None, None)
        };
        write().map_err(broken)?;
        group.close().map_err(broken)?;
    }
    writer.into_inner().map_err(broken)?.commit().map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use ::parquet::data_type::{ByteArrayType, FloatType};
    use ::parquet::file::reader::SerializedFileReader;

    use super::*;

    /// A file of lists as Arrow's writers lay them out: everything may be null.
    fn arrow(path: &Path, kind: &str, names: Option<&[&str]>, lists: &[&[Option<f64>]]) {
        let name = if names.is_some() { "optional binary name (UTF8);" } else { "" };
        let schema = format!(
            "message m {{ {name} optional group logp (LIST) {{ repeated group list {{ optional \
             {kind} element; }} }} }}"
        );
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let file = AtomicFile::create(path).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
        for (at, list) in lists.iter().enumerate() {
            let mut group = writer.next_row_group().unwrap();
            if let Some(names) = names {
                let name = [ByteArray::from(names[at])];
                column::<ByteArrayType>(&mut group, &name, Some(&[1]), None).unwrap();
            }
            let levels: Vec<i16> = match list.len() {
                0 => vec![1],
                _ => list.iter().map(|value| 2 + i16::from(value.is_some())).collect(),
            };
            let repeats: Vec<i16> = (0..levels.len()).map(|at| i16::from(at > 0)).collect();
            let values: Vec<f64> = list.iter().flatten().copied().collect();
            let singles: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            let (levels, repeats) = (Some(levels.as_slice()), Some(repeats.as_slice()));
            match kind {
                "double" => column::<DoubleType>(&mut group, &values, levels, repeats).unwrap(),
                _ => column::<FloatType>(&mut group, &singles, levels, repeats).unwrap(),
            }
            group.close().unwrap();
        }
        writer.into_inner().unwrap().commit().unwrap();
    }

    #[test]
    fn lists_of_numbers_are_read_with_and_without_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scores.parquet");
        let lists: [&[Option<f64>]; 2] = [&[Some(-0.5), Some(-2.0)], &[Some(-1.0)]];
        arrow(&path, "double", Some(&["a", "b"]), &lists);
        let table = read_scores(&path).unwrap();
        assert_eq!(table.traces(), [&[-0.5, -2.0][..], &[-1.0]]);
        assert_eq!(table.names, ["a", "b"]);
        arrow(&path, "float", None, &lists);
        let table = read_scores(&path).unwrap();
        assert_eq!(table.traces(), [&[-0.5, -2.0][..], &[-1.0]]);
        assert_eq!(table.names, ["1", "2"]);
    }

    #[test]
    fn what_is_missing_is_named_with_its_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scores.parquet");
        let whole: &[Option<f64>] = &[Some(-0.5)];
        for broken in [&[Some(-0.5), None][..], &[None], &[]] {
            arrow(&path, "double", None, &[whole, broken]);
            let error = read_scores(&path).unwrap_err().to_string();
            assert!(error.contains("record 2") && error.contains("missing"), "{error}");
        }
        write_weights(&path, &[]).unwrap();
        let error = read_scores(&path).unwrap_err().to_string();
        assert!(error.contains("no column logp") && error.contains("log_success"), "{error}");
    }

    #[test]
    fn weights_are_written_as_lists() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.parquet");
        let row =
            |name, weights, infeasible| Weights { name, log_success: -2.0, weights, infeasible };
        write_weights(&path, &[row("a", &[0.25, 0.5], false), row("b", &[1.0], true)]).unwrap();
        let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows: Vec<_> = file
            .get_row_iter(None)
            .unwrap()
            .map(|row| serde_json::Value::from(crate::parquet::object(&row.unwrap()).unwrap()))
            .collect();
        let row = |name: &str, weights: &[f64], infeasible: bool| {
            serde_json::json!({
                "name": name, "log_success": -2.0, "weights": weights, "infeasible": infeasible
            })
        };
        assert_eq!(rows, [row("a", &[0.25, 0.5], false), row("b", &[1.0], true)]);
    }
}
