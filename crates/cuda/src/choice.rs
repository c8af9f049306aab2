//! Which algorithm computes which product, noted in a file of the user's cache. The first process
//! to meet a shape times the candidates; every later one follows its note, so that a run that is
//! resumed, or repeated on the same machine, rounds the same way.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use cudarc::cublaslt::sys::cublasLtMatmulAlgo_t;

use crate::compile::cache_folder;
use crate::device::Device;
use crate::few::Cut;

/// Set to `off`, nothing is timed and no note is read: the library's guesses are taken, and one cut
/// of ours where few rows in fp8 allow it.
const SWITCH: &str = "CATAMOUNT_TUNE";

/// The word before a cut in a note.
const OURS: &str = "ours";

/// What computes a product.
#[derive(Clone, Copy)]
pub(crate) enum Algorithm {
    /// One of the library's.
    Library(cublasLtMatmulAlgo_t),
    /// A kernel of ours.
    Ours(Cut),
}

impl Algorithm {
    fn note(&self) -> String {
        match self {
            Algorithm::Library(library) => library.data.map(|n| format!("{n:016x}")).join(" "),
            Algorithm::Ours(cut) => format!("{OURS} {}", cut.name()),
        }
    }

    fn parse(note: &[&str]) -> Option<Self> {
        if let [OURS, cut] = note {
            return Some(Algorithm::Ours(Cut::parse(cut)?));
        }
        let number = |word: &&str| u64::from_str_radix(word, 16).ok();
        let numbers: Vec<u64> = note.iter().map_while(number).collect();
        let data = numbers.try_into().ok()?;
        Some(Algorithm::Library(cublasLtMatmulAlgo_t { data }))
    }
}

pub(crate) struct Choices {
    /// One line a shape: its name, and the library's algorithm as eight numbers or what is ours.
    /// Without a place for it nothing is timed.
    path: Option<PathBuf>,
    known: HashMap<String, Algorithm>,
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

    pub fn get(&self, key: &str) -> Option<Algorithm> {
        self.known.get(key).copied()
    }

    /// Notes a choice and returns the one to follow: another process may have noted its own a
    /// moment earlier.
    pub fn note(&mut self, key: &str, algorithm: Algorithm) -> Algorithm {
        if let Some(path) = &self.path {
            let note = algorithm.note();
            // One short write at the end of the file, which other writers do not tear. A full disk
            // costs the next start its timing.
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let _ = file.and_then(|mut f| f.write_all(format!("{key} {note}\n").as_bytes()));
            self.read();
        }
        *self.known.entry(key.to_string()).or_insert(algorithm)
    }

    /// Reads the file; the first line of a shape counts, and what is already known stays.
    fn read(&mut self) {
        let text =
            self.path.as_ref().and_then(|p| std::fs::read_to_string(p).ok()).unwrap_or_default();
        for line in text.split_inclusive('\n').filter(|l| l.ends_with('\n')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [key, note @ ..] = &words[..]
                && let Some(algorithm) = Algorithm::parse(note)
            {
                self.known.entry((*key).to_string()).or_insert(algorithm);
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
        // A torn line and those of other versions are passed over.
        std::fs::write(&path, "shape 1 2 3\nshape ours of-another-time\n").unwrap();
        let library = |n| Algorithm::Library(cublasLtMatmulAlgo_t { data: [n; 8] });
        let ours = Algorithm::Ours(Cut::any(12));
        let noted = |choices: &Choices, key| choices.get(key).map(|a| a.note());
        let (mut first, mut second) =
            (Choices::at(Some(path.clone())), Choices::at(Some(path.clone())));
        assert_eq!((noted(&first, "shape"), first.timed()), (None, true));
        assert_eq!(first.note("shape", library(7)).note(), library(7).note());
        let followed = second.note("shape", library(9));
        assert_eq!(followed.note(), library(7).note(), "the first to note is followed");
        assert_eq!(first.note("few", ours).note(), ours.note());
        assert_eq!(second.note("few", library(9)).note(), ours.note());
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"torn 0 0")
            .unwrap();
        let third = Choices::at(Some(path));
        assert_eq!(noted(&third, "shape"), Some(library(7).note()));
        assert_eq!(noted(&third, "few"), Some(ours.note()));
        assert_eq!(noted(&third, "torn"), None);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!Choices::at(None).timed(), "without a place for notes nothing is timed");
    }
}
