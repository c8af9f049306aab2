//! Names of compiler-made helpers, for processes that compile a library's own tactics.
//!
//! Lean's compiler inlines library functions, and their bodies call helpers that an earlier run of
//! it made (`_redArg`, `_lam_0`, loops that were private). The package has the code of each, and
//! the signature of that code, but no constant by that name, so the compiler stops at "unknown
//! constant". Here each gets one, an unsafe axiom, which the kernel lets no theorem use, together
//! with its signature, in one module.
//!
//! Who elaborates a file of a library that is compiled so imports that module: the process that
//! compiles it, and provers and challengers that open it, or its tactics and notation would not run
//! there. Nothing that is kept names it: a compiled module has lost that import (`olean.rs`), a
//! challenge does not list it, and a judge could not find it.
//!
//! It is made once: listed from the package's files, with the types of a small module that Lean
//! itself compiles, one type for each signature.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::assets;
use crate::cache::{self, Prepared};
use crate::compile::elaborate;
use crate::error::Error;
use crate::launch::{Launch, WRITTEN_AT};
use crate::olean::{self, CODE, Module, ROOT_AT, Writer};
use crate::options::Options;
use crate::source::Source;
use crate::worker::{Task, Worker};

/// The module's name.
pub(crate) const MODULE: &str = "CatamountHelpers";
/// Changes with what the module holds.
const FORMAT: &str = "1";
/// The module that has a constant for each signature, and its constants' names before their number.
const TYPES: &str = "CatamountTypes";
const TYPE: &str = "type";

/// Where Lean finds the module, which is made at the first call.
pub(crate) fn folder(prepared: &Prepared, options: &Options) -> Result<PathBuf, Error> {
    let folder = prepared.cache.join(format!("helpers-{}", &key()[..16]));
    let name = |folder: &Path| folder.join(MODULE).with_extension("olean");
    if name(&folder).is_file() {
        return Ok(folder);
    }
    let doing = "listing what the package's compiler asks for";
    let working = cache::first_use(doing);
    cache::build(&folder, |folder| {
        let failed = |why: String| Error::prepare(doing, why);
        let package = Package::read(&prepared.runtime.join("lib")).map_err(failed)?;
        let types = compiled(prepared, options, &package.types())?;
        let module = package.module(types).map_err(failed)?;
        fs::write(name(folder), module).map_err(|e| failed(e.to_string()))
    })?;
    working.done();
    Ok(folder)
}

/// Names what the module is made from.
pub(crate) fn key() -> String {
    assets::sha256(&[FORMAT.as_bytes(), cache::lean_key().as_bytes()])
}

/// Has Lean compile the module of types.
fn compiled(prepared: &Prepared, options: &Options, text: &str) -> Result<Vec<u8>, Error> {
    let failed = |why: String| Error::prepare("compiling the types of helpers", why);
    let launch = Launch::Wasm(Prepared { writes: true, ..prepared.clone() });
    let mut worker = Worker::new(launch, Arc::new(options.clone()));
    let source = Source {
        path: format!("{TYPES}.lean"),
        module: TYPES.into(),
        text: text.into(),
        imports: vec![],
        without: vec![],
        options: String::new(),
    };
    let save = format!("{WRITTEN_AT}/{TYPES}");
    let task = Task { trace: false, proofs: true, save: &save };
    let reply = elaborate(&mut worker, &source, task)?.map_err(failed)?;
    if let Some(error) = reply.errors.first() {
        return Err(failed(format!("line {}: {}", error.line, error.error)));
    }
    let folder = worker.scratch().ok_or_else(|| failed("nothing was written".into()))?;
    fs::read(folder.join(TYPES)).map_err(|e| failed(e.to_string()))
}

/// The package's modules, and the code in them that has no constant.
struct Package {
    modules: Vec<Module>,
    /// By name: in which module, its declaration there, and the number of its type.
    helpers: BTreeMap<String, (usize, u32, usize)>,
    /// The types, in the order of their numbers.
    types: Vec<String>,
}

impl Package {
    fn read(folder: &Path) -> Result<Package, String> {
        let mut files = Vec::new();
        collect(folder, &mut files).map_err(|e| e.to_string())?;
        files.sort();
        let mut package = Package { modules: vec![], helpers: BTreeMap::new(), types: vec![] };
        let (mut constants, mut numbers) = (HashSet::new(), HashMap::new());
        for (at, file) in files.iter().enumerate() {
            let bytes = fs::read(file).map_err(|e| e.to_string())?;
            package.modules.push(Module::new(bytes));
            let module = &package.modules[at];
            let [_, names, _, _, entries] = module.fields(module.word(ROOT_AT)?)?;
            for name in module.items(names)? {
                constants.insert(module.name(name)?);
            }
            for entry in module.items(entries)? {
                let [extension, values] = module.fields(entry)?;
                if module.name(extension)? != CODE {
                    continue;
                }
                for declaration in module.items(values)? {
                    let [name, parameters, result] = module.fields(declaration)?;
                    let text = signature(module, parameters, result)?;
                    let Some(text) = text.filter(|_| module.is_plain(name) == Ok(true)) else {
                        continue;
                    };
                    let next = numbers.len();
                    let number = *numbers.entry(text.clone()).or_insert(next);
                    if number == next {
                        package.types.push(text);
                    }
                    package.helpers.insert(module.name(name)?, (at, declaration, number));
                }
            }
        }
        package.helpers.retain(|name, _| !constants.contains(name));
        Ok(package)
    }

