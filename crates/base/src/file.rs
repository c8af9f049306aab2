//! Files that are either the old one or the complete new one, whatever happens in between.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file being written beside its final name; [`AtomicFile::commit`] puts it in place, dropping it
/// leaves the old file alone. What a process that was killed left behind is removed by the next
/// that writes the same file.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    temporary: PathBuf,
    /// Those of any file that this user makes here.
    permissions: fs::Permissions,
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
        let prefix = format!(".{}.", name.to_string_lossy());
        remove_abandoned(path, &prefix);
        loop {
            let serial = COUNTER.fetch_add(1, Ordering::Relaxed);
            let temporary =
                path.with_file_name(format!("{prefix}{}.{serial}{ENDING}", process::id()));
            let file = File::create(&temporary)?;
            // The lock says that the file has an owner; some file systems have none, and there
            // nothing is ever removed. Before it was taken, another process may have found the file
            // without one, and removed it.
            let _ = file.lock();
            if temporary.exists() {
                return Ok(AtomicFile {
                    target: path.to_owned(),
                    temporary,
                    permissions: file.metadata()?.permissions(),
                    out: Some(BufWriter::with_capacity(1 << 16, file)),
                });
            }
        }
    }

    /// Where the bytes are until they are committed, for writers that want a path.
    pub fn unfinished(&self) -> &Path {
        &self.temporary
    }

    /// Flushes to the disk and gives the file its final name.
    pub fn commit(mut self) -> io::Result<()> {
        // Held until the file has its final name, and with it the lock.
        let _owned = match self.out.take() {
            Some(out) => Some(out.into_inner().map_err(io::IntoInnerError::into_error)?),
            None => None,
        };
        // By its name: a writer that was given the path may have made the file anew, and as one
        // that nobody else can read.
        let file = File::open(&self.temporary)?;
        file.set_permissions(self.permissions.clone())?;
        file.sync_all()?;
        fs::rename(&self.temporary, &self.target)
    }

    fn out(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.out.as_mut().ok_or_else(|| io::Error::other("the file is committed"))
    }
}

/// How the names of unfinished files end.
pub(crate) const ENDING: &str = ".unfinished";

/// Removes unfinished files of this target that nobody writes any more: nobody holds their lock.
fn remove_abandoned(target: &Path, prefix: &str) {
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let unfinished = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(ENDING));
        let numbers = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if unfinished.is_some_and(numbers)
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            // Should it fail, the next writer tries again.
            let _ = fs::remove_file(entry.path());
        }
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
