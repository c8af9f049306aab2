//! Files that are either the old one or the complete new one, whatever happens in between.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file being written beside its final name; [`AtomicFile::commit`] puts it in place, dropping it
/// leaves the old file alone.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    temporary: PathBuf,
    out: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Starts a file that will replace `path`; its folder must exist.
    pub fn create(path: &Path) -> io::Result<Self> {
        // Two writers in one process or in two must not share a temporary file.
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let name = path.file_name().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the path names no file to write")
        })?;
        let serial = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_file_name(format!(
            ".{}.{}.{serial}.unfinished",
            name.to_string_lossy(),
            process::id()
        ));
        let file = File::create(&temporary)?;
        Ok(AtomicFile {
            target: path.to_owned(),
            temporary,
            out: Some(BufWriter::with_capacity(1 << 16, file)),
        })
    }

    /// Where the bytes are until they are committed, for writers that want a path.
    pub fn unfinished(&self) -> &Path {
        &self.temporary
    }

    /// Flushes to the disk and gives the file its final name.
    pub fn commit(mut self) -> io::Result<()> {
        if let Some(out) = self.out.take() {
            drop(out.into_inner().map_err(io::IntoInnerError::into_error)?);
        }
        // By its name: a writer that was given the path may have made the file anew.
        File::open(&self.temporary)?.sync_all()?;
        fs::rename(&self.temporary, &self.target)
    }

    fn out(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.out.as_mut().ok_or_else(|| io::Error::other("the file is committed"))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out()?.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // After a commit there is nothing left under the temporary name, and the error is expected.
        drop(self.out.take());
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Writes a whole file or nothing; the folder is made where it is missing.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes.as_ref())?;
    file.commit()
}
