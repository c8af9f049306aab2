//! Which algorithm computes which product, noted in a file of the user's cache. The first process
//! to meet a shape times the candidates; every later one follows its note, so that a run that is
//! resumed, or repeated on the same machine, rounds the same way.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use cudarc::cublaslt::sys::cublasLtMatmulAlgo_t;

use crate::compile::cache_folder;
use crate::device::Device;

/// Set to `off`, nothing is timed and no note is read: the library's guesses are taken.
const SWITCH: &str = "CATAMOUNT_TUNE";

pub(crate) struct Choices {
    /// One line a shape: its name and the algorithm's eight numbers. Without a place for it nothing
    /// is timed.
    path: Option<PathBuf>,
    known: HashMap<String, cublasLtMatmulAlgo_t>,
}

impl Choices {
    /// The notes for this kind of GPU and this version of the library.
    pub fn open(device: &Device, version: usize) -> Self {
        let off = std::env::var(SWITCH).is_ok_and(|s| s.eq_ignore_ascii_case("off"));
        let name: String =
            device.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = cache_folder("products")
            .filter(|_| !off)
            .map(|f| f.join(format!("{name}-{version}.txt")));
        let path = path.filter(|p| p.parent().is_some_and(|f| std::fs::create_dir_all(f).is_ok()));
        Self::at(path)
    }

    fn at(path: Option<PathBuf>) -> Self {
        let mut choices = Choices { path, known: HashMap::new() };
        choices.read();
        choices
    }

    /// Whether candidates should be timed.
    pub fn timed(&self) -> bool {
        self.path.is_some()
    }

    pub fn get(&self, key: &str) -> Option<cublasLtMatmulAlgo_t> {
        self.known.get(key).copied()
    }

    /// Notes a choice and returns the one to follow: another process may have noted its own a
    /// moment earlier.
    pub fn note(&mut self, key: &str, algorithm: cublasLtMatmulAlgo_t) -> cublasLtMatmulAlgo_t {
        if let Some(path) = &self.path {
            let numbers = algorithm.data.map(|n| format!("{n:016x}")).join(" ");
            // One short write at the end of the file, which other writers do not tear. A full disk
            // costs the next start its timing.
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let _ = file.and_then(|mut f| f.write_all(format!("{key} {numbers}\n").as_bytes()));
            self.read();
        }
        *self.known.entry(key.to_string()).or_insert(algorithm)
    }

    /// Reads the file; the first line of a shape counts, and what is already known stays.
    fn read(&mut self) {
        let text =
            self.path.as_ref().and_then(|p| std::fs::read_to_string(p).ok()).unwrap_or_default();
        for line in text.split_inclusive('\n').filter(|l| l.ends_with('\n')) {
            let mut words = line.split_whitespace();
            let Some(key) = words.next() else { continue };
            let numbers: Vec<u64> = words.map_while(|w| u64::from_str_radix(w, 16).ok()).collect();
            if let Ok(data) = <[u64; 8]>::try_from(numbers) {
                self.known.entry(key.to_string()).or_insert(cublasLtMatmulAlgo_t { data });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_note_is_followed_by_every_process() {
        let folder = std::env::temp_dir().join(format!("catamount-choices-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("gpu.txt");
        // A torn line and one of another version are passed over.
        std::fs::write(&path, "shape 1 2 3\n").unwrap();
        let algorithm = |n| cublasLtMatmulAlgo_t { data: [n; 8] };
        let (mut first, mut second) =
            (Choices::at(Some(path.clone())), Choices::at(Some(path.clone())));
        assert_eq!((first.get("shape"), first.timed()), (None, true));
        assert_eq!(first.note("shape", algorithm(7)).data, [7; 8]);
        assert_eq!(
            second.note("shape", algorithm(9)).data,
            [7; 8],
            "the first to note is followed"
        );
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"torn 0 0")
            .unwrap();
        let third = Choices::at(Some(path));
        assert_eq!(third.get("shape").map(|a| a.data), Some([7; 8]));
        assert_eq!(third.get("torn"), None);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!Choices::at(None).timed(), "without a place for notes nothing is timed");
    }
}
