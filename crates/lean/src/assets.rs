//! What the binary carries: the proof server's sources and the scripts of the WebAssembly host.

use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

/// How the proof server's module begins: what it imports.
const SERVER_HEAD: &str = include_str!("../lean/Server.lean");
/// Names that the compiler of the WebAssembly package does not find by itself.
const STUBS: &str = include_str!("../lean/Stubs.lean");
/// How modules are imported where they cannot be mapped into memory.
const IMPORTS: &str = include_str!("../lean/Imports.lean");
/// Names that older Leans have not, and how modules are imported where they are mapped.
const SHIMS: &str = include_str!("../lean/Shims.lean");
/// The rest of it, kept in files of one concept each.
const SERVER_BODY: &str = concat!(
    include_str!("../lean/Base.lean"),
    include_str!("../lean/Context.lean"),
    include_str!("../lean/Policy.lean"),
    include_str!("../lean/Hiding.lean"),
    include_str!("../lean/Blocks.lean"),
    include_str!("../lean/Header.lean"),
    include_str!("../lean/Statement.lean"),
    include_str!("../lean/Bend.lean"),
    include_str!("../lean/Kernel.lean"),
    include_str!("../lean/Export.lean"),
    include_str!("../lean/Proof.lean"),
    include_str!("../lean/Hypotheses.lean"),
    include_str!("../lean/Challenge.lean"),
    include_str!("../lean/Source.lean"),
    include_str!("../lean/Steps.lean"),
    include_str!("../lean/Premises.lean"),
    include_str!("../lean/Trace.lean"),
    include_str!("../lean/Messages.lean"),
    include_str!("../lean/File.lean"),
    include_str!("../lean/Serve.lean"),
);

/// What decides how a theorem is traced.
const TRACER: [&str; 5] = [
    include_str!("../lean/Source.lean"),
    include_str!("../lean/Steps.lean"),
    include_str!("../lean/Premises.lean"),
    include_str!("../lean/Trace.lean"),
    include_str!("../lean/File.lean"),
];

/// Names it.
pub(crate) fn tracer_key() -> String {
    sha256(&TRACER.map(str::as_bytes))
}

/// The judge: a module of its own, which elaborates nothing.
const JUDGE: &str = concat!(
    include_str!("../lean/Judge.lean"),
    include_str!("../lean/Base.lean"),
    include_str!("../lean/Terms.lean"),
    include_str!("../lean/Verdict.lean"),
);

/// The modules that the two programs are.
pub(crate) const MODULES: [&str; 2] = ["Server", "Judge"];

/// Both programs by module, as the WebAssembly package compiles them.
pub(crate) fn wasm_programs() -> [(&'static str, String); 2] {
    programs(&[STUBS, IMPORTS])
}

/// Both programs by module, as a toolchain runs them.
pub(crate) fn native_programs() -> [(&'static str, String); 2] {
    programs(&[SHIMS])
}

fn programs(prelude: &[&str]) -> [(&'static str, String); 2] {
    let [server, judge] = MODULES;
    [(server, [SERVER_HEAD, &prelude.concat(), SERVER_BODY].concat()), (judge, JUDGE.to_owned())]
}

/// The scripts of the WebAssembly host, by file name.
pub(crate) const SCRIPTS: [(&str, &str); 6] = [
    ("host.cjs", include_str!("../host/host.cjs")),
    ("sandbox.cjs", include_str!("../host/sandbox.cjs")),
    ("prepare.cjs", include_str!("../host/prepare.cjs")),
    ("patch-runtime.cjs", include_str!("../host/patch-runtime.cjs")),
    ("slim-wasm.cjs", include_str!("../host/slim-wasm.cjs")),
    ("ir-to-olean.cjs", include_str!("../host/ir-to-olean.cjs")),
];

/// Commands to run after a module under WebAssembly, where the package's compiler cannot build what
/// the module defines: the same tactics and commands in simpler words.
const PATCHES: [(&str, &str); 3] = [
    ("Batteries.Tactic.Alias", include_str!("../patches/Batteries.Tactic.Alias.lean")),
    ("Batteries.Tactic.Init", include_str!("../patches/Batteries.Tactic.Init.lean")),
    ("Batteries.Tactic.SeqFocus", include_str!("../patches/Batteries.Tactic.SeqFocus.lean")),
];

/// Names that the package has not, or not in this way, and their definitions, for modules that use
/// them. Without helpers they would not compile anyway.
const NEWER: [(&str, &str); 2] = [
    ("insertKeyValue", include_str!("../patches/names.lean")),
    ("withTraceNodeBefore", include_str!("../patches/tracing.lean")),
];

/// The patch of a module; mostly none. With helpers, what is patched here compiles.
pub(crate) fn patch(module: &str, helpers: bool) -> &'static str {
    let patches: &[(&str, &str)] = if helpers { &[] } else { &PATCHES };
    patches.iter().find(|(name, _)| *name == module).map_or("", |(_, text)| text)
}

/// Commands to run before those of a file with this text, besides what every file gets.
pub(crate) fn newer_names(text: &str, helpers: bool) -> String {
    let used = NEWER.iter().filter(|(name, _)| helpers && text.contains(name));
    used.map(|(_, definition)| *definition).collect()
}

/// Lower-case hexadecimal SHA-256.
pub(crate) fn sha256(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// Writes the host's scripts into `folder`.
pub(crate) fn write_scripts(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (name, text) in SCRIPTS {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}
