//! A Lake project: which Lean it uses, and what Lake would set in its environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::sandbox::Program;
use crate::tool::{self, LAKE_HINT};

/// See the module's text.
///
/// Lake is asked once, unconfined: it reads the project's own configuration, which is the user's,
/// and may have to build it. The Lean that runs tactics is then started without Lake in between, so
/// that what is confined, watched and ended is the process that does the work.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    folder: PathBuf,
    lean: PathBuf,
    env: BTreeMap<OsString, OsString>,
}

/// What of Lake's environment Lean is given.
const KEPT: [&str; 4] = ["PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL"];

impl Project {
    /// Asks Lake about the project in `folder`.
    pub fn open(folder: &Path) -> Result<Project, Error> {
        let missing = |why: String| Error::Missing { program: "lake", why, hint: LAKE_HINT };
        let out = Command::new("lake")
            .args(["env", "env", "-0"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| match folder.is_dir() {
                true => missing(e.to_string()),
                false => Error::File { path: folder.into(), why: "there is no such folder".into() },
            })?;
        if !out.status.success() {
            return Err(tool::unusable("lake", folder, &out));
        }
        let env: BTreeMap<OsString, OsString> = out
            .stdout
            .split(|b| *b == 0)
            .filter_map(|entry| {
                let at = entry.iter().position(|b| *b == b'=')?;
                let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
                Some((text(&entry[..at]), text(&entry[at + 1..])))
            })
            .collect();
        let lean = lean_of(&env).ok_or_else(|| Error::Missing {
            program: "lean",
            why: format!(
                "neither in LEAN_SYSROOT nor on the PATH that `lake env` sets in {}",
                folder.display()
            ),
            hint: LAKE_HINT,
        })?;
        Ok(Project { folder: folder.to_path_buf(), lean, env })
    }

    /// Which Lean it is: where, and what it says of itself.
    pub fn toolchain(&self) -> Result<String, Error> {
        let program = self.program(["--version".into()], &self.folder);
        let out = Command::new(&program.path)
            .args(&program.args)
            .env_clear()
            .envs(program.env)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| Error::prepare(format!("asking {}", program.path.display()), e))?;
        match out.status.success() {
            true => Ok(format!("{} {}", self.lean.display(), String::from_utf8_lossy(&out.stdout))),
            false => Err(tool::unusable("lean", &self.folder, &out)),
        }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lean with these arguments, as Lake would start it, and with `scratch` for a home.
    pub fn program(&self, args: impl IntoIterator<Item = OsString>, scratch: &Path) -> Program {
        let kept = |name: &OsStr| {
            let name = name.to_string_lossy();
            name.starts_with("LEAN") || name.starts_with("LAKE") || KEPT.contains(&&*name)
        };
        let mut env: Vec<_> =
            self.env.iter().filter(|(k, _)| kept(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
        env.extend(["HOME", "TMPDIR"].map(|name| (name.into(), scratch.into())));
        Program {
            path: self.lean.clone(),
            args: args.into_iter().collect(),
            env,
            folder: Some(self.folder.clone()),
        }
    }

    /// What Lean reads: the toolchain, the project and its dependencies.
    pub fn readable(&self) -> Vec<PathBuf> {
        let mut read = vec![self.folder.clone()];
        for name in ["LEAN_SYSROOT", "LEAN_PATH", "LEAN_SRC_PATH"] {
            read.extend(self.env.get(OsStr::new(name)).into_iter().flat_map(std::env::split_paths));
        }
        read.extend(tool::installation(&self.lean));
        // A relative path is one of the project's.
        read.iter().filter(|p| !p.as_os_str().is_empty()).map(|p| self.folder.join(p)).collect()
    }
}

fn lean_of(env: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let named = |name: &str| env.get(OsStr::new(name)).filter(|v| !v.is_empty());
    named("LEAN_SYSROOT")
        .map(|root| Path::new(root).join("bin").join("lean"))
        .or_else(|| named("LEAN").map(PathBuf::from))
        .filter(|path| path.is_file())
        .or_else(|| named("PATH").and_then(|path| tool::find_in("lean", path)))
}
