//! Recipes for corpora: which repository, which commit of it, what it depends on, which modules.
//!
//! A corpus is somebody else's, so it is not kept here: whoever wants it fetches it by name and
//! commit, and a checkout of another commit is refused, because its theorems are others.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::error::Error;
use crate::options::Options;

/// Recipes that come with the program.
const BUNDLED: [(&str, &str); 6] = [
    ("aesop", include_str!("../corpora/aesop.toml")),
    ("batteries", include_str!("../corpora/batteries.toml")),
    ("cedar", include_str!("../corpora/cedar.toml")),
    ("extra4", include_str!("../corpora/extra4.toml")),
    ("mathlib", include_str!("../corpora/mathlib.toml")),
    ("quote4", include_str!("../corpora/quote4.toml")),
];

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The corpus's name, and that of its checkout's folder.
    pub name: String,
    /// Where it is cloned from.
    pub repository: String,
    /// Which commit of it, in full.
    pub commit: String,
    /// The folder of the repository that module names are relative to.
    #[serde(default)]
    pub folder: PathBuf,
    /// Recipes of what it imports besides core Lean.
    #[serde(default)]
    pub libraries: Vec<String>,
    /// The modules, with whatever is below them, that are traced; they and all that they import are
    /// compiled.
    pub modules: Vec<String>,
    /// Modules, with whatever is below them, that are not imported.
    #[serde(default)]
    pub leave_out: Vec<String>,
    /// Whether it has tactics of its own that need the names of compiler-made helpers to compile.
    #[serde(default)]
    pub helpers: bool,
}

/// A corpus at hand, checkouts of the right commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// What its files are relative to.
    pub root: PathBuf,
    /// The same for what it depends on.
    pub libraries: Vec<PathBuf>,
    /// How it is to be treated.
    pub recipe: Recipe,
}

impl Corpus {
    /// Several in one: all their files, one library to Lean. A corpus that is left with a module
    /// out, or that needs helpers, has all go by that: what both import is compiled once.
    pub fn together(corpora: Vec<Corpus>) -> Option<Corpus> {
        let mut corpora = corpora.into_iter();
        let mut all = corpora.next()?;
        for Corpus { root, libraries, recipe } in corpora {
            all.libraries.extend([root].into_iter().chain(libraries));
            all.recipe.leave_out.extend(recipe.leave_out);
            all.recipe.modules.extend(recipe.modules);
            all.recipe.helpers |= recipe.helpers;
        }
        let mut seen = HashSet::from([all.root.clone()]);
        all.libraries.retain(|root| seen.insert(root.clone()));
        all.recipe.leave_out.sort();
        all.recipe.leave_out.dedup();
        Some(all)
    }

    /// The settings with which Lean looks for theorems here.
    pub fn searched(&self, options: Options) -> Options {
        Options {
            root: Some(self.root.clone()),
            libraries: self.libraries.clone(),
            left_out: self.recipe.leave_out.clone(),
            helpers: self.recipe.helpers,
            ..options
        }
    }
}

impl Recipe {
    /// A bundled recipe by its name, or one of the user's own by its path.
    pub fn open(name: &str) -> Result<Recipe, Error> {
        if let Some((_, text)) = BUNDLED.iter().find(|(known, _)| *known == name) {
            return Recipe::parse(Path::new(name), text);
        }
        let path = Path::new(name);
        let text = std::fs::read_to_string(path).map_err(|e| Error::File {
            path: path.into(),
            why: format!("no recipe of that name ({}), and no file: {e}", names()),
        })?;
        Recipe::parse(path, &text)
    }

    /// Whether a name is that of a recipe that comes with the program, and so no path.
    pub fn is_bundled(name: &str) -> bool {
        BUNDLED.iter().any(|(known, _)| *known == name)
    }

    fn parse(path: &Path, text: &str) -> Result<Recipe, Error> {
        let wrong = |why: String| Error::File { path: path.into(), why };
        let recipe: Recipe = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if recipe.name.is_empty() || !recipe.name.chars().all(plain) {
            let why = "its name names a folder: letters, digits, - and _ only";
            return Err(wrong(why.into()));
        }
        let full =
            recipe.commit.len() == 40 && recipe.commit.chars().all(|c| c.is_ascii_hexdigit());
        match full {
            true => Ok(recipe),
            false => Err(wrong(format!("`{}` is not a whole commit", recipe.commit))),
        }
    }

