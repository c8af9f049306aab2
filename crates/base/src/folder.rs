//! Folders that appear whole or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::file::ENDING;

/// A folder being filled beside its final name; [`AtomicFolder::commit`] puts it in place, dropping
/// it leaves what was there alone.
#[derive(Debug)]
pub struct AtomicFolder {
    target: PathBuf,
    temporary: PathBuf,
}

impl AtomicFolder {
    /// Starts a folder that will become, or replace, `target`; folders above it are made where they
    /// are missing.
    pub fn create(target: &Path) -> io::Result<Self> {
        let parent = parent(target);
        fs::create_dir_all(parent)?;
        let temporary = beside(target)?;
        fs::create_dir(&temporary)?;
        Ok(AtomicFolder { target: target.to_owned(), temporary })
    }

    /// Removes what killed processes left unfinished in a folder that nobody else writes to.
    pub fn sweep(folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if name.starts_with('.') && name.ends_with(ENDING) {
                match entry.file_type()?.is_dir() {
                    true => fs::remove_dir_all(&path)?,
                    false => fs::remove_file(&path)?,
                }
            }
        }
        Ok(())
    }

    /// Where it is until it is committed.
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Gives the folder its final name. One that was there is gone only then; should the last
    /// moment fail, it is back.
    pub fn commit(self) -> io::Result<()> {
        sync(&self.temporary)?;
        if self.target.exists() {
            let aside = beside(&self.target)?;
            fs::rename(&self.target, &aside)?;
            if let Err(error) = fs::rename(&self.temporary, &self.target) {
                fs::rename(&aside, &self.target)?;
                return Err(error);
            }
            fs::remove_dir_all(&aside)?;
        } else {
            fs::rename(&self.temporary, &self.target)?;
        }
        sync(parent(&self.target))
    }

    /// Gives the folder its final name unless somebody else was first: of what is named by its
    /// content one is as good as another, and readers of the first are not disturbed.
    pub fn offer(self) -> io::Result<()> {
        sync(&self.temporary)?;
        match fs::rename(&self.temporary, &self.target) {
            Ok(()) => sync(parent(&self.target)),
            Err(_) if self.target.is_dir() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for AtomicFolder {
    fn drop(&mut self) {
        // Committed, it has another name and there is nothing to remove.
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

/// Waits until a file, or a folder's list of names, is on the disk.
pub fn sync(path: &Path) -> io::Result<()> {
    if cfg!(unix) || path.is_file() {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}

/// A name beside a target that no other process, and nobody else in this one, uses.
fn beside(target: &Path) -> io::Result<PathBuf> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the path names no folder to write")
    })?;
    let (name, serial) = (name.to_string_lossy(), SERIAL.fetch_add(1, Ordering::Relaxed));
    Ok(parent(target).join(format!(".{name}.{}.{serial}{ENDING}", process::id())))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
