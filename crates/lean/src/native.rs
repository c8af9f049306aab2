//! Server and judge as a project's own toolchain runs them: each is a module that is compiled once
//! for that toolchain, and a few lines that import it. Where it does not compile, all of it is
//! elaborated at every start.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use catamount_base::{AtomicFolder, say};

use crate::assets;
use crate::cache::{SEAL, build, first_use};
use crate::error::Error;
use crate::project::Project;

/// What sets the modules' names apart from a project's own.
const OURS: &str = "Catamount";
/// Where a program's last lines begin, which make a module a program.
const MAIN: &str = "public def main";

/// See the module's text; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
    program: &'static str,
}

impl Programs {
    /// The server, as the project's toolchain runs it; below `cache` they are kept.
    pub fn open(cache: &Path, project: &Project) -> Result<Programs, Error> {
        let programs = assets::native_programs();
        let [server, _] = assets::MODULES;
        let parts = programs.each_ref().map(|(_, text)| text.as_bytes());
        let key = assets::sha256(&parts)[..16].to_owned();
        let toolchain = assets::sha256(&[project.toolchain()?.as_bytes()])[..16].to_owned();
        let folder = cache.join(format!("native-{key}-{toolchain}"));
        let opened = |folder| Programs { folder, program: server };
        if folder.join(SEAL).is_file() {
            return Ok(opened(folder));
        }
        let doing = || format!("writing to {}", cache.display());
        let failed = |e: std::io::Error| Error::prepare(doing(), e);
        fs::create_dir_all(cache).map_err(failed)?;
        let lock = File::create(cache.join("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        AtomicFolder::sweep(cache).map_err(failed)?;
        if folder.join(SEAL).is_file() {
            return Ok(opened(folder));
        }
        let compiled = build(&folder, |folder| compile(project, &programs, folder));
        let Err(why) = compiled else { return Ok(opened(folder)) };
        say(format!("{why}; it is elaborated at every start instead, which takes longer"));
        let folder = cache.join(format!("native-{key}"));
        fs::create_dir_all(&folder).map_err(failed)?;
        for (name, text) in &programs {
            fs::write(file(&folder, name), text).map_err(failed)?;
        }
        Ok(opened(folder))
    }

    /// The judge of this server.
    pub fn judge(&self) -> Programs {
        let [_, judge] = assets::MODULES;
        Programs { program: judge, ..self.clone() }
    }

    /// With what arguments Lean runs it.
    pub fn arguments(&self) -> [OsString; 2] {
        ["--run".into(), file(&self.folder, self.program).into()]
    }

    /// The folder that Lean reads it from, and finds its module in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn file(folder: &Path, program: &str) -> PathBuf {
    folder.join(program).with_extension("lean")
}

/// Fills a folder with the compiled modules, and the programs that import them.
fn compile(
    project: &Project,
    programs: &[(&'static str, String)],
    folder: &Path,
) -> Result<(), Error> {
    let doing = "compiling server and judge with the project's toolchain";
    let failed = |e: std::io::Error| Error::prepare(doing, e);
    let working = first_use(doing);
    for (name, text) in programs {
        let (module, main) = text.split_at(text.rfind(MAIN).unwrap_or(text.len()));
        let ours = format!("{OURS}{name}");
        fs::write(file(folder, &ours), module).map_err(failed)?;
        fs::write(file(folder, name), format!("import {ours}\n\n{main}")).map_err(failed)?;
        let names = [format!("{ours}.olean"), format!("{ours}.lean")];
        let args = ["-o", &names[0], &names[1]].map(OsString::from);
        let program = project.program(args, folder);
        let out = std::process::Command::new(&program.path)
            .args(&program.args)
            .env_clear()
            .envs(program.env)
            // A module is named by its place below the folder that Lean is started in.
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .map_err(failed)?;
        if !out.status.success() || !folder.join(&names[0]).is_file() {
            let said = String::from_utf8_lossy(&out.stdout).into_owned()
                + &String::from_utf8_lossy(&out.stderr);
            working.finish();
            let said: String = said.trim().chars().take(500).collect();
            return Err(Error::prepare(doing, format!("{}: {said}", out.status)));
        }
    }
    working.done();
    Ok(())
}
