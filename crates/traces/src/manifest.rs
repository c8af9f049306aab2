//! What a folder of traces holds and where it came from, so that a run can say exactly what it was
//! trained on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use catamount_base::{AtomicFile, Content};

use crate::{Error, shards};

/// The name of the manifest in a data folder.
pub const MANIFEST: &str = "manifest.json";

/// A data folder's `manifest.json`. It holds no times and no machine names: the same data gives the
/// same bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Where the traces come from: a database and its version, a benchmark, a library's commit.
    pub source: String,
    /// The version of the program that made the folder.
    pub version: String,
    /// The repositories that the theorems were traced in, where that is known.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub origins: BTreeSet<Origin>,
    /// The seed of the split, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How the folder was made, by setting; the hash of the source belongs here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Value>,
    /// The folder's files, by name.
    pub files: BTreeMap<String, FileEntry>,
}

/// A repository at a commit: where a benchmark's theorems can be found again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The repository's address.
    pub url: String,
    /// The commit.
    pub commit: String,
}

/// What a manifest says of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// How many traces it holds.
    pub traces: usize,
    /// How many steps they have together.
    pub steps: usize,
    /// Its size.
    pub bytes: u64,
    /// The BLAKE3 hash of its bytes, in hexadecimal.
    pub blake3: String,
}

impl Manifest {
    /// A manifest without files.
    pub fn new(source: impl Into<String>, seed: Option<u64>) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Manifest {
            source: source.into(),
            version,
            origins: BTreeSet::new(),
            seed,
            settings: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    /// Records a file of the folder that was just written with so many traces, of so many steps
    /// together.
    pub fn add(
        &mut self,
        folder: &Path,
        name: &str,
        traces: usize,
        steps: usize,
    ) -> Result<(), Error> {
        let (bytes, blake3) = hash_file(&folder.join(name))?;
        self.files.insert(name.to_owned(), FileEntry { traces, steps, bytes, blake3 });
        Ok(())
    }

    /// Writes the folder's manifest, whole or not at all.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(MANIFEST);
        let mut text = serde_json::to_vec_pretty(self).map_err(|e| Error::file(&path, e))?;
        text.push(b'\n');
        let mut file = AtomicFile::create(&path).map_err(Error::io(&path))?;
        file.write_all(&text).map_err(Error::io(&path))?;
        file.commit().map_err(Error::io(&path))
    }

    /// Reads a folder's manifest.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(MANIFEST);
        let text = fs::read(&path).map_err(Error::io(&path))?;
        serde_json::from_slice(&text).map_err(|e| Error::Line {
            path,
            line: e.line(),
            reason: format!("not a manifest: {e}"),
        })
    }

    /// Compares the folder with the manifest; the first file that is missing or has changed is the
    /// error.
    pub fn verify(&self, folder: &Path) -> Result<(), Error> {
        for (name, entry) in &self.files {
            entry.verify(&folder.join(name))?;
        }
        Ok(())
    }

    /// Compares a file, or those that a pattern stands for, with what a manifest beside it says of
    /// it. Where there is none, or it does not name the file, nobody knows what it should be.
    pub fn verify_file(path: &Path) -> Result<(), Error> {
        for path in shards(path)? {
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            // Others call files of their own so.
            let Ok(manifest) = Manifest::read(folder) else { continue };
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(entry) = manifest.files.get(name) {
                entry.verify(&path)?;
            }
        }
        Ok(())
    }
}

impl FileEntry {
    fn verify(&self, path: &Path) -> Result<(), Error> {
        let (bytes, blake3) = hash_file(path)?;
        if (bytes, &blake3) == (self.bytes, &self.blake3) {
            return Ok(());
        }
        let reason = format!(
            "has changed since {MANIFEST} beside it was written ({} bytes then, {bytes} now); make \
             or copy the folder again, or take the file as it is with --no-verify",
            self.bytes
        );
        Err(Error::file(path, reason))
    }
}

fn hash_file(path: &Path) -> Result<(u64, String), Error> {
    let bytes = fs::metadata(path).map_err(Error::io(path))?.len();
    Ok((bytes, Content::read(path).map_err(Error::io(path))?.to_string()))
}
