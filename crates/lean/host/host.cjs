// Runs the WebAssembly build of Lean 4 on a patched runtime.
//
//   node --stack-size=N host.cjs '<settings as JSON>'
//
// Settings: runtime (folder made by prepare.cjs), args, boot (module whose `main` to run; absent: the `lean` command),
// mounts ([guest, host folder, writable]), env, cwd, maxMb, pool, stackMb, watchParent.
//
// The module's first descriptor 1 is the channel of answers. No path leads to it, nor do other threads: what they print, and
// what is printed to any other descriptor, goes to stderr, marked and cut.
"use strict";
const fs = require("fs");
const path = require("path");
const { guardFiles } = require("./sandbox.cjs");

const settings = JSON.parse(process.argv[2]);
const at = (name) => path.join(settings.runtime, name);
const MIB = 1048576, PAGES_PER_MIB = 16, FATAL = 70, STDIN = 0, ANSWERS = 1;
const maxPages = (settings.maxMb ?? 2048) * PAGES_PER_MIB;
const mounts = [["/lean/lib", at("lib"), false], ...(settings.mounts ?? [])];
const writable = new Set(mounts.filter((mount) => mount[2]).map((mount) => mount[1]));

// The main thread sits inside wasm and cannot notice that its parent is gone: a second thread does, so that a tactic that
// never ends does not outlive the program that asked for it. Where the system ends children itself, it is not asked for.
if (settings.watchParent) {
  const { Worker } = require("worker_threads");
  const watch = `const parent = process.ppid;
    setInterval(() => { if (process.ppid !== parent) process.kill(process.pid, "SIGKILL"); }, 1000);`;
  new Worker(watch, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 } }).unref();
}

function writeAll(fd, bytes) {
  for (let o = 0; o < bytes.length;) {
    try {
      o += fs.writeSync(fd, bytes, o);
    } catch (e) {
      if (e.code !== "EAGAIN") throw e;
    }
  }
}

/** What code inside Lean prints. Every line is marked, so that none passes for the host's word, and one answer's worth is
 * cut at so many bytes. */
const MOST_PRINTED = 16384, MARK = "printed: ";
let printed = 0, line = Buffer.alloc(0);
function print(bytes) {
  const kept = bytes.subarray(0, Math.max(0, MOST_PRINTED - printed));
  if (printed <= MOST_PRINTED && printed + bytes.length > MOST_PRINTED) writeAll(2, Buffer.from(`${MARK}(more, which is not kept)\n`));
  printed += bytes.length;
  line = Buffer.concat([line, kept]);
  for (let end; (end = line.indexOf(10)) >= 0; line = line.subarray(end + 1)) {
    writeAll(2, Buffer.concat([Buffer.from(MARK), line.subarray(0, end + 1)]));
  }
}

const buffer = Buffer.alloc(65536);
globalThis.__leanHost = {
  wasm: at("lean-slim.wasm"),
  symbols: at("lean-slim.syms"),
  sandbox: path.join(__dirname, "sandbox.cjs"),
  writes: writable.size > 0,
  args: settings.args ?? [],
  boot: settings.boot,
  pool: settings.pool ?? 0,
  initialMemory: 512 * MIB,
  maxPages,
  shadowStack: 64 * MIB,
  forWorkers: {
    symbols: at("lean-slim.syms"),
    sandbox: path.join(__dirname, "sandbox.cjs"),
    writes: writable.size > 0,
    stackMb: settings.stackMb ?? 64,
    maxPages,
  },
  debug: undefined,
  print: (...words) => print(Buffer.from(words.join(" ") + "\n")),
  mount(FS, NODEFS, ENV) {
    Object.assign(ENV, { LEAN_PATH: "/lean/lib" }, settings.env);
    for (const [guest, folder] of mounts) {
      FS.mkdirTree(guest);
      FS.mount(NODEFS, { root: folder }, guest);
    }
    FS.mkdirTree("/lean/bin");
    FS.writeFile("/lean/bin/lean", "");
    guardFiles(FS, NODEFS, (folder) => writable.has(folder));
    FS.chdir(settings.cwd ?? "/");
  },
  read(stream, thread, target, offset, length) {
    if (stream.fd !== STDIN || thread) return 0;
    for (;;) {
      try {
        const n = fs.readSync(STDIN, buffer, 0, Math.min(length, buffer.length));
        for (let i = 0; i < n; i++) target[offset + i] = buffer[i];
        return n;
      } catch (e) {
        if (e.code === "EOF") return 0;
        if (e.code !== "EAGAIN") throw e;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
    }
  },
  write(stream, thread, source, offset, length) {
    const bytes = Buffer.from(source.slice(offset, offset + length));
    if (stream.fd === ANSWERS && !thread) {
      printed = 0;
      writeAll(ANSWERS, bytes);
    } else {
      print(bytes);
    }
    return length;
  },
};

// A trap (out of memory, stack overflow, corrupted heap) cannot be recovered from: say so briefly and leave.
const fatal = (e) => {
  const text = e && e.message ? `${e.name}: ${e.message}` : `C++ exception ${e}`;
  fs.writeSync(2, `lean host: fatal: ${text.slice(0, 300).replaceAll("\n", " ")}\n`);
  process.exit(FATAL);
};
process.on("uncaughtException", fatal);
process.on("unhandledRejection", fatal);
require(at("lean-runtime.cjs"));
