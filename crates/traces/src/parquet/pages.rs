//! What a file's pages claim to unpack to, and to hold: read from their headers, and bounded before
//! any page is unpacked. A page of a few bytes may claim two gibibytes, or two thousand million
//! values, and be right.
//!
//! A page's header is a struct of Thrift's compact protocol; the Parquet library reads it for
//! itself alone.

use std::fs::File;
use std::path::Path;

use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::DataType;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};

use crate::Error;
use crate::input::{EXPANSION, SMALL};

/// What a value costs apart from its bytes, at least: its levels, and its place in a row.
const VALUE: u64 = 32;
/// How much is read for a header: most are short, some have long texts as statistics.
const HEADERS: [u64; 3] = [1 << 8, 1 << 13, 1 << 20];
/// Rows that are read at a time to be measured.
const BLOCK: usize = 1 << 10;

/// Refuses a file whose pages would take more memory than a file of its size can honestly need.
pub(super) fn check(path: &Path, file: &File) -> Result<SerializedFileReader<File>, Error> {
    let broken = |e: ParquetError| Error::file(path, format!("not a readable Parquet file: {e}"));
    let size = file.metadata().map_err(Error::io(path))?.len();
    let reader =
        SerializedFileReader::new(file.try_clone().map_err(Error::io(path))?).map_err(broken)?;
    let mut budget = Budget { left: size.saturating_mul(EXPANSION).max(SMALL) };
    let claimed = claims(&reader, file, size, &mut budget);
    let measured = claimed.and_then(|()| texts(&reader, &mut budget));
    match measured {
        Ok(()) => Ok(reader),
        Err(Trouble::TooMuch) => Err(Error::file(
            path,
            format!(
                "it unpacks to more than {EXPANSION} times its size; write it anew without \
                 compression and dictionaries if you trust it"
            ),
        )),
        Err(Trouble::Broken(error)) => Err(broken(error)),
    }
}

enum Trouble {
    TooMuch,
    Broken(ParquetError),
}

impl From<ParquetError> for Trouble {
    fn from(error: ParquetError) -> Self {
        Trouble::Broken(error)
    }
}

fn damaged(reason: &str) -> Trouble {
    Trouble::Broken(ParquetError::General(reason.to_owned()))
}

/// What may still be claimed.
struct Budget {
    left: u64,
}

impl Budget {
    fn take(&mut self, bytes: u64) -> Result<(), Trouble> {
        self.left = self.left.checked_sub(bytes).ok_or(Trouble::TooMuch)?;
        Ok(())
    }

    fn take_values(&mut self, count: u64) -> Result<(), Trouble> {
        self.take(count.checked_mul(VALUE).ok_or(Trouble::TooMuch)?)
    }
}

/// Takes what the headers of all pages claim, and the row groups.
fn claims(
    reader: &SerializedFileReader<File>,
    file: &File,
    size: u64,
    budget: &mut Budget,
) -> Result<(), Trouble> {
    for group in reader.metadata().row_groups() {
        let rows = u64::try_from(group.num_rows());
        budget.take_values(rows.map_err(|_| damaged("a negative number of rows"))?)?;
        for column in group.columns() {
            let (start, length) = column.byte_range();
            let end = start.checked_add(length).filter(|end| *end <= size);
            let end = end.ok_or_else(|| damaged("a column beyond the file's end"))?;
            let mut at = start;
            while at < end {
                let mut header = None;
                for most in HEADERS {
                    let bytes = file.get_bytes(at, most.min(end - at) as usize)?;
                    header = Page::read(&bytes);
                    if header.is_some() {
                        break;
                    }
                }
                let (page, read) = header.ok_or_else(|| damaged("no page's header"))?;
                budget.take(page.unpacked)?;
                budget.take_values(page.values)?;
                at = (at + read as u64)
                    .checked_add(page.packed)
                    .ok_or_else(|| damaged("a page beyond its column's end"))?;
            }
        }
    }
    Ok(())
}

