// Rewrites lean.wasm so that its function exports become table entries.
//
// The shipped module exports 192,675 functions. Older engines refuse more than 100,000 exports, and every instance
// builds one JavaScript object for each. Here all but the few that JavaScript calls by name move into the function
// table; a text file of lines "symbol<TAB>slot" lets dlsym find them.
"use strict";
const fs = require("fs");

const TABLE = 4, EXPORT = 7, ELEMENT = 9;

/** Unsigned LEB128. */
function unsigned(n) {
  const out = [];
  do {
    let byte = n % 128;
    n = Math.floor(n / 128);
    if (n) byte |= 128;
    out.push(byte);
  } while (n);
  return Buffer.from(out);
}

/** Signed LEB128 of a non-negative number, as `i32.const` wants it. */
function signed(n) {
  const out = [];
  for (;;) {
    const byte = n & 127;
    n >>= 7;
    if (n === 0 && !(byte & 64)) return Buffer.from([...out, byte]);
    out.push(byte | 128);
  }
}

/** Reads `input`, keeps the exports named in `keepNames`, writes the module and its symbol file. */
function slimWasm(input, keepNames, output, symbolFile) {
  const b = fs.readFileSync(input);
  let pos = 8;
  const number = () => {
    let r = 0, scale = 1;
    for (;;) {
      const byte = b[pos++];
      r += (byte & 127) * scale;
      scale *= 128;
      if (!(byte & 128)) return r;
    }
  };
  const expect = (what, ok) => { if (!ok) throw new Error(`lean.wasm: unexpected ${what}`); };

  const sections = [];
  while (pos < b.length) {
    const id = b[pos++], size = number();
    sections.push({ id, start: pos, end: pos + size });
    pos += size;
  }
  const section = (id) => {
    const found = sections.find((s) => s.id === id);
    expect(`module without section ${id}`, found);
    return found;
  };

  // One funcref table without a maximum.
  pos = section(TABLE).start;
  expect("table section", number() === 1 && b[pos++] === 0x70 && b[pos++] === 0);
  const tableSize = number();

  // One active element segment: which functions already sit in which slot.
  const element = section(ELEMENT);
  pos = element.start;
  expect("element section", number() === 1 && number() === 0 && b[pos++] === 0x41);
  const offset = number();
  expect("element offset", b[pos++] === 0x0b);
  const filled = number(), slotOf = new Map();
  for (let i = 0; i < filled; i++) {
    const f = number();
    if (!slotOf.has(f)) slotOf.set(f, offset + i);
  }

  pos = section(EXPORT).start;
  const exported = number(), keep = new Set(keepNames), kept = [], added = [], symbols = [];
  for (let i = 0; i < exported; i++) {
    const at = pos, length = number(), name = b.latin1Slice(pos, pos + length);
    pos += length;
    const kind = b[pos++], index = number();
    const isFunction = kind === 0;
    if (!isFunction || keep.has(name)) kept.push(b.subarray(at, pos));
    if (isFunction) {
      let slot = slotOf.get(index);
      if (slot === undefined) {
        slot = tableSize + added.length;
        slotOf.set(index, slot);
        added.push(unsigned(index));
      }
      symbols.push(`${name}\t${slot}`);
    }
  }

  const rewritten = new Map([
    [TABLE, Buffer.concat([Buffer.from([1, 0x70, 0]), unsigned(tableSize + added.length)])],
    [EXPORT, Buffer.concat([unsigned(kept.length), ...kept])],
    [ELEMENT, Buffer.concat([
      unsigned(2), b.subarray(element.start + 1, element.end),
      unsigned(0), Buffer.from([0x41]), signed(tableSize), Buffer.from([0x0b]), unsigned(added.length), ...added,
    ])],
  ]);
  const out = fs.openSync(output, "w");
  const write = (data) => { for (let o = 0; o < data.length;) o += fs.writeSync(out, data, o); };
  write(b.subarray(0, 8));
  for (const s of sections) {
    const data = rewritten.get(s.id) ?? b.subarray(s.start, s.end);
    write(Buffer.concat([Buffer.from([s.id]), unsigned(data.length)]));
    write(data);
  }
  fs.closeSync(out);
  fs.writeFileSync(symbolFile, symbols.join("\n"), "latin1");
}

module.exports = { slimWasm };
