//! A folder, or a file, has one writer. The operating system holds the lock and lets it go when the
//! process ends, however it ends, so there are no stale locks; the lock file says who has it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process;

use serde::{Deserialize, Serialize};

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub process: u32,
    /// The machine it runs on.
    pub host: String,
}

/// Why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error(
        "{} is being written by {}; wait until it is done, or stop it",
        path.display(),
        holder.as_ref().map_or("another process".to_string(), |holder| {
            format!("process {} on {}", holder.process, holder.host)
        })
    )]
    Held {
        /// What is locked.
        path: PathBuf,
        /// Who has it, where the lock file says so.
        holder: Option<Holder>,
    },
    /// The file system said no.
    #[error("{}: cannot lock: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// The right to write, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// Whether nobody else has it.
    whole: bool,
}

impl Lock {
    /// Takes a folder, which is made if it is not there: its lock file is `.lock`.
    pub fn take(folder: &Path) -> Result<Self, LockError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| LockError::Io { path: folder.to_path_buf(), source })?;
        Lock::at(&folder.join(".lock"), folder)
    }

    /// Takes a part in a folder: others may have parts, too, but nobody takes the whole meanwhile.
    /// Who writes which file in it is for those who share it to settle.
    pub fn share(folder: &Path) -> Result<Self, LockError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| LockError::Io { path: folder.to_path_buf(), source })?;
        let path = folder.join(".lock");
        let mut file = open(&path)?;
        granted(file.try_lock_shared(), &mut file, &path, folder)?;
        Ok(Lock { file, whole: false })
    }

    /// Takes something by a lock file of any name; `what` is what messages call it.
    pub fn at(path: &Path, what: &Path) -> Result<Self, LockError> {
        let mut file = open(path)?;
        granted(file.try_lock(), &mut file, path, what)?;
        Lock::signed(file, path)
    }

    /// The same, after waiting for whoever has it: for what takes a moment.
    pub fn wait(path: &Path) -> Result<Self, LockError> {
        let file = open(path)?;
        file.lock().map_err(|source| LockError::Io { path: path.to_path_buf(), source })?;
        Lock::signed(file, path)
    }

    /// Says in the lock file who has it.
    fn signed(mut file: File, path: &Path) -> Result<Self, LockError> {
        let holder = Holder { process: process::id(), host: host() };
        let text = serde_json::to_string(&holder).expect("plain data");
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(|source| LockError::Io { path: path.to_path_buf(), source })?;
        Ok(Lock { file, whole: true })
    }
}

fn open(path: &Path) -> Result<File, LockError> {
    let mut options = OpenOptions::new();
    options
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)
        .map_err(|source| LockError::Io { path: path.to_path_buf(), source })
}

/// What the system said, with the name of whoever has the lock.
fn granted(
    said: Result<(), TryLockError>,
    file: &mut File,
    path: &Path,
    what: &Path,
) -> Result<(), LockError> {
    match said {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let holder = file.read_to_string(&mut text).ok();
            let holder = holder.and_then(|_| serde_json::from_str(&text).ok());
            Err(LockError::Held { path: what.to_path_buf(), holder })
        }
        Err(TryLockError::Error(source)) => Err(LockError::Io { path: path.to_path_buf(), source }),
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file stays: whoever removed it could remove it under the next holder.
        if self.whole {
            let _ = self.file.set_len(0);
        }
        // Closing it would let the lock go, too, but for a process that is being started at this
        // moment, which has the file until it becomes another program.
        let _ = self.file.unlock();
    }
}

/// This machine's name.
pub fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .map(|name| name.trim().to_string())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "this machine".to_string())
}
