//! What the Linux kernel is asked to refuse.

use std::collections::BTreeMap;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope, path_beneath_rules,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::{KNOWS_TRUNCATION, Layer, SINKS, SYSTEM, Sandbox};
use crate::child::raise_stack_limit;

/// The newest rules that were tried; an older kernel enforces those that it knows.
const RULES: ABI = ABI::V6;
/// Room above a memory limit: address space that allocators reserve and never touch. The limit
/// itself is watched from outside; this one stops a burst that outruns the watch.
const RESERVED_MB: u64 = 4096;

/// The most that one file may come to, in MiB: a hundred times the largest compiled module.
const FILE_MB: u64 = 1024;

/// System calls that no prover needs: the network, other processes, its own bonds, what files are
/// marked with (Landlock has no rule for that), and the machine itself. Signals go by `tgkill`, to
/// the process's own threads.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_setpgid,
    libc::SYS_setsid,
    libc::SYS_setrlimit,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_personality,
    libc::SYS_memfd_create,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];
/// Calls of newer kernels that libraries do not name yet; their numbers are the same everywhere.
const FCHMODAT2: libc::c_long = 452;
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const FILE_SETATTR: libc::c_long = 469;
/// What `ioctl` is asked in order to mark a file: `FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR`.
const MARKS: [u64; 2] = [0x4008_6602, 0x401c_5820];
/// Stands in a filter for the id of the process that it will hold, known after the fork; no process
/// can have it.
const OWN_ID: u32 = 0x7ac0_ffee;
/// On x86-64 every call has a second number, for programs with 32-bit pointers.
#[cfg(target_arch = "x86_64")]
const SECOND_NUMBERS: Option<i64> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
const SECOND_NUMBERS: Option<i64> = None;

/// The version of Landlock's interface that this kernel has, if it is switched on.
pub fn landlock() -> Option<u32> {
    const VERSION: libc::c_uint = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the call reads no memory; it answers a version or an error.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0usize, VERSION) };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

/// Has `command` confine itself between fork and exec.
pub fn restrict(command: &mut Command, sandbox: &Sandbox, layer: &Layer) -> Result<(), String> {
    let mut ruleset = match layer {
        Layer::Landlock(version) => Some(ruleset(sandbox, *version)?),
        Layer::Bubblewrap(_) | Layer::None(_) => None,
    };
    let handed = match layer {
        // It sees no processes but its own, whose ids are not known yet.
        // Nor may it change what it can see.
        Layer::Bubblewrap(_) => hand_over(command, &filters(None, true)?)?,
        Layer::Landlock(_) | Layer::None(_) => Vec::new(),
    };
    let mut applied = match layer {
        Layer::Landlock(version) => filters(Some(OWN_ID), *version >= KNOWS_TRUNCATION)?,
        Layer::Bubblewrap(_) | Layer::None(_) => Vec::new(),
    };
    let parent = std::process::id();
    let data = (sandbox.memory_mb + RESERVED_MB) << 20;
    // SAFETY: between fork and exec only system calls are made, and no memory is allocated unless
    // one of them fails.
    unsafe {
        command.pre_exec(move || {
            die_with(parent)?;
            raise_stack_limit();
            limit(libc::RLIMIT_DATA, data);
            limit(libc::RLIMIT_FSIZE, FILE_MB << 20);
            for file in &handed {
                succeeded(libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0))?;
            }
            if let Some(ruleset) = ruleset.take() {
                with_own_folder(ruleset)?
                    .restrict_self()
                    .map_err(|_| io::Error::last_os_error())?;
            }
            let own = libc::getpid() as u32;
            for instruction in applied.iter_mut().flatten().filter(|i| i.k == OWN_ID) {
                instruction.k = own;
            }
            for filter in &applied {
                seccompiler::apply_filter(filter).map_err(|_| io::Error::last_os_error())?;
            }
            Ok(())
        });
    }
    Ok(())
}

