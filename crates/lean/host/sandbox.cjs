// What Lean's WebAssembly module may do to the machine it runs on: read the folders that were mounted for it, print,
// answer, and nothing else.
//
// A tactic can run code (a tactic's configuration is evaluated), and such code can call anything the module can reach.
// Emscripten's library, which is linked in whole, holds `system`, `eval`, sockets and a loader of further modules. So the
// module gets the imports that are named here, and every other one is replaced before it is instantiated.
"use strict";

const NO_SUCH_CALL = 52, NOT_PERMITTED = 2, READ_ONLY = 69, NO_MORE_THREADS = 6;
const O_WRITING = 1 | 2 | 64 | 512 | 1024;   // write, read and write, create, truncate, append
const MOST_THREADS = 8;

/** Calls that compute, or look at what belongs to the module. */
const COMPUTING = [
  "__assert_fail", "_abort_js", "exit", "proc_exit", "llvm_eh_typeid_for", "_emscripten_throw_longjmp", "__resumeException",
  "emscripten_resize_heap", "emscripten_get_heap_max", "_mmap_js", "_munmap_js",
  "clock_time_get", "clock_res_get", "emscripten_date_now", "emscripten_get_now", "uv__hrtime",
  "_localtime_js", "_gmtime_js", "_mktime_js", "_timegm_js", "_tzset_js",
  "environ_get", "environ_sizes_get", "random_get", "_emscripten_get_progname", "emscripten_num_logical_cores",
  "emscripten_asm_const_int", "_dlsym_js", "__call_sighandler",
];
const THREADS = [
  "__pthread_create_js", "_emscripten_init_main_thread_js", "_emscripten_thread_cleanup", "_emscripten_thread_exit_joinable",
  "_emscripten_thread_mailbox_await", "_emscripten_thread_set_strongref", "_emscripten_notify_mailbox_postmessage",
  "_emscripten_receive_on_main_thread_js", "_emscripten_runtime_keepalive_clear", "emscripten_check_blocking_allowed",
  "emscripten_exit_with_live_runtime", "emscripten_unwind_to_js_event_loop",
];
const READING = [
  "__syscall_openat", "__syscall_stat64", "__syscall_lstat64", "__syscall_fstat64", "__syscall_newfstatat",
  "__syscall_faccessat", "__syscall_getdents64", "__syscall_readlinkat", "__syscall_getcwd", "__syscall_fcntl64",
  "__syscall_ioctl", "fd_close", "fd_read", "fd_pread", "fd_seek", "fd_write", "fd_fdstat_get", "fd_sync",
];
/** Calls that change files; each is checked again where it reaches a mounted folder (`guardFiles`). */
const WRITING = [
  "__syscall_unlinkat", "__syscall_renameat", "__syscall_mkdirat", "__syscall_rmdir", "__syscall_ftruncate64",
  "__syscall_truncate64", "__syscall_chmod", "__syscall_fchmod", "__syscall_fchmodat2", "__syscall_utimensat", "fd_pwrite",
];
/** The means by which the runtime's own threads reach the main one. */
const BETWEEN_THREADS = new Set(["exitOnMainThread", "pthreadCreateProxied"]);

const HARMLESS_DEVICES = ["/dev/null", "/dev/random", "/dev/urandom"];

/** What stands in for a call that is not permitted. */
function refusal(name) {
  if (name.startsWith("__syscall_")) return () => -NO_SUCH_CALL;
  if (name.startsWith("fd_")) return () => NO_SUCH_CALL;
  return () => { throw new Error(`refused: ${name}`); };
}

/** Takes from the module's imports, and from the table by which threads ask the main one, what is not permitted. */
function confine(imports, table, writes) {
  const permitted = new Set([...COMPUTING, ...THREADS, ...READING, ...(writes ? WRITING : [])]);
  const may = (name) => permitted.has(name) || name.startsWith("invoke_") || name.startsWith("__cxa_");
  const names = new Map();
  for (const [name, value] of Object.entries(imports)) {
    if (typeof value !== "function") continue;
    names.set(value, name);
    if (!may(name)) imports[name] = withSignature(refusal(name), value);
  }
  table.forEach((call, i) => {
    const name = names.get(call) ?? call.name;
    if (!may(name) && !BETWEEN_THREADS.has(name)) table[i] = refusal(name);
  });
  const create = imports.__pthread_create_js;
  let threads = 0;
  imports.__pthread_create_js = withSignature((...args) => (++threads > MOST_THREADS ? NO_MORE_THREADS : create(...args)), create);
}

/** The runtime keeps a function's WebAssembly type as a property of it. */
function withSignature(call, original) {
  return Object.assign(call, original);
}

/** Lets files be opened below the mounted folders only, and written below those of them that `isWritable` names. */
function guardFiles(FS, NODEFS, isWritable) {
  const refuse = (errno) => { throw new FS.ErrnoError(errno); };
  const folderOf = (node) => node.mount.opts.root;
  const guard = (ops, name, nodeOf) => {
    const original = ops[name];
    ops[name] = (...args) => (isWritable(folderOf(nodeOf(...args))) ? original(...args) : refuse(READ_ONLY));
  };
  // Nothing is marked: the kernel refuses that to provers, and the runtime asks for it whenever it makes a file.
  for (const ops of [NODEFS.node_ops, NODEFS.stream_ops]) {
    const setattr = ops.setattr;
    if (setattr) ops.setattr = (of, attr) => (attr.size === undefined ? undefined : setattr(of, { size: attr.size }));
  }
  for (const name of ["setattr", "mknod", "rename", "unlink", "rmdir", "symlink"]) guard(NODEFS.node_ops, name, (node) => node);
  for (const name of ["setattr", "write", "msync"]) guard(NODEFS.stream_ops, name, (stream) => stream.node);

  // Devices lead to the host's own streams, `/proc` to other open files, and the folders in memory are nobody's to fill.
  const open = FS.open;
  FS.open = (path, flags, mode) => {
    const found = typeof path === "object" ? { node: path } : FS.lookupPath(path, { follow: true, noent_okay: true });
    const node = found.node ?? FS.lookupPath(found.path, { parent: true }).node;
    const mounted = node.mount.type === NODEFS;
    if (flags & O_WRITING && !(mounted && isWritable(folderOf(node)))) refuse(mounted ? READ_ONLY : NOT_PERMITTED);
    const plain = FS.isDir(node.mode) || FS.isFile(node.mode) || HARMLESS_DEVICES.includes(FS.getPath(node));
    if (!mounted && !plain) refuse(NOT_PERMITTED);
    return open(path, flags, mode);
  };
}

module.exports = { confine, guardFiles };
