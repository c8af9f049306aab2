//! Lean source files: their text, what they import, and the order in which a chain of them is
//! elaborated.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;

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

fn module_of(path: &str) -> String {
    path.trim_end_matches(".lean").replace('/', ".")
}

/// The files below one root, read when first asked for.
#[derive(Debug)]
pub(crate) struct Library {
    root: PathBuf,
    read: Mutex<HashMap<String, Arc<Source>>>,
    /// What each top folder needs from outside, once it is known.
    folders: Mutex<HashMap<String, Vec<String>>>,
}

impl Library {
    pub fn new(root: &Path) -> Library {
        Library { root: root.to_path_buf(), read: Mutex::default(), folders: Mutex::default() }
    }

    /// The file at `path` below the root.
    pub fn source(&self, path: &str) -> Result<Arc<Source>, Error> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = read.get(path) {
            return Ok(Arc::clone(source));
        }
        let full = self.root.join(path);
        let error = |why: String| Error::File { path: full.clone(), why };
        let bytes = std::fs::read(&full).map_err(|e| error(e.to_string()))?;
        let text = String::from_utf8(bytes)
            .map_err(|e| error(format!("not UTF-8 after byte {}", e.utf8_error().valid_up_to())))?;
        let imports = split_imports(&text).0;
        let source =
            Arc::new(Source { path: path.to_owned(), module: module_of(path), text, imports });
        read.insert(path.to_owned(), Arc::clone(&source));
        Ok(source)
    }

    /// The file and, before it, every file of the library that it imports, in an order that can be
    /// elaborated.
    pub fn chain(&self, path: &str) -> Result<Vec<Arc<Source>>, Error> {
        self.order(&[path.to_owned()])
    }

    /// All these files and what they import within the library, each after what it imports.
    pub fn order(&self, paths: &[String]) -> Result<Vec<Arc<Source>>, Error> {
        let mut order = Vec::new();
        let mut seen = HashSet::new();
        for path in paths {
            self.visit(path, &mut seen, &mut order)?;
        }
        Ok(order)
    }

    fn visit(
        &self,
        path: &str,
        seen: &mut HashSet<String>,
        order: &mut Vec<Arc<Source>>,
    ) -> Result<(), Error> {
        if !seen.insert(path.to_owned()) {
            return Ok(());
        }
        let source = self.source(path)?;
        for import in &source.imports {
            if let Some(local) = self.local(import) {
                self.visit(&local, seen, order)?;
            }
        }
        order.push(source);
        Ok(())
    }

    /// The library's own file for a module, if it has one.
    pub fn local(&self, module: &str) -> Option<String> {
        let path = format!("{}.lean", module.replace('.', "/"));
        self.root.join(&path).is_file().then_some(path)
    }

    /// What the files of the same top folder as `path` need from outside the library, as far as
    /// `available` has it, after what the chain itself needs. One process can then serve all of
    /// them: the files of a library import ever other parts of core Lean, and a process that served
    /// two of them in turn would start anew each time.
    pub fn outside_of_folder(
        &self,
        path: &str,
        chain: &[Arc<Source>],
        default: &[String],
        available: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut imports = self.outside(chain, default);
        if let Some((folder, _)) = path.split_once('/') {
            let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
            let all = folders.entry(folder.to_owned()).or_insert_with(|| {
                // A file that cannot be read says so when it is asked for.
                let files = self.files(&self.root.join(folder)).unwrap_or_default();
                let sources: Vec<_> =
                    files.iter().filter_map(|file| self.source(file).ok()).collect();
                let mut found = self.outside(&sources, &[]);
                found.retain(|module| available(module));
                found
            });
            imports.extend(all.iter().cloned());
            imports.sort();
            imports.dedup();
        }
        imports
    }

    /// What a chain of files needs from outside the library.
    pub fn outside(&self, chain: &[Arc<Source>], default: &[String]) -> Vec<String> {
        let mut imports = default.to_vec();
        for import in chain.iter().flat_map(|s| &s.imports) {
            if self.local(import).is_none() && !imports.contains(import) {
                imports.push(import.clone());
            }
        }
        imports
    }

    /// Every `.lean` file below `path` (a file or a folder), relative to the root and in order.
    pub fn files(&self, path: &Path) -> Result<Vec<String>, Error> {
        let mut found = BTreeMap::new();
        collect(&self.root, path, &mut found)?;
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
}
