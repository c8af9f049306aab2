//! Compiled modules of a library: what each was made from, and where it is kept.
//!
//! A module's key hashes its source, the keys of what it imports and the version of Lean, so that
//! nothing made from other sources, or by another Lean, is ever taken for it. What is kept under a
//! key is written once, in a folder that is moved into place when it is whole. Processes that
//! import modules see them through a view: a folder of links, laid out as Lean looks for them,
//! named by all the keys of the library.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catamount_base::AtomicFolder;
use serde::{Deserialize, Serialize};

use crate::assets;
use crate::cache::{Prepared, SEAL};
use crate::error::Error;
use crate::helpers;
use crate::olean;
use crate::source::{Library, Source, module_of};
use crate::wire::{FileError, FileTheorem};

/// Changes with what a compiled module holds besides what its sources say.
const FORMAT: &str = "2";
/// Commands before those of a file: definitions that cannot be compiled are no errors (the package
/// has not all that the compiler needs), and linters only cost time.
pub(crate) const BEFORE: &str = "noncomputable section\nset_option linter.all false";

const OLEAN: &str = "module.olean";
const RECORD: &str = "record.json";

/// What is known of a compiled module besides the module itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub module: String,
    /// Which Lean made it.
    pub lean: String,
    pub bytes: u64,
    pub theorems: usize,
    /// Commands that failed; what they declare is missing, or rests on `sorry`.
    pub errors: Vec<FileError>,
}

/// One module of a library in the order of its imports.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub source: Arc<Source>,
    /// The modules of the library that it imports, by their places in the order.
    pub imports: Vec<usize>,
    pub key: String,
}

/// Modules in an order in which they can be compiled, each after what it imports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    pub nodes: Vec<Node>,
    places: HashMap<String, usize>,
    /// Whether they are compiled with helpers.
    helpers: bool,
    /// Modules that cannot be compiled, because something that they import is not to be had.
    pub unavailable: BTreeMap<String, String>,
}

impl Order {
    /// These files and everything they import within the library.
    pub fn of(
        library: &Library,
        paths: &[String],
        prepared: &Prepared,
        helpers: bool,
    ) -> Result<Order, Error> {
        let mut order = Order { helpers, ..Order::default() };
        for path in paths {
            // A file that several roots have is nobody's loss until somebody names it.
            match library.source(path) {
                Err(error) if library.is_ambiguous(path) => {
                    order.unavailable.insert(module_of(path), error.to_string());
                }
                source => drop(order.visit(library, source?, prepared, &mut Vec::new())?),
            }
        }
        Ok(order)
    }

    /// The module's place; none if it is not to be had.
    fn visit(
        &mut self,
        library: &Library,
        source: Arc<Source>,
        prepared: &Prepared,
        above: &mut Vec<String>,
    ) -> Result<Option<usize>, Error> {
        let module = source.module.clone();
        if let Some(&place) = self.places.get(&module) {
            return Ok(Some(place));
        }
        if self.unavailable.contains_key(&module) {
            return Ok(None);
        }
        if above.contains(&module) {
            let why = format!("it imports itself by way of {}", above.join(", "));
            self.unavailable.insert(module, why);
            return Ok(None);
        }
        above.push(module.clone());
        let mut imports = Vec::new();
        let mut missing = None;
        for import in &source.imports {
            if let Some(found) = library.local(import)? {
                match self.visit(library, found, prepared, above)? {
                    Some(place) => imports.push(place),
                    None => {
                        missing = Some(format!("it imports {import}, which cannot be compiled"))
                    }
                }
            } else if !prepared.has(import) {
                missing = Some(format!(
                    "it imports {import}, which neither {} nor the Lean package has; name the \
                     folder that has it as well, or leave the module out",
                    folders(library.roots())
                ));
            }
        }
        above.pop();
        if let Some(why) = missing {
            self.unavailable.entry(module).or_insert(why);
            return Ok(None);
        }
        let keys: Vec<&str> = imports.iter().map(|&i| self.nodes[i].key.as_str()).collect();
        let key = key(&source, &keys, self.helpers);
        self.places.insert(module, self.nodes.len());
        self.nodes.push(Node { source, imports, key });
        Ok(Some(self.nodes.len() - 1))
    }

