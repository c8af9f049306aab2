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
    toml::from_str::<List>(NAMES).map(|list| list.name).map_err(|e| format!("names.toml: {e}"))
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
    use super::*;
    use crate::assets;

    #[test]
    fn the_server_uses_what_is_listed() {
        let [(_, server), _] = assets::native_programs();
        for name in names().unwrap().keys() {
            let last = name.rsplit('.').next().unwrap();
            assert!(server.contains(last), "{name}");
        }
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
