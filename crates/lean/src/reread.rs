//! A process that imports again takes what it has read before: it gets the environment that a new
//! process gets, and never one of two versions of a module.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::cache::{self, Prepared};
use crate::compile::{BARE, elaborate};
use crate::launch::{Launch, WRITTEN_AT};
use crate::modules::BEFORE;
use crate::olean;
use crate::options::Options;
use crate::source::Source;
use crate::wire::Request;
use crate::worker::{Task, Worker};

const LIMIT: Duration = Duration::from_secs(300);

/// A module with something for everything that others see of an import.
fn own(version: u32) -> String {
    format!(
        "def Own.version : Nat := {version}
@[simp] theorem Own.simplified : Own.version + 0 + 1 = {} := rfl
class Own.Class (α : Type) where value : α
instance : Own.Class Nat := ⟨Own.version⟩
notation \"own⟪\" x \"⟫\" => Nat.succ x
macro \"own_tactic\" : tactic => `(tactic| decide)
",
        version + 1
    )
}

const USES_OWN: &str = "
#check own⟪1⟫
#synth Own.Class Nat
#print Own.version
example : Own.version + 0 + 1 = 2 := by simp?
example : own⟪1⟫ = 2 := by own_tactic
";

/// Lean's own account of an environment: its modules as they are imported, how many constants each
/// has, and how much every extension holds.
const ACCOUNT: &str = include_str!("../tests/account.lean");

fn prepared() -> Prepared {
    cache::prepare(&cache::default_folder(), None).expect("Lean is prepared")
}

fn worker(launch: Launch) -> Worker {
    let mut worker = Worker::new(launch, Arc::new(Options::default()));
    worker.ready(&[BARE.to_owned()]).expect("a process");
    worker
}

/// Compiles a module into a library.
fn compile(library: &Path, module: &str, text: &str) {
    let launch = Launch::Wasm(Prepared { writes: true, ..prepared() }).with_library(library, true);
    let mut worker = worker(launch);
    let (path, module, text) = (format!("{module}.lean"), module.to_owned(), text.to_owned());
    let (imports, without, options) = (vec![], vec![], String::new());
    let source = Source { path, module, text, imports, without, options };
    let save = format!("{WRITTEN_AT}/it.olean");
    let task = Task { trace: false, proofs: true, save: &save };
    let reply = elaborate(&mut worker, &source, task).unwrap().unwrap();
    assert!(reply.errors.is_empty(), "{:?}", reply.errors);
    let written = worker.scratch().expect("it writes").join("it.olean");
    let bytes = olean::importable(fs::read(written).unwrap()).unwrap();
    fs::write(library.join(&source.module).with_extension("olean"), bytes).unwrap();
}

/// Asks what Lean says of a file.
fn request(text: &str) -> Request<'_> {
    Request::File {
        ctx: 0,
        text,
        path: "file.lean",
        module: "File",
        trace: false,
        messages: true,
        proofs: true,
        imports: true,
        initialise: false,
        without: &[],
        before: BEFORE,
        after: "",
        save: "",
        whole: true,
    }
}

fn said(worker: &mut Worker, text: &str) -> Vec<String> {
    let reply = worker.demand(&request(text), LIMIT).expect("an answer");
    reply.messages.into_iter().map(|message| message.text).collect()
}

#[test]
fn an_import_of_what_was_read_before_is_the_import_of_a_new_process() {
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "Own", &own(1));
    let new = || worker(Launch::Wasm(prepared()).with_library(folder.path(), false));
    let lists = [
        ("import Lean\n", ""),
        ("import Lean.Elab.Command\nimport Own\nimport Std.Data.HashMap\n", USES_OWN),
        ("import Std.Data.DTreeMap\nimport Lean.Elab.BuiltinTerm\nimport Lean.Elab.Command\n", ""),
    ];
    let texts = lists.map(|(imports, uses)| [imports, ACCOUNT, uses].concat());
    let expected = [0, 1, 2].map(|at| said(&mut new(), &texts[at]));
    assert!(expected[1].iter().any(|text| text.contains("Own.version : Nat :=\n1")));
    assert!(expected[1].iter().any(|text| text.contains("Own.simplified")), "{:?}", expected[1]);
    let mut old = new();
    let mut memory = Vec::new();
    for at in [0, 1, 2, 1, 0, 2, 2] {
        let said = said(&mut old, &texts[at]);
        assert!(said[0].contains("number of extensions"), "{}", said[0]);
        assert!(said == expected[at], "{}", texts[at].lines().next().unwrap_or_default());
        memory.extend(old.memory());
    }
    // Each of the last four would take 170 MiB if it were read again.
    if let [.., from, _, _, _, to] = memory[..] {
        assert!(to < from + 4 * 100, "{memory:?}");
    }
    // What an earlier file imported is not there.
    let without = said(&mut old, "#check Own.version\n");
    assert!(without[0].contains("Unknown"), "{without:?}");
}

#[test]
fn a_module_that_has_changed_on_the_disk_is_read_again_with_all_that_import_it() {
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "Own", &own(1));
    compile(folder.path(), "Above", "import Own\ndef above : Nat := Own.version\n");
    let mut worker = worker(Launch::Wasm(prepared()).with_library(folder.path(), false));
    let version = |worker: &mut Worker, imports: &str| {
        said(worker, &format!("{imports}#print Own.version\n"))[0].clone()
    };
    let is = |said: &str, version: u32| said.ends_with(&format!(":=\n{version}"));
    let first = version(&mut worker, "import Own\n");
    assert!(is(&first, 1), "{first}");
    // A file's time is told in milliseconds at best.
    thread::sleep(Duration::from_millis(50));
    compile(folder.path(), "Own", &own(2));
    // The one that was not read yet does not bring the other as it was.
    let second = version(&mut worker, "import Above\n");
    assert!(is(&second, 2), "{second}");
    fs::remove_file(folder.path().join("Own.olean")).unwrap();
    let refused = worker.demand(&request("import Above\n"), LIMIT).unwrap_err().to_string();
    assert!(refused.contains("Own"), "{refused}");
}