    /// The modules at these places and all that they import, in order.
    pub fn closure(&self, places: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut wanted: Vec<bool> = vec![false; self.nodes.len()];
        for place in places {
            wanted[place] = true;
        }
        for at in (0..self.nodes.len()).rev() {
            if wanted[at] {
                self.nodes[at].imports.iter().for_each(|&i| wanted[i] = true);
            }
        }
        (0..self.nodes.len()).filter(|&at| wanted[at]).collect()
    }

    /// Where a module is in the order.
    pub fn place(&self, module: &str) -> Option<usize> {
        self.places.get(module).copied()
    }

    /// The modules that import the one at `place`, directly or not.
    pub fn dependants(&self, place: usize) -> Vec<&str> {
        let mut reached = HashSet::from([place]);
        let mut names = Vec::new();
        for (at, node) in self.nodes.iter().enumerate().skip(place + 1) {
            if node.imports.iter().any(|i| reached.contains(i)) {
                reached.insert(at);
                names.push(node.source.module.as_str());
            }
        }
        names
    }

    /// Names the state of the whole library.
    fn key(&self) -> String {
        let keys: BTreeMap<&str, &str> =
            self.nodes.iter().map(|n| (n.source.module.as_str(), n.key.as_str())).collect();
        let parts: Vec<&[u8]> =
            keys.iter().flat_map(|(module, key)| [module.as_bytes(), key.as_bytes()]).collect();
        assets::sha256(&parts)
    }
}

