//! Lean source files: their text, and what they import.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;
use crate::lakefile::Lakefile;

/// One file of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Relative to the library's root, with `/` between its parts.
    pub path: String,
    /// The module's name that follows from it.
    pub module: String,
    pub text: String,
    /// Modules that it imports.
    pub imports: Vec<String>,
    /// Modules that it names as imports and does without, because that was asked for.
    pub without: Vec<String>,
    /// Commands that set the options of its project.
    pub options: String,
}

/// The modules named by the `import` lines at the start of `text`, and the rest of it.
pub(crate) fn split_imports(text: &str) -> (Vec<String>, &str) {
    let mut imports = Vec::new();
    let mut rest = text;
    loop {
        rest = skip_blank(rest);
        let line_end = rest.find('\n').unwrap_or(rest.len());
        let line = rest[..line_end].split("--").next().unwrap_or_default().trim();
        let mut words =
            line.split_whitespace().skip_while(|w| matches!(*w, "public" | "private" | "meta"));
        match words.next() {
            Some("import") => {
                imports.extend(words.filter(|w| *w != "all").map(|m| m.replace(['«', '»'], "")))
            }
            Some("module" | "prelude") if words.next().is_none() => {}
            _ => return (imports, rest),
        }
        rest = &rest[line_end..];
    }
}

/// Where the first `import` of `text` is, or could be.
fn first_import(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = skip_blank(rest);
        let line_end = rest.find('\n').unwrap_or(rest.len());
        let line = rest[..line_end].split("--").next().unwrap_or_default().trim();
        match line {
            "module" | "prelude" => rest = &rest[line_end..],
            _ => return text.len() - rest.len(),
        }
    }
}

impl Source {
    /// The same, importing one more module. Lines stay where they are.
    pub fn importing(&self, module: &str) -> Source {
        let (before, after) = self.text.split_at(first_import(&self.text));
        Source { text: format!("{before}import {module} {after}"), ..self.clone() }
    }
}

/// Skips white space and comments.
fn skip_blank(mut text: &str) -> &str {
    loop {
        let trimmed = text.trim_start();
        if let Some(comment) = trimmed.strip_prefix("--") {
            text = comment.find('\n').map_or("", |i| &comment[i..]);
        } else if trimmed.starts_with("/-")
            && !trimmed.starts_with("/--")
            && !trimmed.starts_with("/-!")
        {
            text = after_block_comment(trimmed);
        } else {
            return trimmed;
        }
    }
}

