//! The names of Lean's API that the server uses, and whether a toolchain has them.
//!
//! Lean's API changes with every release. The server is written in the newest names that it needs;
//! `lean/names.toml` says since when there are such, and `lean/Shims.lean` makes some of them from
//! what older Leans have instead.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::tool;

const NAMES: &str = include_str!("../lean/names.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    name: BTreeMap<String, Entry>,
    #[serde(rename = "also")]
    _also: Also,
    /// The same of what only the WebAssembly package's Lean is asked for.
    #[serde(rename = "package")]
    _package: Also,
}

/// What else the server uses: nobody looks for it, and a test holds the server to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Also {
    #[serde(rename = "names")]
    _names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The first release that has it.
    since: String,
    /// What a shim makes it from.
    before: Option<String>,
    /// Where Lean's authors said so.
    #[serde(rename = "change")]
    _change: Option<String>,
}

fn names() -> Result<BTreeMap<String, Entry>, String> {
    list().map(|list| list.name)
}

fn list() -> Result<List, String> {
    toml::from_str(NAMES).map_err(|e| format!("names.toml: {e}"))
}

/// A file with one line for every name, and what a complaint about each line would mean.
fn questions(names: &BTreeMap<String, Entry>) -> (String, Vec<&str>) {
    let mut text = String::from("import Lean\n");
    let mut asked = vec![""];
    for (name, entry) in names {
        for name in [Some(name), entry.before.as_ref()].into_iter().flatten() {
            text.push_str(&format!("#check @{name}\n"));
            asked.push(name);
        }
    }
    (text, asked)
}

/// The first name that is missing and that no shim makes, given the lines that Lean complains of.
fn first_missing<'a>(
    names: &'a BTreeMap<String, Entry>,
    asked: &[&str],
    said: &str,
) -> Option<(&'a str, &'a Entry)> {
    let line = |text: &str| text.split(':').find_map(|part| part.parse::<usize>().ok());
    let complaints = said.lines().filter(|text| text.contains("error")).filter_map(line);
    let missing: Vec<&str> = complaints.filter_map(|at| asked.get(at - 1).copied()).collect();
    let lost = |entry: &Entry| {
        entry.before.as_ref().is_none_or(|before| missing.contains(&before.as_str()))
    };
    names
        .iter()
        .find(|(name, entry)| missing.contains(&name.as_str()) && lost(entry))
        .map(|(name, entry)| (name.as_str(), entry))
}

/// Whether the toolchain of a project has all that the server needs.
pub(crate) fn check(project: &Path) -> Result<String, String> {
    let names = names()?;
    let (text, asked) = questions(&names);
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let file = folder.path().join("names.lean");
    std::fs::write(&file, text).map_err(|e| e.to_string())?;
    let out = Command::new("lake")
        .args(["env", "lean"])
        .arg(&file)
        .current_dir(project)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("`lake` was not found ({e}); {}", tool::LAKE_HINT))?;
    let said = String::from_utf8_lossy(&out.stdout);
    match first_missing(&names, &asked, &said) {
        Some((name, entry)) => Err(format!(
            "this Lean has no `{name}`, which the proof server needs and Lean {} and later have; \
             use such a toolchain",
            entry.since
        )),
        // What is left to complain of is made by shims.
        None if out.status.success() || said.contains("error") => {
            Ok(format!("{} names that the proof server uses are there", names.len()))
        }
        None => Err(tool::unusable("lean", project, &out).to_string()),
    }
}

/// A file that elaborates where every name is there.
#[doc(hidden)]
pub fn names_file() -> String {
    let shown = |name: &String| format!("#check @{name}\n");
    let names = names().unwrap_or_default();
    format!("import Lean\n{}", names.keys().map(shown).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::assets;
    use crate::environment::launch;
    use crate::launch::Launch;
    use crate::olean::{HEADER, Module};
    use crate::options::Host;

    #[test]
    fn the_server_uses_what_is_listed() {
        let [(_, server), _] = assets::native_programs();
        for name in names().unwrap().keys() {
            let last = name.rsplit('.').next().unwrap();
            assert!(server.contains(last), "{name}");
        }
    }

    /// Names of Lean's that stand in the compiled server, without what the compiler added to them
    /// (`_impl`), and without those that only begin others.
    fn in_the_compiled_server() -> BTreeSet<String> {
        let Launch::Wasm(prepared) = launch(&Host::default()).unwrap() else { panic!("no wasm") };
        let bytes = std::fs::read(prepared.server.join("lib").join("Server.olean")).unwrap();
        let places = (HEADER..bytes.len()).step_by(4);
        let module = Module::new(bytes);
        // After the header comes the address that pointers are relative to.
        let base = module.word(HEADER).unwrap();
        let mut names = BTreeSet::new();
        for at in places {
            let Ok(name) = module.name(base + at as u32) else { continue };
            let parts: Vec<&str> = name.split('.').take_while(|p| !p.starts_with('_')).collect();
            names.extend((parts.first() == Some(&"Lean")).then(|| parts.join(".")));
        }
        let all = names.clone();
        names.retain(|name| !all.iter().any(|other| other.starts_with(&format!("{name}."))));
        names
    }

    #[test]
    fn the_server_uses_nothing_that_is_not_listed() {
        let list = list().unwrap();
        let used = in_the_compiled_server();
        assert!(used.contains("Lean.Elab.Tactic.evalTactic"), "{used:?}");
        let others = [list._also._names, list._package._names].concat();
        let known = |name: &&String| list.name.contains_key(*name) || others.contains(name);
        let unlisted: Vec<&String> = used.iter().filter(|name| !known(name)).collect();
        assert!(unlisted.is_empty(), "names.toml says nothing of {unlisted:?}");
        let unused: Vec<_> = others.iter().filter(|name| !used.contains(*name)).collect();
        assert!(unused.is_empty(), "names.toml lists what is not used: {unused:?}");
    }

    #[test]
    fn the_first_name_that_is_missing_is_named_unless_a_shim_makes_it() {
        let names = names().unwrap();
        let (text, asked) = questions(&names);
        assert_eq!(text.lines().count(), asked.len());
        let place = |name: &str| asked.iter().position(|it| *it == name).unwrap() + 1;
        let complain = |name: &str| {
            format!("names.lean:{}:8: error: unknown identifier '{name}'\n", place(name))
        };
        let found = |said: &str| first_missing(&names, &asked, said).map(|(name, _)| name);
        assert_eq!(found(""), None);
        assert_eq!(found("names.lean:3:0: Array.replicate : Nat → Nat\n"), None);
        assert_eq!(found(&complain("String.ofList")), None, "a shim makes it");
        let both = complain("String.ofList") + &complain("String.mk");
        assert_eq!(found(&both), Some("String.ofList"));
        let other = complain("Lean.writeModule") + &complain("Lean.Meta.ppGoal");
        assert_eq!(found(&other), Some("Lean.Meta.ppGoal"));
    }
}
