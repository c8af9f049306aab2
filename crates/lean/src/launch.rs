//! How a server's process is started on each host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cache::Prepared;
use crate::child::{Child, stack_limit};
use crate::error::Error;
use crate::native::Programs;
use crate::options::Options;
use crate::project::Project;
use crate::sandbox::{Layer, Program, Sandbox};
use crate::tool;

/// What a worker process is made of; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Launch {
    Wasm(Prepared),
    Native { project: Project, programs: Programs },
}

/// Where a process that may write finds its folder.
pub(crate) const WRITTEN_AT: &str = "/written";

/// A process that has been started, and the folder that it may write.
pub(crate) struct Started {
    pub child: Child,
    pub scratch: Option<tempfile::TempDir>,
}

impl Launch {
    /// What starts a judge where this starts a server.
    pub fn judge(&self) -> Launch {
        match self {
            Launch::Wasm(prepared) => {
                Launch::Wasm(Prepared { boot: "Judge", helpers: None, ..prepared.clone() })
            }
            Launch::Native { project, programs } => {
                Launch::Native { project: project.clone(), programs: programs.judge() }
            }
        }
    }

    /// The same, seeing the compiled modules of a view, and writing some if `writes`. Natively Lake
    /// has done that.
    pub fn with_library(&self, view: &Path, writes: bool) -> Launch {
        match self {
            Launch::Wasm(prepared) => Launch::Wasm(Prepared {
                library: Some(view.to_path_buf()),
                writes,
                helpers: None,
                ..prepared.clone()
            }),
            native @ Launch::Native { .. } => native.clone(),
        }
    }

    /// The same, seeing the module of helpers, if there is a folder that has it.
    pub fn with_helpers(&self, helpers: Option<PathBuf>) -> Launch {
        match self {
            Launch::Wasm(prepared) => Launch::Wasm(Prepared { helpers, ..prepared.clone() }),
            native @ Launch::Native { .. } => native.clone(),
        }
    }

    /// Whether files are elaborated with the module of helpers.
    pub fn has_helpers(&self) -> bool {
        matches!(self, Launch::Wasm(Prepared { helpers: Some(_), .. }))
    }

    /// Starts a server that imports `imports`.
    pub fn start(&self, imports: &[String], options: &Options) -> Result<Started, Error> {
        let layer = Layer::here();
        let failed = |e: std::io::Error| Error::Start(e.to_string());
        match self {
            Launch::Wasm(prepared) => {
                let scratch = match prepared.writes {
                    true => Some(tempfile::tempdir().map_err(failed)?),
                    false => None,
                };
                let write = scratch.as_ref().map(|folder| folder.path().to_path_buf());
                let program = wasm(prepared, imports, write.as_deref());
                let sandbox = Sandbox {
                    read: readable(prepared, &program.path),
                    write: write.into_iter().collect(),
                    memory_mb: options.memory_mb,
                };
                let child = Child::spawn(&program, &sandbox, layer).map_err(failed)?;
                Ok(Started { child, scratch })
            }
            Launch::Native { project, programs } => {
                if let (Layer::None(why), true) = (layer, options.confine) {
                    return Err(Error::Unconfined(why.clone()));
                }
                let scratch = tempfile::tempdir().map_err(failed)?;
                let args =
                    programs.arguments().into_iter().chain(imports.iter().map(OsString::from));
                let program = project.program(args, scratch.path()).finding(programs.folder());
                let mut read = project.readable();
                read.push(programs.folder().to_path_buf());
                let sandbox = Sandbox {
                    read,
                    write: vec![scratch.path().to_path_buf()],
                    memory_mb: options.memory_mb,
                };
                let child = Child::spawn(&program, &sandbox, layer).map_err(failed)?;
                Ok(Started { child, scratch: Some(scratch) })
            }
        }
    }
}

/// Node on the prepared runtime. The WebAssembly module can reach nothing that is not mounted
/// (`host/sandbox.cjs`); should it break out into node, node's own permissions are next, and then
/// the system's.
fn wasm(prepared: &Prepared, imports: &[String], write: Option<&Path>) -> Program {
    let server = prepared.server.join("lib");
    let mut path = "/lean/lib:/server".to_owned();
    let mut mounts = vec![serde_json::json!(["/server", server, false])];
    let mut read = vec![prepared.runtime.as_path(), server.as_path()];
    if let Some(library) = &prepared.library {
        path.push_str(":/library");
        mounts.push(serde_json::json!(["/library", library, false]));
        read.push(library);
    }
    if let Some(helpers) = &prepared.helpers {
        path.push_str(":/helpers");
        mounts.push(serde_json::json!(["/helpers", helpers, false]));
        read.push(helpers);
    }
    if let Some(folder) = write {
        mounts.push(serde_json::json!([WRITTEN_AT, folder, true]));
    }
    let settings = serde_json::json!({
        "runtime": prepared.runtime,
        "boot": prepared.boot,
        "args": imports,
        "watchParent": cfg!(not(target_os = "linux")),
        "mounts": mounts,
        "env": { "LEAN_PATH": path },
    });
    let mut args = prepared.node.permissions(&read, write.as_slice());
    // V8 must believe in a little less stack than there is.
    args.push(format!("--stack-size={}", stack_limit() / 1024 * 5 / 6).into());
    args.push(prepared.host_script.clone().into());
    args.push(settings.to_string().into());
    Program { path: prepared.node.path.clone(), args, ..Program::default() }
}

/// What node reads: the prepared files, and what it brings along where that is not the system's.
fn readable(prepared: &Prepared, node: &Path) -> Vec<PathBuf> {
    let mut read = vec![prepared.runtime.clone(), prepared.server.clone()];
    read.extend(prepared.library.clone());
    read.extend(prepared.helpers.clone());
    read.extend(tool::installation(node));
    read
}

#[cfg(test)]
impl Launch {
    /// One that is only looked at: nothing of it is there.
    pub fn of_nothing() -> Launch {
        Launch::Wasm(Prepared {
            node: crate::node::Node { path: "/usr/bin/node".into(), version: "v22.0.0".into() },
            runtime: "/cache/runtime".into(),
            server: "/cache/server".into(),
            host_script: "/cache/runtime/host.cjs".into(),
            boot: "Server",
            cache: "/cache".into(),
            library: None,
            writes: false,
            helpers: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_never_sees_the_module_of_helpers() {
        let launch = Launch::of_nothing();
        let prover =
            launch.with_library(Path::new("/view"), false).with_helpers(Some("/helpers".into()));
        let sees = |launch: &Launch| match launch {
            Launch::Wasm(prepared) => {
                let args = wasm(prepared, &[], None).args;
                args.iter().any(|arg| arg.to_string_lossy().contains("/helpers"))
                    || readable(prepared, &prepared.node.path).contains(&"/helpers".into())
            }
            Launch::Native { .. } => false,
        };
        assert!(sees(&prover) && prover.has_helpers());
        assert!(!sees(&prover.judge()) && !prover.judge().has_helpers());
        assert!(!sees(&launch));
    }
}