/// Takes the bytes of all texts as they will be: a dictionary has each once, and rows may have it
/// any number of times.
fn texts(reader: &SerializedFileReader<File>, budget: &mut Budget) -> Result<(), Trouble> {
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index)?;
        for column in 0..group.num_columns() {
            match group.get_column_reader(column)? {
                ColumnReader::ByteArrayColumnReader(texts) => {
                    measure(texts, |text| text.len(), budget)?;
                }
                ColumnReader::FixedLenByteArrayColumnReader(texts) => {
                    measure(texts, |text| text.len(), budget)?;
                }
                // Numbers are no larger than their values were taken for.
                _ => {}
            }
        }
    }
    Ok(())
}

fn measure<T: DataType>(
    mut column: ColumnReaderImpl<T>,
    length: impl Fn(&T::T) -> usize,
    budget: &mut Budget,
) -> Result<(), Trouble> {
    loop {
        let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        let levels = (Some(&mut definitions), Some(&mut repetitions));
        let read = column.read_records(BLOCK, levels.0, levels.1, &mut values)?;
        if read == (0, 0, 0) {
            return Ok(());
        }
        budget.take(values.iter().map(|value| length(value) as u64).sum())?;
    }
}

/// What the header of a page claims.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    unpacked: u64,
    packed: u64,
    values: u64,
}

impl Page {
    /// From the bytes that begin with its header, and how many of them that is.
    fn read(bytes: &[u8]) -> Option<(Page, usize)> {
        let mut compact = Compact { bytes, at: 0 };
        let mut page = Page::default();
        let mut field = 0;
        while let Some(kind) = compact.field(&mut field)? {
            match (field, kind) {
                (2, I32) => page.unpacked = compact.size()?,
                (3, I32) => page.packed = compact.size()?,
                // Of data, of a dictionary, of data in the second version.
                (5 | 7 | 8, STRUCT) => {
                    let mut inner = 0;
                    while let Some(kind) = compact.field(&mut inner)? {
                        match (inner, kind) {
                            (1, I32) => page.values = compact.size()?,
                            _ => compact.skip(kind, 0)?,
                        }
                    }
                }
                _ => compact.skip(kind, 0)?,
            }
        }
        Some((page, compact.at))
    }
}

// Kinds of fields in Thrift's compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// How deep a header may nest.
const DEEPEST: usize = 16;

struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A number that is not negative, zigzag as all are.
    fn size(&mut self) -> Option<u64> {
        let value = self.varint()?;
        (value & 1 == 0).then_some(value >> 1)
    }

    /// The kind of the next field, whose number follows the last one's; none at the struct's end.
    fn field(&mut self, last: &mut u64) -> Option<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *last = match byte >> 4 {
            0 => self.size()?,
            delta => last.checked_add(u64::from(delta))?,
        };
        Some(Some(byte & 0x0f))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match kind {
            TRUE | FALSE => {}
            BYTE => drop(self.byte()?),
            I16 | I32 | I64 => drop(self.varint()?),
            DOUBLE => self.pass(8)?,
            BINARY => {
                let length = self.varint()?;
                self.pass(length)?;
            }
            LIST | SET => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    few => u64::from(few),
                };
                // Each has a byte at least, truth values too when they stand in a list.
                if count > (self.bytes.len() - self.at) as u64 {
                    return None;
                }
                for _ in 0..count {
                    match head & 0x0f {
                        TRUE | FALSE => self.pass(1)?,
                        kind => self.skip(kind, depth + 1)?,
                    }
                }
            }
            STRUCT => {
                let mut inner = 0;
                while let Some(kind) = self.field(&mut inner)? {
                    self.skip(kind, depth + 1)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        let at = self.at.checked_add(usize::try_from(bytes).ok()?)?;
        self.at = Some(at).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }
}
