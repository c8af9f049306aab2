//! Files that are either the old one or the complete new one, whatever happens in between.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;

/// A file being written beside its final name; [`AtomicFile::commit`] puts it in place, dropping it
/// leaves the old file alone.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    temporary: PathBuf,
    out: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Starts a file that will replace `path`.
    pub fn create(path: &Path) -> Result<Self, Error> {
        // Two writers in one process or in two must not share a temporary file.
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let name = path.file_name().ok_or_else(|| Error::file(path, "names no file to write"))?;
        let serial = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_file_name(format!(
            ".{}.{}.{serial}.tmp",
            name.to_string_lossy(),
            process::id()
        ));
        let file = File::create(&temporary).map_err(Error::io(path))?;
        Ok(AtomicFile {
            target: path.to_owned(),
            temporary,
            out: Some(BufWriter::with_capacity(1 << 16, file)),
        })
    }

    /// Flushes to the disk and gives the file its final name.
    pub fn commit(mut self) -> Result<(), Error> {
        let out = self.out.take().expect("taken only here and in drop");
        let file = out.into_inner().map_err(|e| Error::io(&self.target)(e.into_error()))?;
        file.sync_all().map_err(Error::io(&self.target))?;
        drop(file);
        fs::rename(&self.temporary, &self.target).map_err(Error::io(&self.target))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().expect("open until committed").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().expect("open until committed").flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // After a commit there is nothing left under the temporary name, and the error is expected.
        drop(self.out.take());
        let _ = fs::remove_file(&self.temporary);
    }
}
