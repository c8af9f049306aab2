//! What a prover's process may reach on this machine: files to read, a folder to write, no network,
//! no further processes.
//!
//! Tactics run code, whether they mean to or not: Lean evaluates a tactic's configuration. The
//! process that runs them is therefore confined by the system's kernel (Landlock and seccomp, or
//! bubblewrap where there is no Landlock), whatever else stands in the way.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

#[cfg(target_os = "linux")]
mod kernel;

/// A program and everything that it is given; nothing of this process's environment is inherited.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub path: PathBuf,
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub folder: Option<PathBuf>,
}

impl Program {
    /// A Lean that looks for modules in this folder, too.
    pub fn finding(mut self, folder: &Path) -> Program {
        const PATHS: &str = "LEAN_PATH";
        let before = self.env.iter().position(|(name, _)| name == PATHS);
        let mut paths = before.map(|at| self.env.remove(at).1).unwrap_or_default();
        if !paths.is_empty() {
            paths.push(":");
        }
        paths.push(folder);
        self.env.push((PATHS.into(), paths));
        self
    }
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sandbox {
    /// Files and folders that may be read, besides the system's programs and libraries.
    pub read: Vec<PathBuf>,
    /// Folders that may be written.
    pub write: Vec<PathBuf>,
    /// The most private memory that the kernel gives, in MiB.
    pub memory_mb: u64,
}

/// What confines a process here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Landlock for files, with the rules of this version of its interface; seccomp for network,
    /// processes and what Landlock does not know.
    Landlock(u32),
    /// The program bubblewrap, with the same seccomp filters.
    Bubblewrap(PathBuf),
    /// Nothing, and why.
    None(String),
}

/// What every program needs: its loader, libraries and a few devices. Of `/proc` it may read what
/// is said of the machine; what is said of other processes (an environment with keys, say) it may
/// not, and the rule for its own folder there is made when it has an id (see `kernel.rs`).
const SYSTEM: [&str; 20] = [
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/dev/random",
    "/dev/urandom",
];
/// Devices that swallow what is written.
const SINKS: [&str; 2] = ["/dev/null", "/dev/zero"];

/// The version of Landlock's interface from which on it refuses to cut files off (Linux 6.2).
const KNOWS_TRUNCATION: u32 = 3;

impl Layer {
    /// What this machine has, found out once.
    pub fn here() -> &'static Layer {
        static HERE: OnceLock<Layer> = OnceLock::new();
        HERE.get_or_init(Layer::find)
    }

    #[cfg(target_os = "linux")]
    fn find() -> Layer {
        let landlock = kernel::landlock();
        if let Some(version) = landlock.filter(|version| *version >= KNOWS_TRUNCATION) {
            return Layer::Landlock(version);
        }
        match (Layer::bubblewrap(), landlock) {
            (Ok(layer), _) => layer,
            (Err(_), Some(version)) => Layer::Landlock(version),
            (Err(why), None) => Layer::None(format!(
                "this kernel has no Landlock, and {why}; a kernel from 5.13 on, or the package \
                 bubblewrap, would confine it"
            )),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn find() -> Layer {
        Layer::None("only Linux has the means that are used here".into())
    }

    /// Bubblewrap, if it is installed and may make namespaces here.
    pub fn bubblewrap() -> Result<Layer, String> {
        let path = crate::tool::find("bwrap").ok_or("bubblewrap is not installed")?;
        let tried = Command::new(&path)
            .args(["--unshare-all", "--ro-bind", "/", "/", "--", "true"])
            .output()
            .map_err(|e| format!("bubblewrap does not run: {e}"))?;
        if tried.status.success() {
            return Ok(Layer::Bubblewrap(path));
        }
        let said = String::from_utf8_lossy(&tried.stderr);
        Err(format!("bubblewrap may not make namespaces here ({})", said.trim()))
    }
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Layer::Landlock(version) => write!(f, "Landlock (ABI {version}) and seccomp"),
            Layer::Bubblewrap(path) => write!(f, "{} and seccomp", path.display()),
            Layer::None(why) => write!(f, "nothing: {why}"),
        }
    }
}

impl Sandbox {
    /// The command that runs `program` confined by `layer`, in a process group of its own, and ends
    /// with this process.
    pub fn command(&self, program: &Program, layer: &Layer) -> Result<Command, String> {
        let mut command = match layer {
            Layer::Bubblewrap(path) => self.wrapped(path, program),
            Layer::Landlock(_) | Layer::None(_) => {
                let mut command = Command::new(&program.path);
                command.args(&program.args);
                command
            }
        };
        command.env_clear().envs(program.env.iter().map(|(k, v)| (k, v)));
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        #[cfg(target_os = "linux")]
        kernel::restrict(&mut command, self, layer)?;
        if let Layer::Bubblewrap(_) = layer {
            command.arg("--").arg(&program.path).args(&program.args);
        }
        Ok(command)
    }

    fn wrapped(&self, bubblewrap: &Path, program: &Program) -> Command {
        let mut command = Command::new(bubblewrap);
        command.args(["--unshare-all", "--die-with-parent", "--new-session"]);
        command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
        let made = |path: &&str| path.starts_with("/proc") || path.starts_with("/dev");
        let system = SYSTEM.iter().filter(|path| !made(path)).map(Path::new);
        for path in system.chain(self.read.iter().map(PathBuf::as_path)) {
            command.arg("--ro-bind-try").arg(path).arg(path);
        }
        for path in &self.write {
            command.arg("--bind").arg(path).arg(path);
        }
        if let Some(folder) = &program.folder {
            command.arg("--chdir").arg(folder);
        }
        command
    }
}
