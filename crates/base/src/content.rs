//! What a thing is, whatever it is called and wherever it lies: the BLAKE3 hash of its content.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Files from this size on are hashed once and remembered.
const LARGE: u64 = 16 << 20;

/// A file touched so recently may be touched again within one tick of the file system's clock.
const SETTLED: Duration = Duration::from_secs(2);

/// The BLAKE3 hash of some content, in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Content(String);

impl Content {
    /// Of bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Content(blake3::hash(bytes.as_ref()).to_hex().to_string())
    }

    /// Of several texts, in order; their borders count.
    pub fn of_texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for text in texts {
            let text = text.as_ref();
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        Content(hasher.finalize().to_hex().to_string())
    }

    /// Of a value, by its JSON: equal values have equal hashes.
    pub fn of_value(value: &impl Serialize) -> Self {
        // Through a `Value`, whose maps are sorted, so that the order of fields does not count.
        let value = serde_json::to_value(value).expect("plain data");
        Content::of(value.to_string())
    }

    /// Of a file. The hash of a large file is remembered, by size, time and inode, from one process
    /// to the next.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        if metadata.len() < LARGE {
            return Content::read(path);
        }
        let memory = Memory::of(path, &metadata)?;
        if let Some(known) = memory.recall() {
            return Ok(known);
        }
        let content = Content::read(path)?;
        memory.keep(&content, fs::metadata(path)?);
        Ok(content)
    }

    /// Of a file as it is now, read to its end whatever is remembered.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_mmap_rayon(path)?;
        Ok(Content(hasher.finalize().to_hex().to_string()))
    }

    /// Of some files of a folder, by their names and contents; names that are not there are left
    /// out.
    pub fn of_files<'a>(
        folder: &Path,
        names: impl IntoIterator<Item = &'a str>,
    ) -> io::Result<Self> {
        let mut parts = Vec::new();
        for name in names {
            let path = folder.join(name);
            if path.is_file() {
                parts.push(name.to_string());
                parts.push(Content::of_file(&path)?.0);
            }
        }
        Ok(Content::of_texts(parts))
    }

    /// The first 16 digits: enough to tell things apart, and to name a file by.
    pub fn short(&self) -> &str {
        self.0.get(..16).unwrap_or(&self.0)
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is remembered of a large file, and where.
struct Memory {
    path: PathBuf,
    seen: Seen,
}

#[derive(PartialEq, Serialize, Deserialize)]
struct Seen {
    bytes: u64,
    modified: u128,
    inode: u64,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    seen: Seen,
    content: Content,
}

impl Seen {
    fn of(metadata: &Metadata) -> io::Result<Self> {
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Ok(Seen { bytes: metadata.len(), modified: modified.as_nanos(), inode })
    }
}

impl Memory {
    fn of(path: &Path, metadata: &Metadata) -> io::Result<Self> {
        let name = Content::of(path.canonicalize()?.as_os_str().as_encoded_bytes());
        let folder = folder().unwrap_or_default();
        Ok(Memory { path: folder.join(name.short()), seen: Seen::of(metadata)? })
    }

    fn recall(&self) -> Option<Content> {
        let kept: Kept = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        (kept.seen == self.seen).then_some(kept.content)
    }

    fn keep(self, content: &Content, now: Metadata) {
        let settled = now
            .modified()
            .ok()
            .and_then(|modified| SystemTime::now().duration_since(modified).ok())
            .is_some_and(|age| age > SETTLED);
        let unchanged = Seen::of(&now).is_ok_and(|seen| seen == self.seen);
        if settled && unchanged && folder().is_some() {
            let kept = Kept { seen: self.seen, content: content.clone() };
            // Only a memory: without it the file is read again.
            let _ = serde_json::to_vec(&kept)
                .map_err(io::Error::other)
                .and_then(|text| crate::write(&self.path, text));
        }
    }
}

/// Where hashes are remembered; nowhere if the user has no cache folder.
fn folder() -> Option<PathBuf> {
    let given = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = given("XDG_CACHE_HOME").or_else(|| Some(given("HOME")?.join(".cache")))?;
    Some(cache.join("catamount").join("hashes"))
}
