//! A compiled module as the WebAssembly Lean writes it, made fit to be imported again.
//!
//! That Lean was built to import what its package ships, not what it writes itself. Two things
//! stand in the way. The interpreter looks for a declaration's code in the module that the
//! declaration's constant came from, and compiler-made declarations have no constant: here each
//! gets one, an unsafe axiom, which the kernel lets no theorem use. And entries that ask for an
//! initialiser to be run at import, where the compiler could not build that initialiser, or built
//! it on an error, are
//! dropped.
//!
//! The layout (32 bit): a header of 80 bytes, the address that pointers are relative to, the root,
//! then objects side by side, each `rc: i32, size: u16, fields: u8, tag: u8` and its fields. A
//! pointer with its lowest bit set is a number. The root is `ModuleData(imports, constant names,
//! constants, extra constant names, entries by extension; whether it is a module of the new kind)`.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use crate::helpers;

/// Magic, format, flags, Lean's version and the commit it was built from.
pub(crate) const HEADER: usize = 80;
const BASE_AT: usize = 80;
pub(crate) const ROOT_AT: usize = 84;
const LAST_CONSTRUCTOR: u8 = 244;
const ARRAY: u8 = 246;
const STRING: u8 = 249;
/// What stands for `[]`, `none` and the like.
pub(crate) const NOTHING: u32 = 1;
const NAME_STRING: u8 = 1;
const NAME_NUMBER: u8 = 2;
/// The longest chain of parts that a name may have.
const DEEPEST_NAME: usize = 512;

/// Entries of this extension are the code that the interpreter runs.
pub(crate) const CODE: &str = "Lean.IR.declMapExt";
/// Entries of this one name initialisers.
const INITIALISERS: &str = "Lean.regularInitAttr";

/// The module in `bytes`, importable. The error says what of the layout is not as it should be.
/// The module of helpers (`helpers.rs`), if it was compiled with that, it imports no more.
pub(crate) fn importable(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let module = Module::new(bytes);
    let root = module.word(ROOT_AT)?;
    let [imports, names, constants, extra, entries] = module.fields(root)?;
    let flags = module.word(module.at(root)? + 8 + 4 * 5)?;
    let constant_names = module.items(names)?;
    let infos = module.items(constants)?;
    let known: HashSet<String> =
        constant_names.iter().map(|p| module.name(*p)).collect::<Result<_, _>>()?;

    let mut code = HashSet::new();
    let mut added: HashMap<String, u32> = HashMap::new();
    for pointer in module.items(extra)? {
        added.insert(module.name(pointer)?, pointer);
    }
    let entries = module.items(entries)?;
    for entry in &entries {
        let [extension, values] = module.fields(*entry)?;
        if module.name(extension)? == CODE {
            for declaration in module.items(values)? {
                let pointer = module.first_field(declaration)?;
                let name = module.name(pointer)?;
                added.insert(name.clone(), pointer);
                if !module.rests_on_an_error(declaration)? {
                    code.insert(name);
                }
            }
        }
    }
    added.retain(|name, _| !known.contains(name));
    let mut added: Vec<(String, u32)> = added.into_iter().collect();
    added.sort();

    let mut out = Writer::new(&module)?;
    let mut kept_entries = Vec::new();
    for entry in &entries {
        let [extension, values] = module.fields(*entry)?;
        if module.name(extension)? != INITIALISERS {
            kept_entries.push(*entry);
            continue;
        }
        let mut kept = Vec::new();
        for value in module.items(values)? {
            let [declared, initialiser] = module.fields(value)?;
            let runs = if initialiser & 1 == 1 { declared } else { initialiser };
            if code.contains(&module.name(runs)?) {
                kept.push(value);
            }
        }
        let kept = out.array(&kept);
        kept_entries.push(out.constructor(&[extension, kept]));
    }
    let mut all_names = constant_names;
    let mut all_infos = infos;
    if !added.is_empty() {
        let (levels, kind) = module.some_type(&all_infos)?;
        for (_, name) in &added {
            all_names.push(*name);
            all_infos.push(out.unsafe_axiom(*name, levels, kind));
        }
    }
    let mut kept_imports = Vec::new();
    for import in module.items(imports)? {
        if module.name(module.first_field(import)?)? != helpers::MODULE {
            kept_imports.push(import);
        }
    }
    let imports = out.array(&kept_imports);
    let (names, infos) = (out.array(&all_names), out.array(&all_infos));
    let entries = out.array(&kept_entries);
    let root = out.constructor_with_flag(&[imports, names, infos, extra, entries], flags);
    Ok(out.finish(root))
}