/// The text after the block comment that it starts with; comments nest.
fn after_block_comment(text: &str) -> &str {
    let (mut depth, mut at) = (0usize, 0);
    while at < text.len() {
        let here = &text[at..];
        if here.starts_with("/-") {
            depth += 1;
            at += 2;
        } else if here.starts_with("-/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return &text[at..];
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    ""
}

pub(crate) fn module_of(path: &str) -> String {
    path.trim_end_matches(".lean").replace('/', ".")
}

/// Whether a module is the one named, or stands below it.
pub(crate) fn is_below(module: &str, named: &str) -> bool {
    module.strip_prefix(named).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

pub(crate) fn path_of(module: &str) -> String {
    format!("{}.lean", module.replace('.', "/"))
}

/// A library: the files below one root, and those below the roots of what it depends on, read when
/// first asked for.
#[derive(Debug)]
pub(crate) struct Library {
    /// The library's own root first.
    roots: Vec<PathBuf>,
    /// Modules, with all below them, that nobody imports.
    left_out: Vec<String>,
    /// What a Lake project says of its sources, and where the root is in it.
    project: Option<(Lakefile, String)>,
    read: Mutex<HashMap<String, Arc<Source>>>,
}

impl Library {
    pub fn new(root: &Path, dependencies: &[PathBuf], left_out: &[String]) -> Library {
        let roots = [root.to_path_buf()].into_iter().chain(dependencies.iter().cloned()).collect();
        Library { roots, left_out: left_out.to_vec(), project: None, read: Mutex::default() }
    }

    /// The files below `root` of a Lake project.
    pub fn of_project(root: &Path, project: &Path) -> Result<Library, Error> {
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let inside = whole(root).strip_prefix(whole(project)).map(|inside| {
            inside.components().map(|c| format!("{}/", c.as_os_str().to_string_lossy())).collect()
        });
        let library = Library::new(root, &[], &[]);
        Ok(match inside {
            Ok(inside) => Library { project: Some((Lakefile::read(project)?, inside)), ..library },
            // Somebody else's files, with the project's Lean.
            Err(_) => library,
        })
    }

    /// The roots.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The file at `path` below one of the roots.
    pub fn source(&self, path: &str) -> Result<Arc<Source>, Error> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = read.get(path) {
            return Ok(Arc::clone(source));
        }
        let full = self.find(path)?.unwrap_or_else(|| self.roots[0].join(path));
        let error = |why: String| Error::File { path: full.clone(), why };
        let bytes = std::fs::read(&full).map_err(|e| error(e.to_string()))?;
        let text = String::from_utf8(bytes)
            .map_err(|e| error(format!("not UTF-8 after byte {}", e.utf8_error().valid_up_to())))?;
        let (without, imports) = split_imports(&text)
            .0
            .into_iter()
            .partition(|module| self.left_out.iter().any(|left| is_below(module, left)));
        let (module, options) = match &self.project {
            Some((lakefile, inside)) => lakefile.place(&format!("{inside}{path}")),
            None => (module_of(path), String::new()),
        };
        let path = path.to_owned();
        let source = Source { path: path.clone(), module, text, imports, without, options };
        let source = Arc::new(source);
        read.insert(path, Arc::clone(&source));
        Ok(source)
    }

    /// Whether several roots have this file.
    pub fn is_ambiguous(&self, path: &str) -> bool {
        self.find(path).is_err()
    }

    /// The one root that has this file, with the file's path below it.
    fn find(&self, path: &str) -> Result<Option<PathBuf>, Error> {
        let mut found = self.roots.iter().map(|root| root.join(path)).filter(|p| p.is_file());
        let first = found.next();
        match (&first, found.next()) {
            (Some(one), Some(other)) => Err(Error::File {
                path: one.clone(),
                why: format!(
                    "the module {} is also in {}; give one of the two roots",
                    module_of(path),
                    other.display()
                ),
            }),
            _ => Ok(first),
        }
    }

    /// The file of a module, if one of the roots has it.
    pub fn local(&self, module: &str) -> Result<Option<Arc<Source>>, Error> {
        let path = path_of(module);
        match self.find(&path)? {
            Some(_) => self.source(&path).map(Some),
            None => Ok(None),
        }
    }

    /// Every `.lean` file below `path` (a file or a folder), relative to its root and in order.
    pub fn files(&self, path: &Path) -> Result<Vec<String>, Error> {
        // However they are written: `Mine.lean` is below `.`.
        let whole = |path: &Path| {
            let error = |e: std::io::Error| Error::File { path: path.into(), why: e.to_string() };
            path.canonicalize().map_err(error)
        };
        let path = whole(path)?;
        let roots = self.roots.iter().map(|root| whole(root)).collect::<Result<Vec<_>, _>>()?;
        let root = roots.iter().find(|root| path.starts_with(root)).unwrap_or(&roots[0]);
        let mut found = BTreeMap::new();
        collect(root, &path, &mut found)?;
        Ok(found.into_keys().collect())
    }
}

fn collect(root: &Path, path: &Path, found: &mut BTreeMap<String, ()>) -> Result<(), Error> {
    let error = |why: String| Error::File { path: path.to_path_buf(), why };
    let meta = std::fs::metadata(path).map_err(|e| error(e.to_string()))?;
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).map_err(|e| error(e.to_string()))? {
            let entry = entry.map_err(|e| error(e.to_string()))?;
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            let child = entry.path();
            if !hidden && (child.is_dir() || child.extension().is_some_and(|e| e == "lean")) {
                collect(root, &child, found)?;
            }
        }
    } else {
        let relative = path
            .strip_prefix(root)
            .map_err(|_| error(format!("not below the library's root {}", root.display())))?;
        let parts: Vec<_> =
            relative.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
        found.insert(parts.join("/"), ());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_below_its_root_however_both_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let sub = folder.path().join("Sub");
        std::fs::create_dir(&sub).unwrap();
        std::fs::write(sub.join("Mine.lean"), "").unwrap();
        for root in [folder.path().join("."), sub.join("..")] {
            let library = Library::new(&root, &[], &[]);
            let files = library.files(&sub.join(".").join("Mine.lean")).unwrap();
            assert_eq!(files, ["Sub/Mine.lean"], "{}", root.display());
        }
        let other = folder.path().join("Other.lean");
        std::fs::write(&other, "").unwrap();
        assert!(Library::new(&sub, &[], &[]).files(&other).is_err());
    }

    #[test]
    fn imports_end_where_commands_begin() {
        let text = "/- a licence\n /- nested -/ -/\nmodule\nimport A.B -- why\npublic meta import \
         all C\n\nopen Nat\nimport D\n";
        let (imports, rest) = split_imports(text);
        assert_eq!(imports, ["A.B", "C"]);
        assert_eq!(rest, "open Nat\nimport D\n");
        assert_eq!(split_imports("open Nat"), (vec![], "open Nat"));
        assert_eq!(split_imports("/- never closed"), (vec![], ""));
        assert_eq!(split_imports("import A"), (vec!["A".to_owned()], ""));
    }

    #[test]
    fn one_more_import_moves_no_line() {
        let source = |text: &str| Source {
            path: "A.lean".into(),
            module: "A".into(),
            text: text.into(),
            imports: vec![],
            without: vec![],
            options: String::new(),
        };
        let more = |text: &str| source(text).importing("H").text;
        assert_eq!(
            more("/- a -/\nmodule -- b\n\npublic import A\n"),
            "/- a -/\nmodule -- b\n\nimport H public import A\n"
        );
        assert_eq!(more("-- a\nopen Nat"), "-- a\nimport H open Nat");
        assert_eq!(more(""), "import H ");
    }
}
