// Runs the WebAssembly build of Lean 4 on a patched runtime.
//
//   node --stack-size=N host.cjs '<settings as JSON>'
//
// Settings: runtime (folder made by prepare.cjs), args, boot (module whose `main` to run; absent: the `lean` command),
// mounts ([guest, host folder, writable]), env, cwd, maxMb, pool, stackMb, watchParent.
"use strict";
const fs = require("fs");
const path = require("path");
const { Worker } = require("worker_threads");

const settings = JSON.parse(process.argv[2]);
const at = (name) => path.join(settings.runtime, name);
const MIB = 1048576, PAGES_PER_MIB = 16, FATAL = 70, READ_ONLY_FILE_SYSTEM = 69;
const maxPages = (settings.maxMb ?? 2048) * PAGES_PER_MIB;

// The main thread sits inside wasm and cannot notice that its parent is gone: a second thread does, so that a tactic that
// never ends does not outlive the program that asked for it.
if (settings.watchParent) {
  const watch = `const parent = process.ppid;
    setInterval(() => { if (process.ppid !== parent) process.kill(process.pid, "SIGKILL"); }, 1000);`;
  new Worker(watch, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 } }).unref();
}

/** Takes every way to change a file away from a mounted folder: code run by a proof must not reach the disk. */
function makeReadOnly(FS, NODEFS, isWritable) {
  const folderOf = (node) => node.mount.opts.root;
  const guard = (ops, name, nodeOf) => {
    const original = ops[name];
    ops[name] = (...args) => {
      if (!isWritable(folderOf(nodeOf(...args)))) throw new FS.ErrnoError(READ_ONLY_FILE_SYSTEM);
      return original(...args);
    };
  };
  for (const name of ["setattr", "mknod", "rename", "unlink", "rmdir", "symlink"]) guard(NODEFS.node_ops, name, (node) => node);
  for (const name of ["setattr", "write", "msync"]) guard(NODEFS.stream_ops, name, (stream) => stream.node);
  const open = NODEFS.stream_ops.open, WRITING = 1 | 2 | 64 | 512;
  NODEFS.stream_ops.open = (stream) => {
    if (stream.flags & WRITING && !isWritable(folderOf(stream.node))) throw new FS.ErrnoError(READ_ONLY_FILE_SYSTEM);
    return open(stream);
  };
}

const buffer = Buffer.alloc(65536);
globalThis.__leanHost = {
  wasm: at("lean-slim.wasm"),
  symbols: at("lean-slim.syms"),
  args: settings.args ?? [],
  boot: settings.boot,
  pool: settings.pool ?? 0,
  initialMemory: 512 * MIB,
  maxPages,
  shadowStack: 64 * MIB,
  forWorkers: { symbols: at("lean-slim.syms"), stackMb: settings.stackMb ?? 64, maxPages },
  debug: undefined,
  mount(FS, NODEFS, ENV) {
    Object.assign(ENV, { LEAN_PATH: "/lean/lib" }, settings.env);
    const mounts = [["/lean/lib", at("lib"), false], ...(settings.mounts ?? [])];
    const writable = new Set(mounts.filter((m) => m[2]).map((m) => m[1]));
    for (const [guest, folder] of mounts) {
      FS.mkdirTree(guest);
      FS.mount(NODEFS, { root: folder }, guest);
    }
    FS.mkdirTree("/lean/bin");
    FS.writeFile("/lean/bin/lean", "");
    makeReadOnly(FS, NODEFS, (folder) => writable.has(folder));
    FS.chdir(settings.cwd ?? "/");
  },
  readStdin(target, offset, length) {
    for (;;) {
      try {
        const n = fs.readSync(0, buffer, 0, Math.min(length, buffer.length));
        for (let i = 0; i < n; i++) target[offset + i] = buffer[i];
        return n;
      } catch (e) {
        if (e.code === "EOF") return 0;
        if (e.code !== "EAGAIN") throw e;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
    }
  },
  write(stream, source, offset, length) {
    const fd = (stream.path && stream.path.includes("stderr")) || stream.fd === 2 ? 2 : 1;
    const bytes = Buffer.from(source.slice(offset, offset + length));
    for (let o = 0; o < bytes.length;) {
      try {
        o += fs.writeSync(fd, bytes, o);
      } catch (e) {
        if (e.code !== "EAGAIN") throw e;
      }
    }
    return length;
  },
};

// A trap (out of memory, stack overflow, corrupted heap) cannot be recovered from: say so briefly and leave.
const fatal = (e) => {
  const text = e && e.message ? `${e.name}: ${e.message}` : `C++ exception ${e}`;
  fs.writeSync(2, `lean host: fatal: ${text.slice(0, 300)}\n`);
  process.exit(FATAL);
};
process.on("uncaughtException", fatal);
process.on("unhandledRejection", fatal);
require(at("lean-runtime.cjs"));
