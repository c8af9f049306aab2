//! Which commits the sources at hand are at: a theorem that was traced at another one may be
//! another theorem, or none.

use std::path::{Path, PathBuf};

use catamount_traces::Theorem;
use serde::Deserialize;

use crate::corpus::git;
use crate::options::{Host, Options};

/// How much of a commit must be given for it to be compared.
const LEAST_DIGITS: usize = 7;

/// The repositories that theorems' files come from, as far as git or Lake know.
#[derive(Debug, Default)]
pub(crate) struct Checkouts(Vec<Checkout>);

#[derive(Debug)]
pub(crate) struct Checkout {
    folder: PathBuf,
    url: String,
    commit: String,
}

impl Checkouts {
    /// Those of an environment: its library and what that depends on, or a Lake project and its
    /// packages.
    pub fn of(options: &Options) -> Checkouts {
        let mut found: Vec<Checkout> = options
            .root
            .iter()
            .chain(&options.libraries)
            .filter_map(|folder| Checkout::at(folder))
            .collect();
        if let Host::Native { project } = &options.host {
            found.extend(Checkout::at(project));
            found.extend(packages(project));
        }
        Checkouts(found)
    }

    /// Why a theorem should not be looked for here, if it was traced at another commit, or if its
    /// file is nowhere here and its repository neither.
    pub fn disagreement(&self, theorem: &Theorem, roots: &[PathBuf]) -> Option<String> {
        let (url, commit) = (theorem.url.as_deref()?, theorem.commit.as_deref()?);
        if self.0.iter().any(|it| same_commit(&it.commit, commit)) {
            return None;
        }
        let Some(here) = self.0.iter().find(|it| repository(&it.url) == repository(url)) else {
            let file = theorem.file.as_deref()?;
            let known: Vec<&str> = self.0.iter().map(|it| it.url.as_str()).collect();
            let elsewhere = !known.is_empty() && !roots.iter().any(|r| r.join(file).is_file());
            return elsewhere.then(|| {
                let (name, known) = (&theorem.name, known.join(", "));
                format!(
                    "{name} is a theorem of {url}, and searched are {known}; name its corpus as \
                     well"
                )
            });
        };
        Some(format!(
            "{} was traced at commit {commit} of {url}, and {} is at commit {}; check out the \
             former, or trace the library as it is here",
            theorem.name,
            here.folder.display(),
            here.commit
        ))
    }
}

impl Checkout {
    /// What git says of a folder; nothing where it is no checkout.
    fn at(folder: &Path) -> Option<Checkout> {
        let commit = git(folder, &["rev-parse", "HEAD"]).ok()?;
        let url = git(folder, &["remote", "get-url", "origin"]).ok()?;
        Some(Checkout { folder: folder.to_path_buf(), url, commit })
    }
}

/// Lake's record of what it has fetched.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default = "usual_folder")]
    packages_dir: PathBuf,
    #[serde(default)]
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    rev: String,
}

fn usual_folder() -> PathBuf {
    [".lake", "packages"].iter().collect()
}

pub(crate) fn packages(project: &Path) -> Vec<Checkout> {
    // A project without dependencies has no manifest, and a manifest that cannot be read is Lake's
    // to complain of.
    let text = std::fs::read(project.join("lake-manifest.json")).unwrap_or_default();
    let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) else { return Vec::new() };
    let checkout = |package: Package| {
        let folder = project.join(&manifest.packages_dir).join(&package.name);
        // What is there counts, not what Lake once put there.
        let commit = match folder.join(".git").exists() {
            true => git(&folder, &["rev-parse", "HEAD"]).unwrap_or(package.rev),
            false => package.rev,
        };
        let known = !package.url.is_empty() && !commit.is_empty();
        known.then_some(Checkout { folder, url: package.url, commit })
    };
    manifest.packages.into_iter().filter_map(checkout).collect()
}

fn same_commit(one: &str, other: &str) -> bool {
    let long = one.len().min(other.len()) >= LEAST_DIGITS;
    long && (one.starts_with(other) || other.starts_with(one))
}

/// A repository's address without what the same one is written with or without.
fn repository(url: &str) -> String {
    let url = url.trim().trim_end_matches('/').trim_end_matches(".git").to_lowercase();
    let plain = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let plain = plain.split_once('@').map_or(plain, |(_, rest)| rest);
    plain.replace(':', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://github.com/leanprover-community/mathlib4";
    const TRACED: &str = "29dcec074de168ac2bf835a77ef68bbe069194c5";
    const FETCHED: &str = "8f9d9cff6bd728b17a24e163c9402775d9e6a365";

    fn theorem(commit: &str, url: &str) -> Theorem {
        Theorem {
            name: "Nat.foo".into(),
            url: Some(url.into()),
            commit: Some(commit.into()),
            ..Theorem::default()
        }
    }

    #[test]
    fn a_benchmark_of_another_commit_is_refused_and_both_are_named() {
        let project = tempfile::tempdir().unwrap();
        let manifest = format!(
            r#"{{"version": "1.1.0", "packagesDir": ".lake/packages", "packages": [
                {{"type": "git", "name": "mathlib", "url": "{URL}.git", "rev": "{FETCHED}"}},
                {{"type": "path", "name": "near", "dir": "../near"}}]}}"#
        );
        std::fs::write(project.path().join("lake-manifest.json"), manifest).unwrap();
        let host = Host::Native { project: project.path().into() };
        let checkouts = Checkouts::of(&Options { host, ..Options::default() });
        let said = checkouts.disagreement(&theorem(TRACED, URL), &[]).unwrap();
        assert!(said.contains(TRACED) && said.contains(FETCHED) && said.contains("mathlib"));
        assert_eq!(checkouts.disagreement(&theorem(FETCHED, URL), &[]), None);
        assert_eq!(checkouts.disagreement(&theorem(&FETCHED[..8], URL), &[]), None);
        let ours = "git@github.com:leanprover-community/Mathlib4";
        assert!(
            checkouts.disagreement(&theorem(TRACED, ours), &[]).is_some(),
            "the same repository"
        );
        assert_eq!(
            checkouts.disagreement(&theorem(TRACED, "https://example.org/other"), &[]),
            None
        );
        assert_eq!(checkouts.disagreement(&Theorem::default(), &[]), None);
        let file = Some("Cedar/Data.lean".into());
        let other = Theorem { file, ..theorem(TRACED, "https://example.org/other") };
        let said = checkouts.disagreement(&other, &[]).unwrap();
        assert!(said.contains("example.org/other") && said.contains(URL), "{said}");
    }

    #[test]
    fn a_project_without_a_manifest_says_nothing() {
        let project = tempfile::tempdir().unwrap();
        let host = Host::Native { project: project.path().into() };
        let checkouts = Checkouts::of(&Options { host, ..Options::default() });
        assert_eq!(checkouts.disagreement(&theorem(TRACED, URL), &[]), None);
    }
}
