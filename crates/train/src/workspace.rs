//! Folders that appear whole or not at all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

const UNFINISHED: &str = ".unfinished";

/// A folder being written beside its final name; dropped unpublished, it is removed.
pub(crate) struct Workspace(PathBuf);

impl Workspace {
    /// Starts the folder that will become `target`.
    pub fn beside(target: &Path) -> Result<Self> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let parent = parent(target);
        fs::create_dir_all(parent).map_err(Error::file(parent))?;
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!(".{name}.{}.{serial}{UNFINISHED}", process::id()));
        fs::create_dir(&path).map_err(Error::file(&path))?;
        Ok(Workspace(path))
    }

    /// Clears away what a killed process left unfinished in a folder.
    pub fn clear(folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder).map_err(Error::file(folder))? {
            let path = entry.map_err(Error::file(folder))?.path();
            if path.file_name().is_some_and(|n| n.to_string_lossy().ends_with(UNFINISHED)) {
                fs::remove_dir_all(&path).map_err(Error::file(&path))?;
            }
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives the folder its final name.
    pub fn publish(self, target: &Path) -> Result<()> {
        fs::rename(&self.0, target).map_err(Error::file(target))?;
        sync(parent(target))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Published, it has another name and there is nothing to remove.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Waits until a file or a folder's list of names is on the disk.
pub(crate) fn sync(path: &Path) -> Result<()> {
    if cfg!(unix) || path.is_file() {
        File::open(path).and_then(|f| f.sync_all()).map_err(Error::file(path))?;
    }
    Ok(())
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