    /// The corpus in `checkouts`, a folder that has one checkout for each recipe, under its name.
    pub fn find(self, checkouts: &Path) -> Result<Corpus, Error> {
        let root = self.checkout(checkouts)?;
        let mut libraries = Vec::new();
        for name in &self.libraries {
            libraries.push(Recipe::open(name)?.checkout(checkouts)?);
        }
        Ok(Corpus { root, libraries, recipe: self })
    }

    /// The root of its modules in a checkout of its commit.
    fn checkout(&self, checkouts: &Path) -> Result<PathBuf, Error> {
        let folder = checkouts.join(&self.name);
        let at = folder.display();
        let fetch =
            format!("git clone {} {at} && git -C {at} checkout {}", self.repository, self.commit);
        let wrong = |why: String| Error::File { path: folder.clone(), why };
        if !folder.is_dir() {
            return Err(wrong(format!("there is no checkout of {}; fetch it: {fetch}", self.name)));
        }
        let found = git(&folder, &["rev-parse", "HEAD"])
            .map_err(|why| wrong(format!("{why}; fetch it anew: {fetch}")))?;
        if found != self.commit {
            return Err(wrong(format!(
                "this is {} at commit {found}, and the recipe is for {}: git -C {at} checkout {}",
                self.name, self.commit, self.commit
            )));
        }
        let changed =
            git(&folder, &["status", "--porcelain", "--untracked-files=no"]).map_err(wrong)?;
        if let Some(first) = changed.lines().next() {
            return Err(wrong(format!(
                "files differ from commit {} (`{first}`): git -C {at} checkout -- .",
                self.commit
            )));
        }
        Ok(folder.join(&self.folder))
    }
}

fn names() -> String {
    BUNDLED.map(|(name, _)| name).join(", ")
}

/// What git says in a folder.
pub(crate) fn git(folder: &Path, args: &[&str]) -> Result<String, String> {
    let out = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("git, which says what commit this is, does not run: {e}"))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        return Err(format!("git does not say what commit this is ({})", said.trim()));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_recipes_are_whole() {
        for (name, _) in BUNDLED {
            let recipe = Recipe::open(name).unwrap();
            assert_eq!(recipe.name, name);
            assert!(!recipe.modules.is_empty());
            for library in &recipe.libraries {
                Recipe::open(library).unwrap();
            }
        }
        let error = Recipe::open("cedr").unwrap_err().to_string();
        assert!(error.contains("aesop, batteries, cedar, extra4, mathlib, quote4"), "{error}");
    }

    fn run(folder: &Path, args: &[&str]) -> String {
        git(folder, args).unwrap()
    }

    #[test]
    fn a_checkout_of_another_commit_is_refused() {
        let checkouts = tempfile::tempdir().unwrap();
        let folder = checkouts.path().join("mine");
        std::fs::create_dir(&folder).unwrap();
        let recipe = |commit: &str| {
            let text = format!(
                "name = \"mine\"\nrepository = \"https://example.org/mine\"\ncommit = \
                 \"{commit}\"\nmodules = [\"Mine\"]\nfolder = \"lean\"\n"
            );
            Recipe::parse(Path::new("mine.toml"), &text).unwrap()
        };
        run(&folder, &["init", "--quiet"]);
        std::fs::write(folder.join("A.lean"), "-- one\n").unwrap();
        let commit = |message: &str| {
            run(&folder, &["add", "."]);
            let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            let args = [&who[..], &["commit", "--quiet", "-m", message]].concat();
            run(&folder, &args);
            run(&folder, &["rev-parse", "HEAD"])
        };
        let first = commit("one");
        let corpus = recipe(&first).find(checkouts.path()).unwrap();
        assert_eq!(corpus.root, folder.join("lean"));
        std::fs::write(folder.join("A.lean"), "-- changed\n").unwrap();
        let changed = recipe(&first).find(checkouts.path()).unwrap_err().to_string();
        assert!(changed.contains("files differ from commit"), "{changed}");
        let second = commit("two");
        let other = recipe(&first).find(checkouts.path()).unwrap_err().to_string();
        assert!(other.contains(&second) && other.contains(&first), "{other}");
        let missing = recipe(&first).find(&folder).unwrap_err().to_string();
        assert!(missing.contains("git clone https://example.org/mine"), "{missing}");
    }
}