/// Whether a module as Lean wrote it asks for initialisers to be run when it is imported.
pub(crate) fn has_initialisers(bytes: Vec<u8>) -> Result<bool, String> {
    let module = Module::new(bytes);
    let [_, _, _, _, entries] = module.fields(module.word(ROOT_AT)?)?;
    for entry in module.items(entries)? {
        let [extension, values] = module.fields(entry)?;
        if module.name(extension)? == INITIALISERS {
            return Ok(!module.items(values)?.is_empty());
        }
    }
    Ok(false)
}

pub(crate) struct Module {
    pub bytes: Vec<u8>,
    /// Bytes of names that may still be written out: they share their parts, so that a small module
    /// could name more than there is memory for.
    names_left: Cell<usize>,
}

/// How many times a module's size its names may take; those of real ones take less than one.
const NAMES: usize = 16;

impl Module {
    pub fn new(bytes: Vec<u8>) -> Module {
        let names_left = Cell::new(bytes.len().saturating_mul(NAMES));
        Module { bytes, names_left }
    }

    pub fn word(&self, at: usize) -> Result<u32, String> {
        let bytes = self.bytes.get(at..at + 4).ok_or("it ends too early")?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Where in the file an object is.
    pub fn at(&self, pointer: u32) -> Result<usize, String> {
        let at = pointer.checked_sub(self.word(BASE_AT)?).map(|at| at as usize);
        at.filter(|at| at % 4 == 0 && (HEADER..self.bytes.len()).contains(at))
            .ok_or_else(|| "a pointer leads out of it".into())
    }

    pub fn tag(&self, pointer: u32) -> Result<u8, String> {
        Ok(self.bytes.get(self.at(pointer)? + 7).copied().unwrap_or_default())
    }

    /// The first `N` fields of a constructor's object.
    pub fn fields<const N: usize>(&self, pointer: u32) -> Result<[u32; N], String> {
        let at = self.at(pointer)?;
        if usize::from(self.bytes.get(at + 6).copied().unwrap_or_default()) < N {
            return Err(format!("an object has not the {N} fields it should have"));
        }
        let mut fields = [0; N];
        for (i, field) in fields.iter_mut().enumerate() {
            *field = self.word(at + 8 + 4 * i)?;
        }
        Ok(fields)
    }

    pub fn first_field(&self, pointer: u32) -> Result<u32, String> {
        self.fields(pointer).map(|[first]| first)
    }

    pub fn items(&self, array: u32) -> Result<Vec<u32>, String> {
        if self.tag(array)? != ARRAY {
            return Err("there is no array where one should be".into());
        }
        let at = self.at(array)?;
        let length = self.word(at + 8)? as usize;
        if length > self.bytes.len() / 4 {
            return Err("an array is longer than the file".into());
        }
        (0..length).map(|i| self.word(at + 16 + 4 * i)).collect()
    }

    pub fn name(&self, mut pointer: u32) -> Result<String, String> {
        let mut parts = Vec::new();
        while pointer & 1 == 0 {
            let [prefix, last] = self.fields(pointer)?;
            parts.push(match self.tag(pointer)? {
                NAME_STRING => self.text(last)?,
                NAME_NUMBER => (last >> 1).to_string(),
                _ => return Err("there is no name where one should be".into()),
            });
            let size = parts.last().map_or(0, |part| part.len() + 1);
            let left = self.names_left.get().checked_sub(size);
            self.names_left.set(left.ok_or("its names are too long")?);
            if parts.len() > DEEPEST_NAME {
                return Err("a name has too many parts".into());
            }
            pointer = prefix;
        }
        parts.reverse();
        Ok(parts.join("."))
    }

    /// Whether code could not be made as it was written; Lean notes what it lacks, and refuses to
    /// run it.
    fn rests_on_an_error(&self, declaration: u32) -> Result<bool, String> {
        // Decl.fdecl(name, parameters, result, body, DeclInfo(the first name that is lacking)).
        if self.tag(declaration)? != 0 {
            return Ok(false);
        }
        let Ok([_, _, _, _, info]) = self.fields(declaration) else { return Ok(false) };
        Ok(match info & 1 == 0 && self.tag(info)? == 0 {
            true => self.first_field(info)? & 1 == 0,
            false => info & 1 == 0,
        })
    }

    /// A name's hash, as Lean keeps it.
    pub fn hash(&self, name: u32) -> Result<u64, String> {
        let at = self.at(name)? + 16;
        Ok(u64::from(self.word(at)?) | u64::from(self.word(at + 4)?) << 32)
    }

    /// Whether none of a name's numbers is a large one, which is an object of another kind.
    pub fn is_plain(&self, mut name: u32) -> Result<bool, String> {
        while name & 1 == 0 {
            let [prefix, last] = self.fields(name)?;
            if self.tag(name)? == NAME_NUMBER && last & 1 == 0 {
                return Ok(false);
            }
            name = prefix;
        }
        Ok(true)
    }

    pub fn text(&self, pointer: u32) -> Result<String, String> {
        if self.tag(pointer)? != STRING {
            return Err("there is no text where some should be".into());
        }
        let at = self.at(pointer)?;
        let size = (self.word(at + 8)? as usize).saturating_sub(1);
        let bytes = self.bytes.get(at + 20..at + 20 + size).ok_or("a text leads out of it")?;
        String::from_utf8(bytes.to_vec()).map_err(|_| "a text is not UTF-8".into())
    }

    /// The universe parameters and the type of some constant: a stand-in needs them, whichever.
    fn some_type(&self, infos: &[u32]) -> Result<(u32, u32), String> {
        let info = infos.first().ok_or("it has code and no constant")?;
        // ConstantInfo.kind(KindVal(ConstantVal(name, levels, type), ..)).
        let value = self.first_field(self.first_field(*info)?)?;
        let [_, levels, kind] = self.fields(value)?;
        Ok((levels, kind))
    }
}

/// The module's bytes with objects after them.
pub(crate) struct Writer {
    bytes: Vec<u8>,
    base: u32,
}

impl Writer {
    pub fn new(module: &Module) -> Result<Writer, String> {
        match module.bytes.len() % 4 {
            0 => Ok(Writer { bytes: module.bytes.clone(), base: module.word(BASE_AT)? }),
            _ => Err("its length is not a whole number of words".into()),
        }
    }

