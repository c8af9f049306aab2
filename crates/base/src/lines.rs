//! JSON lines that survive an interrupted write. A crash leaves at most half a last line, without
//! its newline: that line is set aside. Anything else that does not parse is damage, and is named
//! by file and line.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What is wrong with a file of JSON lines.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The file system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A line that is not what it should be, other than a half-written last one.
    #[error("{}:{line}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What the parser said.
        reason: String,
    },
}

/// Reads values one line at a time. Blank lines are skipped.
pub struct Lines<T> {
    path: PathBuf,
    reader: BufReader<File>,
    line: usize,
    buffer: Vec<u8>,
    unfinished: Option<usize>,
    values: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Lines<T> {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, LinesError> {
        let file = File::open(path)
            .map_err(|source| LinesError::Io { path: path.to_path_buf(), source })?;
        Ok(Lines {
            path: path.to_path_buf(),
            reader: BufReader::with_capacity(1 << 16, file),
            line: 0,
            buffer: Vec::new(),
            unfinished: None,
            values: PhantomData,
        })
    }

    /// Reads a whole file.
    pub fn read(path: &Path) -> Result<Vec<T>, LinesError> {
        Lines::open(path)?.map(|item| item.map(|(_, value)| value)).collect()
    }

    /// The number of a half-written last line, once the end was reached.
    pub fn unfinished(&self) -> Option<usize> {
        self.unfinished
    }
}

impl<T: DeserializeOwned> Iterator for Lines<T> {
    type Item = Result<(usize, T), LinesError>;

    /// The next value and its line. Damage does not end the iteration: a reader may want to name
    /// all of it.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.buffer.clear();
            match self.reader.read_until(b'\n', &mut self.buffer) {
                Ok(0) => return None,
                Ok(_) => self.line += 1,
                Err(source) => {
                    return Some(Err(LinesError::Io { path: self.path.clone(), source }));
                }
            }
            if self.buffer.trim_ascii().is_empty() {
                continue;
            }
            return match serde_json::from_slice(&self.buffer) {
                Ok(value) => Some(Ok((self.line, value))),
                Err(_) if !self.buffer.ends_with(b"\n") => {
                    self.unfinished = Some(self.line);
                    None
                }
                Err(error) => Some(Err(LinesError::Damaged {
                    path: self.path.clone(),
                    line: self.line,
                    reason: reason(&error),
                })),
            };
        }
    }
}

/// The parser's message without the line that it counts inside one line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// Appends values to a file, one write a line: a reader, or a crash, sees whole lines or a single
/// broken last one.
#[derive(Debug)]
pub struct Appender {
    file: File,
}

impl Appender {
    /// Opens a file, or starts it. What a crash left of a last line is cut off, or the next value
    /// would be glued to it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let length = file.metadata()?.len();
        let whole = whole_lines(&mut file, length)?;
        if whole < length {
            let mut last = Vec::new();
            file.seek(SeekFrom::Start(whole))?;
            (&mut file).take(length - whole).read_to_end(&mut last)?;
            // A complete value that only lacks its newline was put there by somebody's editor.
            if serde_json::from_slice::<serde::de::IgnoredAny>(&last).is_ok() {
                file.write_all(b"\n")?;
            } else {
                file.set_len(whole)?;
            }
        }
        Ok(Appender { file })
    }

    /// Appends one value.
    pub fn append(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

/// Bytes up to and including the last newline.
fn whole_lines(file: &mut File, length: u64) -> io::Result<u64> {
    const BLOCK: u64 = 1 << 16;
    let mut end = length;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        file.take(end - start).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}
