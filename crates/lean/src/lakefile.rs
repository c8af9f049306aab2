//! What a Lake project's `lakefile.toml` says of its sources: the folders that they are in, and the
//! options that Lake would give Lean with each.
//!
//! Lake is not asked: it would say so only by building. A project whose configuration is a program
//! (`lakefile.lean`) is taken as Lake's defaults have it: sources below the project, no options.

use std::path::{Component, Path};

use serde::Deserialize;
use toml::{Table, Value};

use crate::error::Error;
use crate::source::{is_below, module_of};

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lakefile {
    /// The package's folder of sources, as parts below the project.
    folder: String,
    options: Vec<(String, String)>,
    libraries: Vec<Library>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Library {
    folder: String,
    roots: Vec<String>,
    options: Vec<(String, String)>,
}

/// What is read of the file; all else is Lake's business.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    src_dir: Option<String>,
    #[serde(default)]
    lean_options: Table,
    #[serde(default, rename = "lean_lib")]
    libraries: Vec<LeanLib>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeanLib {
    name: String,
    src_dir: Option<String>,
    roots: Option<Vec<String>>,
    #[serde(default)]
    lean_options: Table,
}

impl Lakefile {
    /// The configuration of the project in `folder`.
    pub fn read(folder: &Path) -> Result<Lakefile, Error> {
        let path = folder.join("lakefile.toml");
        let wrong = |why: String| Error::File { path: path.clone(), why };
        match std::fs::read_to_string(&path) {
            // Where both are there, Lake reads the program.
            Ok(_) if folder.join("lakefile.lean").is_file() => Ok(Lakefile::default()),
            Ok(text) => parse(&text).map_err(wrong),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Lakefile::default()),
            Err(e) => Err(wrong(e.to_string())),
        }
    }

    /// The module of a file of the project, and the commands that set its options.
    pub fn place(&self, path: &str) -> (String, String) {
        for library in &self.libraries {
            let Some(module) = below(path, &library.folder).map(module_of) else { continue };
            if library.roots.iter().any(|root| is_below(&module, root)) {
                return (module, commands(self.options.iter().chain(&library.options)));
            }
        }
        let module = module_of(below(path, &self.folder).unwrap_or(path));
        (module, commands(self.options.iter()))
    }
}

fn parse(text: &str) -> Result<Lakefile, String> {
    let package: Package = toml::from_str(text).map_err(|e| e.to_string())?;
    let folder = parts(Path::new(package.src_dir.as_deref().unwrap_or("")))?;
    let mut libraries = Vec::new();
    for library in package.libraries {
        libraries.push(Library {
            folder: parts(&Path::new(&folder).join(library.src_dir.as_deref().unwrap_or("")))?,
            roots: library.roots.unwrap_or_else(|| vec![library.name.replace(['«', '»'], "")]),
            options: options(&library.lean_options)?,
        });
    }
    Ok(Lakefile { folder, options: options(&package.lean_options)?, libraries })
}

/// A folder below the project, without `.` and with `/` between its parts.
fn parts(folder: &Path) -> Result<String, String> {
    let mut parts = Vec::new();
    for part in folder.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => parts.push(part.to_string_lossy()),
            _ => return Err(format!("srcDir leads out of the project: {}", folder.display())),
        }
    }
    Ok(parts.join("/"))
}

/// The rest of a path below a folder.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    match folder {
        "" => Some(path),
        folder => path.strip_prefix(folder)?.strip_prefix('/'),
    }
}

/// Options by their full names, in the order of these. Those that begin with `weak` may be unknown
/// to Lean, which is how linters are set up: they are left out.
fn options(table: &Table) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for (name, value) in table {
        let own = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == '\'';
        if name.is_empty() || !name.chars().all(own) {
            return Err(format!("`{name}` is not the name of an option"));
        }
        let text = match value {
            Value::Table(inner) => {
                let inner = options(inner)?;
                found
                    .extend(inner.into_iter().map(|(last, text)| (format!("{name}.{last}"), text)));
                continue;
            }
            Value::Boolean(value) => value.to_string(),
            Value::Integer(value) if *value >= 0 => value.to_string(),
            Value::String(value) if !value.contains(['"', '\\', '\n']) => format!("\"{value}\""),
            other => return Err(format!("the option {name} has the value {other}")),
        };
        found.push((name.clone(), text));
    }
    found.retain(|(name, _)| !is_below(name, "weak"));
    found.sort();
    Ok(found)
}

fn commands<'a>(options: impl Iterator<Item = &'a (String, String)>) -> String {
    options.map(|(name, value)| format!("set_option {name} {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"
name = "mine"
defaultTargets = ["Mine"]
srcDir = "./code"
[leanOptions]
pp.unicode.fun = true
autoImplicit = false
weak.linter.mathlibStandardSet = true
[[lean_lib]]
name = "Mine"
srcDir = "library"
leanOptions = { relaxedAutoImplicit = false, maxRecDepth = 900 }
[[lean_lib]]
name = "Tests"
roots = ["Mine.Tests"]
[[lean_exe]]
name = "tool"
"#;

    #[test]
    fn sources_are_where_the_configuration_puts_them_with_its_options() {
        let lakefile = parse(SAMPLE).unwrap();
        let all = "set_option autoImplicit false\nset_option pp.unicode.fun true\n";
        let own = "set_option maxRecDepth 900\nset_option relaxedAutoImplicit false\n";
        let place = |path: &str| lakefile.place(path);
        assert_eq!(place("code/library/Mine/A.lean"), ("Mine.A".into(), format!("{all}{own}")));
        assert_eq!(place("code/Mine/Tests/B.lean"), ("Mine.Tests.B".into(), all.into()));
        assert_eq!(place("code/Other.lean"), ("Other".into(), all.into()));
        assert_eq!(place("Elsewhere.lean"), ("Elsewhere".into(), all.into()));
        assert_eq!(Lakefile::default().place("A/B.lean"), ("A.B".into(), String::new()));
    }

    #[test]
    fn what_is_no_option_is_said() {
        let said = |text: &str| parse(text).unwrap_err();
        assert!(said("[leanOptions]\nx = 1.5").contains("the option x has the value 1.5"));
        assert!(said("[leanOptions]\nx = \"a\\\"b\"").contains("the option x"));
        assert!(said("[leanOptions]\n\"a b\" = 1").contains("`a b` is not the name"));
        assert!(said("srcDir = \"../other\"").contains("leads out of the project"));
        assert!(said("[[lean_lib]]\nroots = []").contains("name"));
    }
}