fn folders(roots: &[PathBuf]) -> String {
    roots.iter().map(|r| r.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn key(source: &Source, imports: &[&str], helpers: bool) -> String {
    let mut parts = [FORMAT, &crate::cache::lean_key(), BEFORE, &source.module].join("\n");
    if helpers {
        let newer = assets::newer_names(&source.text, helpers);
        parts.push_str(&format!("\nhelpers {}\n{newer}", helpers::key()));
    }
    for text in [assets::patch(&source.module, helpers), &source.text] {
        parts.push_str(&format!("\n{}\n{text}", text.len()));
    }
    for name in imports.iter().copied().chain(source.without.iter().map(String::as_str)) {
        parts.push('\n');
        parts.push_str(name);
    }
    assets::sha256(&[parts.as_bytes()])
}

/// Where compiled modules are kept.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    /// How every compiled module of this Lean begins.
    header: Vec<u8>,
}

impl Store {
    pub fn open(prepared: &Prepared) -> Result<Store, Error> {
        let folder = prepared.cache.join("modules");
        let doing = || format!("opening {}", folder.display());
        fs::create_dir_all(&folder).map_err(|e| Error::prepare(doing(), e))?;
        let header = beginning(&prepared.runtime.join("lib").join("Init.olean"))
            .map_err(|e| Error::prepare(doing(), e))?;
        Ok(Store { folder, header })
    }

    fn of(&self, key: &str) -> PathBuf {
        self.folder.join(&key[..2]).join(key)
    }

    /// What is kept under a key, if it is there and is what it should be.
    pub fn record(&self, key: &str) -> Result<Option<Record>, Error> {
        let folder = self.of(key);
        let olean = folder.join(OLEAN);
        let wrong = |why: String| Error::Cache { path: folder.clone(), why };
        let text = match fs::read(folder.join(RECORD)) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(wrong(e.to_string())),
        };
        let record: Record = serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))?;
        let begins = beginning(&olean).map_err(|e| wrong(e.to_string()))?;
        if begins != self.header {
            return Err(wrong(format!(
                "the compiled module {} was made by another Lean ({}) than this one ({})",
                record.module,
                version_in(&begins),
                version_in(&self.header)
            )));
        }
        let bytes = fs::metadata(&olean).map_err(|e| wrong(e.to_string()))?.len();
        if bytes != record.bytes {
            return Err(wrong(format!(
                "the compiled module {} has {bytes} bytes and was written with {}",
                record.module, record.bytes
            )));
        }
        Ok(Some(record))
    }

    /// Keeps what Lean wrote, made importable. What another process kept meanwhile is as good.
    pub fn keep(&self, key: &str, written: &Path, record: Record) -> Result<Record, Error> {
        let target = self.of(key);
        let failed = |why: String| Error::Cache { path: target.clone(), why };
        let io = |e: io::Error| failed(e.to_string());
        let module = fs::read(written).map_err(io)?;
        let module = olean::importable(module).map_err(|why| {
            failed(format!("Lean's compiled module {} is not understood: {why}", record.module))
        })?;
        let record = Record { bytes: module.len() as u64, ..record };
        let folder = AtomicFolder::create(&target).map_err(io)?;
        fs::write(folder.path().join(OLEAN), module).map_err(io)?;
        let text = serde_json::to_vec(&record).map_err(|e| failed(e.to_string()))?;
        fs::write(folder.path().join(RECORD), text).map_err(io)?;
        fs::write(folder.path().join(SEAL), "").map_err(io)?;
        folder.offer().map_err(io)?;
        Ok(record)
    }

    /// The theorems of a module as `tracer` traced them, if it has.
    pub fn traced(&self, key: &str, tracer: &str) -> Option<Vec<FileTheorem>> {
        // Whatever is not to be read is made again.
        let text = fs::read(self.of(key).join(traces(tracer))).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Keeps the traced theorems of a module that is kept already.
    pub fn keep_traced(
        &self,
        key: &str,
        tracer: &str,
        theorems: &[FileTheorem],
    ) -> Result<(), Error> {
        let target = self.of(key).join(traces(tracer));
        let failed = |why: String| Error::Cache { path: target.clone(), why };
        let text = serde_json::to_vec(theorems).map_err(|e| failed(e.to_string()))?;
        catamount_base::write(&target, &text).map_err(|e| failed(e.to_string()))
    }

    /// The view of a library's modules; modules are linked into it as they come.
    pub fn view(&self, order: &Order) -> Result<View, Error> {
        let folder = self.folder.join("views").join(&order.key()[..32]);
        let view = View { folder, store: self.clone() };
        view.made(fs::create_dir_all(&view.folder))?;
        Ok(view)
    }
}

fn traces(tracer: &str) -> String {
    format!("traces-{}.json", &tracer[..16])
}

/// A folder in which Lean finds the modules of one state of a library.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub folder: PathBuf,
    store: Store,
}

impl View {
    fn made<T>(&self, result: io::Result<T>) -> Result<T, Error> {
        result.map_err(|e| Error::Cache { path: self.folder.clone(), why: e.to_string() })
    }

    /// Makes a kept module visible.
    pub fn link(&self, node: &Node) -> Result<(), Error> {
        let link = self.folder.join(node.source.module.replace('.', "/")).with_extension("olean");
        if let Some(above) = link.parent() {
            self.made(fs::create_dir_all(above))?;
        }
        match fs::hard_link(self.store.of(&node.key).join(OLEAN), &link) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => self.made(Err(e)),
            _ => Ok(()),
        }
    }
}

fn beginning(olean: &Path) -> io::Result<Vec<u8>> {
    let mut header = vec![0; olean::HEADER];
    File::open(olean)?.read_exact(&mut header)?;
    Ok(header)
}

/// The version in a compiled module's beginning: after seven bytes, 33 of text.
fn version_in(header: &[u8]) -> String {
    let text = header.get(7..40).unwrap_or_default();
    let text: Vec<u8> = text.iter().copied().take_while(|b| *b != 0).collect();
    String::from_utf8_lossy(&text).into_owned()
}