/// Lets this process read what the kernel says of it. The folder stays open over the exec: a rule
/// holds for one inode, and `/proc` would make another once nobody used this one.
fn with_own_folder(ruleset: RulesetCreated) -> io::Result<RulesetCreated> {
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    // SAFETY: the path is a C string, and nobody closes the descriptor that comes back.
    let folder = unsafe {
        let fd = libc::open(c"/proc/self".as_ptr(), flags);
        if fd < 0 {
            // Without `/proc` there is nothing to read.
            return Ok(ruleset);
        }
        BorrowedFd::borrow_raw(fd)
    };
    ruleset
        .add_rule(PathBeneath::new(folder, AccessFs::from_read(RULES)))
        .map_err(|_| io::Error::last_os_error())
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel ends the process when the thread that started it ends (see `child.rs`).
fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: neither call touches memory.
    unsafe {
        succeeded(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        // Had it ended already, nobody would be told.
        if libc::getppid() as u32 != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
    }
    Ok(())
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

fn limit(resource: Resource, bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: reads the struct it is given. Where a lower limit holds already, that one stays.
    unsafe { libc::setrlimit(resource, &limit) };
}

fn ruleset(sandbox: &Sandbox, version: u32) -> Result<RulesetCreated, String> {
    let files = RULES.min(ABI::from(version as i32));
    let readable = SYSTEM
        .iter()
        .map(std::path::Path::new)
        .chain(sandbox.read.iter().map(std::path::PathBuf::as_path));
    let made = || {
        Ruleset::default()
            .handle_access(AccessFs::from_all(files))?
            .handle_access(AccessNet::from_all(RULES))?
            .scope(Scope::from_all(RULES))?
            .create()?
            .add_rules(path_beneath_rules(readable, AccessFs::from_read(files)))?
            .add_rules(path_beneath_rules(SINKS, AccessFs::from_file(files)))?
            .add_rules(path_beneath_rules(&sandbox.write, AccessFs::from_all(files)))
    };
    made().map_err(|e| format!("Landlock: {e}"))
}

/// Two programs for the kernel: calls that are refused, and one that is said not to exist, so that
/// libraries fall back to an older one whose arguments can be looked at. With an id, signals go to
/// the process of that id and to no other. Where nothing else keeps files from being cut off, calls
/// that would do so are refused: those that say it by a path, and those that open for reading only.
fn filters(own: Option<u32>, truncation_is_known: bool) -> Result<Vec<BpfProgram>, String> {
    let made = || -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
        use SeccompCmpArgLen::{Dword, Qword};
        let where_argument = |number: u8, length, is: SeccompCmpOp, what: u64| {
            SeccompRule::new(vec![SeccompCondition::new(number, length, is, what)?])
        };
        let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
            REFUSED.iter().map(|call| (*call, Vec::new())).collect();
        let thread = libc::CLONE_THREAD as u64;
        let no_thread = where_argument(0, Qword, SeccompCmpOp::MaskedEq(thread), 0)?;
        refused.insert(libc::SYS_clone, vec![no_thread]);
        // Limits may be looked at and not set; it ends when its parent does, whatever it says.
        let sets = where_argument(2, Qword, SeccompCmpOp::Ne, 0)?;
        refused.insert(libc::SYS_prlimit64, vec![sets]);
        let orphans = libc::PR_SET_PDEATHSIG as u64;
        let outlives = where_argument(0, Dword, SeccompCmpOp::Eq, orphans)?;
        refused.insert(libc::SYS_prctl, vec![outlives]);
        let marks = MARKS.map(|mark| where_argument(1, Dword, SeccompCmpOp::Eq, mark));
        refused.insert(libc::SYS_ioctl, marks.into_iter().collect::<Result<_, _>>()?);
        if let Some(own) = own {
            let others = where_argument(0, Dword, SeccompCmpOp::Ne, u64::from(own))?;
            refused.insert(libc::SYS_tgkill, vec![others]);
        }
        let mut absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        if !truncation_is_known {
            let (cut, mode) = (libc::O_TRUNC as u64, (libc::O_TRUNC | libc::O_ACCMODE) as u64);
            let opens = |flags: u8| where_argument(flags, Dword, SeccompCmpOp::MaskedEq(mode), cut);
            refused.insert(libc::SYS_truncate, Vec::new());
            refused.insert(libc::SYS_openat, vec![opens(2)?]);
            #[cfg(target_arch = "x86_64")]
            refused.insert(libc::SYS_open, vec![opens(1)?]);
            absent.insert(libc::SYS_openat2, Vec::new());
        }
        [(refused, libc::EPERM), (absent, libc::ENOSYS)]
            .into_iter()
            .map(|(calls, errno)| filter(calls, errno as u32))
            .collect()
    };
    made().map_err(|e| format!("seccomp: {e}"))
}

fn filter(
    mut calls: BTreeMap<i64, Vec<SeccompRule>>,
    errno: u32,
) -> Result<BpfProgram, seccompiler::BackendError> {
    if let Some(offset) = SECOND_NUMBERS {
        let second: Vec<_> = calls.iter().map(|(n, rules)| (n + offset, rules.clone())).collect();
        calls.extend(second);
    }
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(calls, SeccompAction::Allow, SeccompAction::Errno(errno), arch)?.try_into()
}

/// Gives bubblewrap the filters, which it installs when it has done its own work.
fn hand_over(command: &mut Command, filters: &[BpfProgram]) -> Result<Vec<std::fs::File>, String> {
    let write = |filter: &BpfProgram| -> io::Result<std::fs::File> {
        // SAFETY: the name is a C string, and the descriptor that comes back is nobody else's.
        let mut file = unsafe {
            let fd = libc::memfd_create(c"seccomp".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            std::fs::File::from_raw_fd(fd)
        };
        for step in filter {
            file.write_all(&step.code.to_ne_bytes())?;
            file.write_all(&[step.jt, step.jf])?;
            file.write_all(&step.k.to_ne_bytes())?;
        }
        file.rewind()?;
        Ok(file)
    };
    let mut files = Vec::new();
    for filter in filters {
        let file = write(filter).map_err(|e| format!("seccomp: {e}"))?;
        command.arg("--add-seccomp-fd").arg(file.as_raw_fd().to_string());
        files.push(file);
    }
    Ok(files)
}