    /// Lean walks through the objects one after another, so nothing may stand between two.
    fn put(&mut self, size: u16, fields: u8, tag: u8, words: impl Iterator<Item = u32>) -> u32 {
        let pointer = self.base.wrapping_add(self.bytes.len() as u32);
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&size.to_le_bytes());
        self.bytes.extend_from_slice(&[fields, tag]);
        self.bytes.extend(words.flat_map(u32::to_le_bytes));
        pointer
    }

    pub fn array(&mut self, items: &[u32]) -> u32 {
        let length = items.len() as u32;
        self.put(1, 0, ARRAY, [length, length].into_iter().chain(items.iter().copied()))
    }

    pub fn constructor(&mut self, fields: &[u32]) -> u32 {
        self.tagged(fields, 0)
    }

    /// One of several constructors of its type.
    pub fn tagged(&mut self, fields: &[u32], tag: u8) -> u32 {
        self.put(8 + 4 * fields.len() as u16, fields.len() as u8, tag, fields.iter().copied())
    }

    /// The constant of a stand-in: the kernel lets no theorem use it.
    pub fn unsafe_axiom(&mut self, name: u32, levels: u32, kind: u32) -> u32 {
        // ConstantVal(name, levels, type), AxiomVal(it; isUnsafe), ConstantInfo.axiomInfo(it).
        let value = self.constructor(&[name, levels, kind]);
        let axiom = self.constructor_with_flag(&[value], 1);
        self.constructor(&[axiom])
    }

    /// An object of another module with all below it; what was `copied` before is not again.
    pub fn copy(
        &mut self,
        from: &Module,
        pointer: u32,
        copied: &mut HashMap<u32, u32>,
    ) -> Result<u32, String> {
        if pointer & 1 == 1 {
            return Ok(pointer);
        }
        if let Some(&done) = copied.get(&pointer) {
            return Ok(done);
        }
        let (at, tag) = (from.at(pointer)?, from.tag(pointer)?);
        let (size, fields) = (from.word(at + 4)? as u16, from.bytes[at + 6]);
        let mut words = Vec::new();
        match tag {
            ARRAY => {
                let items = from.items(pointer)?;
                words.extend([items.len() as u32; 2]);
                for item in items {
                    words.push(self.copy(from, item, copied)?);
                }
            }
            STRING => {
                let bytes = from.word(at + 8)?;
                let whole = [bytes, bytes, from.word(at + 16)?];
                words.extend(whole);
                for i in 0..bytes.div_ceil(4) as usize {
                    words.push(from.word(at + 20 + 4 * i)?);
                }
            }
            0..=LAST_CONSTRUCTOR => {
                let own = usize::from(fields);
                for i in 0..usize::from(size.saturating_sub(8)) / 4 {
                    let word = from.word(at + 8 + 4 * i)?;
                    words.push(if i < own { self.copy(from, word, copied)? } else { word });
                }
            }
            _ => return Err("an object of an unknown kind would have to be copied".into()),
        }
        let done = self.put(size, fields, tag, words.into_iter());
        copied.insert(pointer, done);
        Ok(done)
    }

