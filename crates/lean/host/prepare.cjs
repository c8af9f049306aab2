// One-time setup, in two steps that are repeated only when their input changes:
//
//   node prepare.cjs runtime <unpacked package> <runtime folder>            the slimmed module and the small runtime
//   node prepare.cjs server <runtime folder> <folder of Server.lean> <out>  Server.olean, compiled by Lean itself
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
  const settings = {
    runtime: first,
    args: ["-o", "/out/Server.olean", "/src/Server.lean"],
    mounts: [["/src", second, false], ["/out", third, true]],
    pool: 2,
    cwd: "/src",
  };
  const run = spawnSync(process.execPath, ["--stack-size=7500", path.join(__dirname, "host.cjs"), JSON.stringify(settings)],
    { encoding: "utf8", maxBuffer: 1 << 28 });
  const said = (run.stdout + run.stderr).split("\n").filter((l) => l && !/^printed: (\[DEBUG|  - |LLVM Profile|.*mainModule\?)/.test(l));
  if (said.length) console.error(said.join("\n").slice(0, 8000));
  if (run.status !== 0) {
    console.error(`Server.lean did not compile (status ${run.status})`);
    process.exit(1);
  }
  const { irToOlean } = require("./ir-to-olean.cjs");
  irToOlean(path.join(third, "Server.ir"), path.join(third, "Server.olean"));
  // Its companions describe the module as compiled, not as rewritten: an import would read them too.
  for (const name of fs.readdirSync(third)) if (name !== "Server.olean") fs.rmSync(path.join(third, name));
} else {
  console.error("usage: prepare.cjs runtime PACKAGE OUT | prepare.cjs server RUNTIME SOURCE OUT");
  process.exit(2);
}
