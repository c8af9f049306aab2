//! What files were when they were written, so that damage is found before it is used.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Content;

/// Size and content of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Its size.
    pub bytes: u64,
    /// The hash of its bytes.
    pub blake3: Content,
}

/// What some files of a folder were, by their paths in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Checksums(pub BTreeMap<PathBuf, Sum>);

/// A file that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// It is not there.
    #[error("{}: missing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It has other bytes.
    #[error("{}: changed since it was written ({was} bytes then, {is} now)", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Its size then.
        was: u64,
        /// Its size now.
        is: u64,
    },
}

impl Checksums {
    /// Of files, or of everything below folders, given by their paths in `folder`. What is not
    /// there is left out; names that begin with a dot (locks, unfinished files) are, too.
    pub fn of<P: AsRef<Path>>(
        folder: &Path,
        paths: impl IntoIterator<Item = P>,
    ) -> io::Result<Self> {
        let mut sums = Checksums::default();
        for path in paths {
            sums.add(folder, path.as_ref())?;
        }
        Ok(sums)
    }

    fn add(&mut self, folder: &Path, path: &Path) -> io::Result<()> {
        let whole = folder.join(path);
        if whole.is_dir() {
            for entry in std::fs::read_dir(&whole)? {
                let name = entry?.file_name();
                if !name.as_encoded_bytes().starts_with(b".") {
                    self.add(folder, &path.join(name))?;
                }
            }
        } else if whole.is_file() {
            let bytes = whole.metadata()?.len();
            self.0.insert(path.to_path_buf(), Sum { bytes, blake3: Content::of_file(&whole)? });
        }
        Ok(())
    }

    /// Compares the files with what they were. `thorough` reads every byte; without, the hashes of
    /// large files may be remembered ones.
    pub fn verify(&self, folder: &Path, thorough: bool) -> Vec<Damage> {
        let damage = |(path, sum): (&PathBuf, &Sum)| match is_inside(path) {
            true => damage(&folder.join(path), sum, thorough),
            false => {
                let reason = "it is not a file of the folder".into();
                Some(Damage::Unreadable { path: path.clone(), reason })
            }
        };
        self.0.iter().filter_map(damage).collect()
    }
}

/// Whether a path stays in the folder that it is relative to, whoever wrote it down.
pub fn is_inside(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn damage(path: &Path, sum: &Sum, thorough: bool) -> Option<Damage> {
    let path = path.to_path_buf();
    let is = match path.metadata() {
        // A pipe or a device would be read for ever.
        Ok(metadata) if !metadata.is_file() => {
            return Some(Damage::Unreadable { path, reason: "it is not a file".into() });
        }
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some(Damage::Missing { path });
        }
        Err(error) => return Some(Damage::Unreadable { path, reason: error.to_string() }),
    };
    if is != sum.bytes {
        return Some(Damage::Changed { path, was: sum.bytes, is });
    }
    let content = if thorough { Content::read(&path) } else { Content::of_file(&path) };
    match content {
        Ok(content) if content == sum.blake3 => None,
        Ok(_) => Some(Damage::Changed { path, was: sum.bytes, is }),
        Err(error) => Some(Damage::Unreadable { path, reason: error.to_string() }),
    }
}
