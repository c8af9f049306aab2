// One-time setup, in two steps that are repeated only when their input changes:
//
//   node prepare.cjs runtime <unpacked package> <runtime folder>            the slimmed module and the small runtime
//   node prepare.cjs server <runtime folder> <folder of sources> <out>      each source, compiled by Lean itself
"use strict";
const fs = require("fs");
const path = require("path");
const { spawnSync } = require("child_process");

const [step, ...folders] = process.argv.slice(2);
const [first, second, third] = folders.map((f) => path.resolve(f));

if (step === "runtime") {
  const { keptExports, patchRuntime } = require("./patch-runtime.cjs");
  const { slimWasm } = require("./slim-wasm.cjs");
  slimWasm(path.join(first, "lean.wasm"), keptExports(first), path.join(second, "lean-slim.wasm"), path.join(second, "lean-slim.syms"));
  patchRuntime(first, path.join(second, "lean-runtime.cjs"));
} else if (step === "server") {
  const { irToOlean } = require("./ir-to-olean.cjs");
  const modules = fs.readdirSync(second).map((name) => path.basename(name, ".lean"));
  for (const module of modules) {
    const settings = {
      runtime: first,
      args: ["-o", `/out/${module}.olean`, `/src/${module}.lean`],
      mounts: [["/src", second, false], ["/out", third, true]],
      pool: 2,
      cwd: "/src",
    };
    const run = spawnSync(process.execPath, ["--stack-size=7500", path.join(__dirname, "host.cjs"), JSON.stringify(settings)],
      { encoding: "utf8", maxBuffer: 1 << 28 });
    const said = (run.stdout + run.stderr).split("\n").filter((l) => l && !/^printed: (\[DEBUG|  - |LLVM Profile|.*mainModule\?)/.test(l));
    if (said.length) console.error(said.join("\n").slice(0, 8000));
    if (run.status !== 0) {
      console.error(`${module}.lean did not compile (status ${run.status})`);
      process.exit(1);
    }
    irToOlean(path.join(third, `${module}.ir`), path.join(third, `${module}.olean`));
  }
  // Their companions describe the modules as compiled, not as rewritten: an import would read them too.
  const kept = new Set(modules.map((module) => `${module}.olean`));
  for (const name of fs.readdirSync(third)) if (!kept.has(name)) fs.rmSync(path.join(third, name));
} else {
  console.error("usage: prepare.cjs runtime PACKAGE OUT | prepare.cjs server RUNTIME SOURCE OUT");
  process.exit(2);
}
