//! Files of traces as they lie on disks: plain or compressed with gzip, whole or in shards.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use catamount_base::AtomicFile;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::Error;

/// What a compressed file may unpack to, as a multiple of its size; text of traces stays far below.
pub(crate) const EXPANSION: u64 = 200;
/// What any compressed file may unpack to.
pub(crate) const SMALL: u64 = 64 << 20;

/// The bytes of a file, unpacked where it is compressed.
pub type Input = Box<dyn BufRead + Send>;

/// Opens a file to be read from its beginning.
pub(crate) fn open(path: &Path) -> Result<Input, Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    let size = file.metadata().map_err(Error::io(path))?.len();
    let mut plain = BufReader::with_capacity(1 << 16, file);
    let compressed = plain.fill_buf().map_err(Error::io(path))?.starts_with(b"\x1f\x8b");
    if !compressed {
        return Ok(Box::new(plain));
    }
    let left = size.saturating_mul(EXPANSION).max(SMALL);
    let unpacked = Bounded { inner: MultiGzDecoder::new(plain), left };
    Ok(Box::new(BufReader::with_capacity(1 << 16, unpacked)))
}

/// Writes a file, compressed if it is called so; the old one stays until the new one is complete.
pub(crate) fn write(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let mut file = AtomicFile::create(path).map_err(Error::io(path))?;
    let written = if is_compressed(path) {
        let mut packed = GzEncoder::new(&mut file, Compression::default());
        content(&mut packed).and_then(|()| packed.finish().map(drop))
    } else {
        content(&mut file)
    };
    written.map_err(Error::io(path))?;
    file.commit().map_err(Error::io(path))
}

/// Whether a file is called compressed.
pub(crate) fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// The extension that says what a file holds: that of `train.jsonl.gz` is `jsonl`.
pub(crate) fn extension(path: &Path) -> String {
    let lower = |path: &Path| {
        path.extension().and_then(|text| text.to_str()).unwrap_or_default().to_ascii_lowercase()
    };
    match lower(path).as_str() {
        "gz" => lower(Path::new(path.file_stem().unwrap_or_default())),
        plain => plain.to_owned(),
    }
}

/// An error once more is read than a file of this size can honestly hold.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::other(format!(
                "it unpacks to more than {EXPANSION} times its size; unpack it with gunzip if you \
                 trust it"
            ))
        })?;
        Ok(read)
    }
}

/// The files that a path stands for: itself, or, where its last part has `*` or `?` in it and no
/// file is called so, every file that matches, in the order of their names.
pub fn shards(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let pattern = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if path.exists() || !pattern.contains(['*', '?']) {
        return Ok(vec![path.to_owned()]);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io(folder))? {
        let name = entry.map_err(Error::io(folder))?.file_name();
        let path = path.with_file_name(&name);
        if name.to_str().is_some_and(|name| matches(pattern, name)) && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(Error::file(path, "matches no file"));
    }
    Ok(found)
}

/// Whether a name is what a pattern stands for: `*` for any text, `?` for any one character.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut place) = (0, 0);
    // Where to go on if what follows the last `*` does not fit: it then stands for one more.
    let mut back: Option<(usize, usize)> = None;
    while place < name.len() {
        match pattern.get(at) {
            Some('*') => {
                back = Some((at, place));
                at += 1;
            }
            Some(&expected) if expected == '?' || expected == name[place] => {
                at += 1;
                place += 1;
            }
            _ => match &mut back {
                None => return false,
                Some((star, from)) => {
                    *from += 1;
                    (at, place) = (*star + 1, *from);
                }
            },
        }
    }
    pattern[at..].iter().all(|&rest| rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("train-*.jsonl", "train-00001.jsonl", true),
            ("train-*.jsonl", "train-00001.jsonl.gz", false),
            ("train-?.jsonl", "train-1.jsonl", true),
            ("train-?.jsonl", "train-10.jsonl", false),
            ("*a*b", "aab", true),
            ("*a*b", "aba", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