    /// The module of types, for Lean to compile.
    fn types(&self) -> String {
        let lines = self.types.iter().enumerate();
        lines.map(|(i, text)| format!("unsafe axiom {TYPE}{i} : {text}\n")).collect()
    }

    /// The module of helpers, made from the compiled module of types.
    fn module(&self, types: Vec<u8>) -> Result<Vec<u8>, String> {
        let types = Module::new(types);
        let [imports, names, constants, extra, _] = types.fields(types.word(ROOT_AT)?)?;
        let mut typed = HashMap::new();
        for (name, constant) in types.items(names)?.into_iter().zip(types.items(constants)?) {
            let value = types.first_field(types.first_field(constant)?)?;
            let [_, levels, kind] = types.fields(value)?;
            typed.insert(types.name(name)?, (levels, kind));
        }
        let mut out = Writer::new(&types)?;
        let mut copied: Vec<HashMap<u32, u32>> = vec![HashMap::new(); self.modules.len()];
        let (mut all_names, mut all_constants, mut codes) = (vec![], vec![], vec![]);
        for (at, declaration, number) in self.helpers.values() {
            let (module, copied) = (&self.modules[*at], &mut copied[*at]);
            let [name, parameters, result] = module.fields(*declaration)?;
            let hash = module.hash(name)?;
            let name = out.copy(module, name, copied)?;
            let parameters = out.copy(module, parameters, copied)?;
            let result = out.copy(module, result, copied)?;
            // Decl.extern(name, parameters, result, where else it is: nowhere).
            codes.push((hash, out.tagged(&[name, parameters, result, olean::NOTHING], 1)));
            let (levels, kind) =
                typed.get(&format!("{TYPE}{number}")).ok_or("a type was not compiled")?;
            all_names.push(name);
            all_constants.push(out.unsafe_axiom(name, *levels, *kind));
        }
        // Lean looks code up by halving, in the order of the names' hashes.
        codes.sort();
        let codes: Vec<u32> = codes.into_iter().map(|(_, code)| code).collect();
        let codes = out.array(&codes);
        let extension = self.extension()?;
        let extension = out.copy(&self.modules[extension.0], extension.1, &mut HashMap::new())?;
        let entry = out.constructor(&[extension, codes]);
        let entries = out.array(&[entry]);
        let (names, constants) = (out.array(&all_names), out.array(&all_constants));
        let fields = [imports, names, constants, extra, entries];
        let root = out.constructor_with_flag(&fields, 0);
        Ok(out.finish(root))
    }

    /// The name of the extension that code is kept under, as some module has it.
    fn extension(&self) -> Result<(usize, u32), String> {
        for (at, module) in self.modules.iter().enumerate() {
            let [_, _, _, _, entries] = module.fields(module.word(ROOT_AT)?)?;
            for entry in module.items(entries)? {
                let name = module.first_field(entry)?;
                if module.name(name)? == CODE {
                    return Ok((at, name));
                }
            }
        }
        Err("the package has no code".into())
    }
}

/// The compiled modules below a folder. Those that begin with `._` are another system's.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if path.is_dir() {
            collect(&path, files)?;
        } else if !hidden && path.extension().is_some_and(|e| e == "olean") {
            files.push(path);
        }
    }
    Ok(())
}

/// A signature as a type; none if it has types that only code of its own kind knows.
fn signature(module: &Module, parameters: u32, result: u32) -> Result<Option<String>, String> {
    let mut types = Vec::new();
    for parameter in module.items(parameters)? {
        let [_, kind] = module.fields(parameter)?;
        types.push(kind);
    }
    types.push(result);
    let words: Option<Vec<&str>> = types.into_iter().map(word).collect();
    Ok(words.map(|words| words.join(" → ")))
}

/// A type of Lean's intermediate representation (`IRType`) as one of Lean.
fn word(kind: u32) -> Option<&'static str> {
    const WORDS: [&str; 14] = [
        "Float", "UInt8", "UInt16", "UInt32", "UInt64", "USize", "lcErased", "lcAny", "lcAny",
        "Float32", "", "", "lcAny", "lcVoid",
    ];
    let plain = kind & 1 == 1;
    WORDS.get((kind >> 1) as usize).copied().filter(|word| plain && !word.is_empty())
}
