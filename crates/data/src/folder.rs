//! The files of a data folder, each appearing whole or not at all, the manifest last.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use catamount_base::{AtomicFile, Lock};
use catamount_traces::{Manifest, Trace, jsonl};

use crate::error::{Error, Result};

/// The parts, in the order in which they are counted everywhere.
pub(crate) const PARTS: [&str; 3] = ["train", "valid", "test"];

/// A folder being written, by nobody else meanwhile: the parts of two splits would leak into each
/// other.
pub(crate) struct Folder {
    path: PathBuf,
    lock: Lock,
    files: Vec<AtomicFile>,
    counts: [usize; 3],
    steps: [usize; 3],
}

impl Folder {
    pub fn create(path: &Path) -> Result<Self> {
        let lock = Lock::take(path)?;
        let create = |part: &str| {
            let path = file(path, part);
            AtomicFile::create(&path).map_err(Error::io(&path))
        };
        let files = PARTS.into_iter().map(create).collect::<Result<_>>()?;
        Ok(Folder { path: path.to_path_buf(), lock, files, counts: [0; 3], steps: [0; 3] })
    }

    /// Adds a trace to one of the [`PARTS`].
    pub fn write(&mut self, part: usize, trace: &Trace) -> Result<()> {
        jsonl::write_to(&mut self.files[part], [trace])
            .map_err(Error::io(&file(&self.path, PARTS[part])))?;
        self.counts[part] += 1;
        self.steps[part] += trace.steps.len();
        Ok(())
    }

    /// Puts the files in place without the traces that were refused, and then the manifest. Until
    /// that stands, the folder does not count as made. One without any trace is refused.
    pub fn finish(self, refused: &HashSet<&str>, mut manifest: Manifest) -> Result<[usize; 3]> {
        let Folder { path, lock, files, mut counts, mut steps } = self;
        if counts == [0; 3] {
            return Err(Error::Nothing { folder: path });
        }
        for (part, atomic) in files.into_iter().enumerate() {
            atomic.commit().map_err(Error::io(&file(&path, PARTS[part])))?;
            if !refused.is_empty() {
                let kept = keep(&file(&path, PARTS[part]), refused)?;
                (counts[part], steps[part]) = kept;
            }
            let name = format!("{}.jsonl", PARTS[part]);
            manifest.add(&path, &name, counts[part], steps[part])?;
        }
        manifest.write(&path)?;
        drop(lock);
        Ok(counts)
    }
}

fn file(folder: &Path, part: &str) -> PathBuf {
    folder.join(format!("{part}.jsonl"))
}

/// Rewrites a file without the refused theorems; what is left of it, in traces and steps.
fn keep(path: &Path, refused: &HashSet<&str>) -> Result<(usize, usize)> {
    let (mut traces, mut steps) = (0, 0);
    let mut out = AtomicFile::create(path).map_err(Error::io(path))?;
    for trace in jsonl::Reader::open(path)? {
        let trace = trace?;
        if !refused.contains(trace.theorem.name.as_str()) {
            jsonl::write_to(&mut out, [&trace]).map_err(Error::io(path))?;
            traces += 1;
            steps += trace.steps.len();
        }
    }
    out.commit().map_err(Error::io(path))?;
    Ok((traces, steps))
}

#[cfg(test)]
mod tests {
    use catamount_traces::{Step, Theorem};

    use super::*;

    /// Two splits of one library that are written at once would put theorems that one trains on
    /// where the other holds them out, each file sound by itself.
    #[test]
    fn a_folder_has_one_writer() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Folder::create(folder.path()).expect("created");
        let Err(error) = Folder::create(folder.path()) else { panic!("two writers") };
        assert!(error.to_string().contains("is being written by process"), "{error}");
        drop(first);
        Folder::create(folder.path()).expect("free again");
    }

    #[test]
    fn what_the_verifier_refuses_is_not_written_and_not_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = |name: &str, steps: usize| Trace {
            theorem: Theorem { name: name.into(), ..Theorem::default() },
            steps: vec![Step { state: "x".into(), tactic: "y".into(), ..Step::default() }; steps],
        };
        let mut made = Folder::create(folder.path()).expect("created");
        for (part, name, steps) in [(0, "a", 1), (0, "b", 2), (2, "c", 3)] {
            made.write(part, &trace(name, steps)).expect("written");
        }
        let refused = HashSet::from(["b"]);
        let counts = made.finish(&refused, Manifest::new("test", None)).expect("finished");
        assert_eq!(counts, [1, 0, 1]);
        let manifest = Manifest::read(folder.path()).expect("a manifest");
        manifest.verify(folder.path()).expect("what it says");
        let train = &manifest.files["train.jsonl"];
        assert_eq!((train.traces, train.steps), (1, 1));
        let left = jsonl::read(&folder.path().join("train.jsonl")).expect("traces");
        assert_eq!(left, [trace("a", 1)]);
    }
}
