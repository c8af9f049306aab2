//! Folders that appear whole or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::file::ENDING;

/// A folder being filled beside its final name; [`AtomicFolder::commit`] puts it in place, dropping
/// it leaves what was there alone. What a process that was killed left behind is removed by the
/// next that makes a folder in the same place.
#[derive(Debug)]
pub struct AtomicFolder {
    target: PathBuf,
    temporary: PathBuf,
    /// The lock of the unfinished folder.
    owned: Option<File>,
}

impl AtomicFolder {
    /// Starts a folder that will become, or replace, `target`; folders above it are made where they
    /// are missing.
    pub fn create(target: &Path) -> io::Result<Self> {
        let parent = parent(target);
        fs::create_dir_all(parent)?;
        remove_abandoned(parent);
        loop {
            let temporary = beside(target)?;
            fs::create_dir(&temporary)?;
            let owned = own(&temporary);
            // Before it was locked, another process may have found it without an owner.
            if temporary.exists() {
                return Ok(AtomicFolder { target: target.to_owned(), temporary, owned });
            }
        }
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
            let _owned = own(&self.target);
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
        drop(self.owned.take());
    }
}

/// The lock that says that a folder has an owner. Some systems have none for folders, and there
/// nothing is ever removed.
fn own(folder: &Path) -> Option<File> {
    File::open(folder).ok().filter(|folder| folder.lock().is_ok())
}

/// Removes unfinished folders that nobody fills any more: nobody holds their lock.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.')
            && name.ends_with(ENDING)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            // Should it fail, the next one tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
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
