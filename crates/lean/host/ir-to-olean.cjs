// Turns Server.ir (written by `lean -o`) into an importable Server.olean that carries only code.
//
// The WebAssembly build never loads .ir files, so the interpreter cannot see the code of an imported module. Here the
// name of every IR declaration also becomes a dummy constant of the module, which is what makes the interpreter look
// into the module's IR table. The result is imported only to run `main`; proofs live in a separate environment that
// never sees these constants.
//
// File layout (32 bit): a header of 80 bytes, the base address, the root pointer, then objects side by side
// (rc: i32, size: u16, fields: u8, tag: u8, the fields). Root: ModuleData(imports, constNames, constants,
// extraConstNames, entries; isModule).
"use strict";
const fs = require("fs");

const BASE_AT = 80, ROOT_AT = 84, ARRAY_TAG = 246, NAME_STR = 1;

function irToOlean(source, target) {
  const b = fs.readFileSync(source), u32 = (o) => b.readUInt32LE(o);
  const base = u32(BASE_AT), at = (p) => p - base;
  const fields = (p) => Array.from({ length: b[at(p) + 6] }, (_, i) => u32(at(p) + 8 + 4 * i));
  const items = (p) => Array.from({ length: u32(at(p) + 8) }, (_, i) => u32(at(p) + 16 + 4 * i));
  const text = (p) => b.toString("utf8", at(p) + 20, at(p) + 19 + u32(at(p) + 8));
  const name = (p) => {
    if (p & 1) return "";
    const [prefix, last] = fields(p);
    const part = b[at(p) + 7] === NAME_STR ? text(last) : String(last >>> 1), before = name(prefix);
    return before ? `${before}.${part}` : part;
  };

  const [imports, , , extra, entries] = fields(u32(ROOT_AT));
  const names = new Map(items(extra).map((p) => [name(p), p]));
  for (const entry of items(entries)) {
    const [extension, values] = fields(entry);
    if (name(extension) !== "Lean.IR.declMapExt") continue;
    for (const declaration of items(values)) {
      const p = fields(declaration)[0];
      if (!names.has(name(p))) names.set(name(p), p);
    }
  }
  if (!names.has("main")) throw new Error("the server's code has no `main`");

  const parts = [b];
  let end = b.length;
  const put = (words) => {
    const x = Buffer.alloc(words.length * 4);
    words.forEach((w, i) => x.writeUInt32LE(w >>> 0, i * 4));
    parts.push(x);
    const p = base + end;
    end += x.length;
    return p;
  };
  const head = (size, n, tag) => [0, (size | (n << 16) | (tag << 24)) >>> 0];
  const array = (xs) => put([...head(1, 0, ARRAY_TAG), xs.length, xs.length, ...xs]);
  const pointers = [...names.values()];
  const value = put([...head(20, 3, 0), pointers[0], 1, 1]);   // ConstantVal: a name, no levels, no type
  const axiom = put([...head(16, 1, 0), value, 0]);            // AxiomVal, isUnsafe = false
  const info = put([...head(12, 1, 0), axiom]);                // ConstantInfo.axiomInfo
  const constNames = array(pointers), constants = array(pointers.map(() => info));
  const root = put([...head(32, 5, 0), imports, constNames, constants, extra, entries, 0]);
  const out = Buffer.concat(parts);
  out.writeUInt32LE(root, ROOT_AT);
  fs.writeFileSync(target, out);
}

module.exports = { irToOlean };