    /// With a word of flags after the fields.
    pub fn constructor_with_flag(&mut self, fields: &[u32], flags: u32) -> u32 {
        let words = fields.iter().copied().chain([flags]);
        self.put(12 + 4 * fields.len() as u16, fields.len() as u8, 0, words)
    }

    pub fn finish(mut self, root: u32) -> Vec<u8> {
        self.bytes[ROOT_AT..ROOT_AT + 4].copy_from_slice(&root.to_le_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module made with the writer itself, on an empty file.
    fn module(build: impl FnOnce(&mut Writer) -> u32) -> Vec<u8> {
        let mut bytes = vec![0; 88];
        let base = 0x1000u32;
        bytes[BASE_AT..BASE_AT + 4].copy_from_slice(&base.to_le_bytes());
        let mut out = Writer { bytes, base };
        let root = build(&mut out);
        out.finish(root)
    }

    pub fn name(out: &mut Writer, text: &str) -> u32 {
        let size = text.len() as u32 + 1;
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((text.len() + 1).next_multiple_of(4), 0);
        let words: Vec<u32> = [size, size, text.chars().count() as u32]
            .into_iter()
            .chain(bytes.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])))
            .collect();
        let text = out.put(1, 0, STRING, words.into_iter());
        out.put(16, 2, NAME_STRING, [NOTHING, text].into_iter())
    }

    fn dotted(out: &mut Writer, text: &str) -> u32 {
        let mut prefix = NOTHING;
        for part in text.split('.') {
            let last = name(out, part);
            let at = (last - out.base) as usize;
            out.bytes[at + 8..at + 12].copy_from_slice(&prefix.to_le_bytes());
            prefix = last;
        }
        prefix
    }

    fn sample() -> Vec<u8> {
        module(|out| {
            let constant = name(out, "thm");
            let kind = out.constructor(&[NOTHING]);
            let value = out.constructor(&[constant, NOTHING, kind]);
            let theorem = out.constructor(&[value]);
            let info = out.constructor(&[theorem]);
            let (names, infos) = (out.array(&[constant]), out.array(&[info]));
            let helper = name(out, "helper");
            let code = out.constructor(&[helper, NOTHING]);
            let codes = out.array(&[code]);
            let extension = dotted(out, CODE);
            let coded = out.constructor(&[extension, codes]);
            let (lost, init) = (name(out, "lost"), name(out, "init"));
            let without_code = out.constructor(&[lost, init]);
            let with_code = out.constructor(&[lost, helper]);
            let asked = out.array(&[without_code, with_code]);
            let extension = dotted(out, INITIALISERS);
            let initialisers = out.constructor(&[extension, asked]);
            let entries = out.array(&[coded, initialisers]);
            let empty = out.array(&[]);
            out.constructor_with_flag(&[empty, names, infos, empty, entries], 0)
        })
    }

    #[test]
    fn code_without_a_constant_gets_an_unsafe_one_and_lost_initialisers_go() {
        let fixed = Module::new(importable(sample()).unwrap());
        let [_, names, infos, _, entries] = fixed.fields(fixed.word(ROOT_AT).unwrap()).unwrap();
        let names: Vec<_> =
            fixed.items(names).unwrap().into_iter().map(|p| fixed.name(p).unwrap()).collect();
        assert_eq!(names, ["thm", "helper"]);
        assert_eq!(has_initialisers(sample()), Ok(true));
        let added = fixed.items(infos).unwrap()[1];
        let axiom = fixed.first_field(added).unwrap();
        assert_eq!(fixed.word(fixed.at(axiom).unwrap() + 12).unwrap(), 1, "it is unsafe");
        let initialisers = fixed.items(entries).unwrap()[1];
        let [_, kept] = fixed.fields(initialisers).unwrap();
        assert_eq!(fixed.items(kept).unwrap().len(), 1);
    }

    #[test]
    fn damage_is_said_and_never_followed() {
        let whole = sample();
        for at in 80..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 0xff;
            // Whatever comes of it, nothing panics.
            let _ = importable(bad);
        }
        for length in 0..whole.len() {
            let _ = importable(whole[..length].to_vec());
        }
        assert!(importable(vec![0; 10]).unwrap_err().contains("ends too early"));
    }

    #[test]
    fn names_are_not_written_out_beyond_measure() {
        let long = module(|out| {
            let one = name(out, &"a".repeat(10_000));
            let empty = out.array(&[]);
            let names = out.array(&vec![one; 10_000]);
            out.constructor_with_flag(&[empty, names, empty, empty, empty], 0)
        });
        assert_eq!(importable(long).unwrap_err(), "its names are too long");
    }
}
