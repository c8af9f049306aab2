//! Compiled modules: a small library, compiled, changed, broken, opened and searched.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use catamount_lean::{BuildReport, Lean, Options, build};
use catamount_search::{Checked, Environment, StateId, Verdict};
use catamount_traces::Theorem;

use crate::setup::options;

const BASE: &str = "\
namespace Base
def twice (n : Nat) : Nat := n + n

theorem twice_zero : twice 0 = 0 := by
  unfold twice
  rfl

theorem twice_one : twice 1 = 2 := by
  rfl

private theorem hidden (n : Nat) : twice n = n + n := by
  rfl

theorem shown (n : Nat) : twice n = n + n := by
  exact hidden n

syntax \"by_definition\" : tactic
macro_rules | `(tactic| by_definition) => `(tactic| rfl)
end Base
";
const MIDDLE: &str = "\
import Base

theorem from_base (n : Nat) : Base.twice n = 2 * n := by
  rw [Base.shown]
  omega

theorem by_macro : Base.twice 2 = 4 := by
  by_definition
";
const TOP: &str = "\
import Below.Middle

theorem top (n : Nat) : Base.twice (Base.twice n) = 4 * n := by
  rw [from_base, from_base]
  omega
";

fn library(folder: &Path) {
    fs::create_dir_all(folder.join("Below")).unwrap();
    fs::write(folder.join("Base.lean"), BASE).unwrap();
    fs::write(folder.join("Below/Middle.lean"), MIDDLE).unwrap();
    fs::write(folder.join("Top.lean"), TOP).unwrap();
}

fn built(folder: &Path) -> (BuildReport, Vec<String>) {
    let mut names = Vec::new();
    let roots = [folder.to_path_buf()];
    let report = build(&options(), &roots, &[], |p| names.push(p.module.to_owned())).unwrap();
    (report, names)
}

fn theorem(file: &str, name: &str) -> Theorem {
    Theorem { name: name.into(), file: Some(file.into()), ..Theorem::default() }
}

/// Tactics that loop, an attribute and an extension, which are there once their module is imported.
const TACTICS: &str = "\
import Lean
open Lean Elab Tactic

initialize marked : SimplePersistentEnvExtension Name NameSet ←
  registerSimplePersistentEnvExtension {
    addEntryFn := fun set n => set.insert n
    addImportedFn := fun all => all.foldl (fun set ns => ns.foldl NameSet.insert set) {} }

syntax (name := mark) \"mark\" : attr
initialize registerBuiltinAttribute {
  name := `mark
  descr := \"to be used\"
  add := fun n _ _ => modifyEnv (marked.addEntry · n) }

elab \"use_marked\" : tactic => do
  for n in (marked.getState (← getEnv)).toList do
    evalTactic (← `(tactic| apply $(mkIdent n)))
";
const MARKED: &str = "\
import Tactics

@[mark] theorem right (p q : Prop) (h : p ∧ q) : q := by
  cases h
  assumption
";
const USED: &str = "\
import Marked

theorem used (p : Prop) : True ∧ p → p := by
  use_marked
";

#[test]
fn a_librarys_own_tactics_compile_with_helpers_and_run_where_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("Tactics", TACTICS), ("Marked", MARKED), ("Used", USED)] {
        fs::write(folder.path().join(name).with_extension("lean"), text).unwrap();
    }
    let options =
        Options { helpers: true, root: Some(folder.path().into()), workers: 1, ..options() };
    let roots = [folder.path().to_path_buf()];
    let report = build(&options, &roots, &[], |_| {}).unwrap();
    assert_eq!((report.modules, report.problems.len()), (3, 0), "{report:?}");
    let lean = Lean::new(options).unwrap();
    let used = theorem("Used.lean", "used");
    let mut session = lean.open(&used).unwrap();
    assert_eq!(session.apply(StateId(0), "use_marked").unwrap(), Verdict::Proved);
    // The judge has neither tactics nor helpers, and needs none.
    let checked = lean.check(&used, &["use_marked".into()]).unwrap();
    assert!(matches!(checked, Checked::Proved { .. }), "{checked:?}");
}

#[test]
fn a_library_is_compiled_once_and_what_changed_again() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    // Nothing of an earlier run of the tests is kept under these keys.
    let stamp = format!("-- {:?}\n", Instant::now());
    let base = folder.path().join("Base.lean");
    fs::write(&base, format!("{BASE}{stamp}")).unwrap();

    let (first, names) = built(folder.path());
    assert_eq!(names, ["Base", "Below.Middle", "Top"]);
    assert_eq!((first.modules, first.compiled, first.theorems), (3, 3, 7));
    assert_eq!((first.problems.len(), first.failed.len()), (0, 0), "{first:?}");
    let (second, _) = built(folder.path());
    assert_eq!((second.modules, second.compiled), (3, 0), "all of it was kept");

    fs::write(folder.path().join("Top.lean"), format!("{TOP}{stamp}")).unwrap();
    assert_eq!(built(folder.path()).0.compiled, 1, "nothing depends on the top");
    fs::write(&base, format!("{BASE}{stamp}--\n")).unwrap();
    assert_eq!(built(folder.path()).0.compiled, 3, "everything depends on the base");
    fs::write(&base, format!("{BASE}{stamp}")).unwrap();
    assert_eq!(built(folder.path()).0.compiled, 0, "what was compiled before is still kept");
}

#[test]
fn theorems_open_on_compiled_modules_and_proofs_are_judged_on_them() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    let options = Options { root: Some(folder.path().into()), workers: 1, ..options() };
    let lean = Lean::new(options).unwrap();
    let top = theorem("Top.lean", "top");
    let mut session = lean.open(&top).unwrap();
    assert_eq!(session.root(), "n : Nat\n⊢ Base.twice (Base.twice n) = 4 * n");
    assert!(matches!(session.apply(StateId(0), "exact top n"), Ok(Verdict::Rejected { .. })));
    let tactics = ["rw [from_base, from_base]", "omega"].map(String::from);
    match lean.check(&top, &tactics).unwrap() {
        Checked::Proved { axioms, .. } => {
            assert!(!axioms.contains(&"sorryAx".to_owned()), "{axioms:?}")
        }
        refused => panic!("{refused:?}"),
    }
    // A lemma of the theorem's own file counts by its statement, the private one too, and what
    // comes after the theorem is not there.
    let shown = theorem("Base.lean", "Base.shown");
    let hidden = lean.check(&shown, &["exact hidden n".to_owned()]).unwrap();
    assert!(matches!(hidden, Checked::Proved { .. }), "{hidden:?}");
    let early = theorem("Base.lean", "Base.twice_zero");
    let forward = lean.check(&early, &["exact (shown 0).trans rfl".to_owned()]).unwrap();
    assert!(matches!(forward, Checked::Refused { .. }), "{forward:?}");
    let notation = theorem("Below/Middle.lean", "by_macro");
    let by_macro = lean.check(&notation, &["by_definition".to_owned()]).unwrap();
    assert!(matches!(by_macro, Checked::Proved { .. }), "{by_macro:?}");
}

#[test]
fn what_fails_is_said_with_its_line_and_what_depends_on_it() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path());
    // A command that fails: the module is there, and what it did not prove counts for nothing.
    let broken = format!("{BASE}theorem wrong : 1 = 2 := by\n  decide\n");
    fs::write(folder.path().join("Base.lean"), broken).unwrap();
    fs::write(
        folder.path().join("Top.lean"),
        "import Base\ntheorem leaning : 1 = 2 := by\n  exact wrong\n",
    )
    .unwrap();
    let (report, _) = built(folder.path());
    assert_eq!((report.modules, report.failed.len()), (3, 0));
    let [problem] = &report.problems[..] else { panic!("{:?}", report.problems) };
    assert_eq!((problem.file.as_str(), problem.line), ("Base.lean", 20));
    let options = Options { root: Some(folder.path().into()), workers: 1, ..options() };
    let lean = Lean::new(options.clone()).unwrap();
    let leaning = theorem("Top.lean", "leaning");
    let unproved = lean.check(&leaning, &["exact wrong".to_owned()]).unwrap();
    let Checked::Refused { reason } = unproved else { panic!("{unproved:?}") };
    assert!(reason.contains("sorryAx"), "{reason}");

    // A module that is not Lean at all: what imports it is not tried.
    fs::write(folder.path().join("Base.lean"), "import Base\nimport \"nothing\"\n").unwrap();
    let (report, _) = built(folder.path());
    assert_eq!(report.modules, 0);
    let whys: Vec<&str> = report.failed.iter().map(|f| f.why.as_str()).collect();
    assert!(whys.iter().any(|why| why.contains("imports itself")), "{whys:?}");
    fs::write(folder.path().join("Base.lean"), "import Elsewhere.Gone\n").unwrap();
    let (report, _) = built(folder.path());
    let base = report.failed.iter().find(|f| f.module == "Base").unwrap();
    assert!(base.why.contains("imports Elsewhere.Gone, which neither"), "{}", base.why);
    let error = Lean::new(options).unwrap().open(&leaning).err().unwrap().to_string();
    assert!(error.contains("it imports Base, which cannot be compiled"), "{error}");
}

#[test]
fn a_module_of_another_lean_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // A name that no other module has, so that the damage is this test's alone.
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let module = format!("Once{}", since.as_nanos());
    fs::write(folder.path().join(format!("{module}.lean")), BASE).unwrap();
    built(folder.path());
    let olean = find(&catamount_lean::modules_folder(), &module);
    let mut bytes = fs::read(&olean).unwrap();
    bytes[7..13].copy_from_slice(b"4.99.0");
    fs::write(&olean, &bytes).unwrap();
    let again = || build(&options(), &[folder.path().to_path_buf()], &[], |_| ());
    let error = again().unwrap_err().to_string();
    assert!(error.contains("made by another Lean (4.99.0"), "{error}");
    assert!(error.contains("delete that folder"), "{error}");
    fs::write(&olean, &bytes[..100]).unwrap();
    assert!(again().is_err(), "a part of a module is none");
    fs::remove_dir_all(olean.parent().unwrap()).unwrap();
    assert_eq!(again().unwrap().compiled, 1);
}

/// Where the compiled module of this name is kept.
fn find(folder: &Path, module: &str) -> PathBuf {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("views") {
                folders.push(path);
            } else if path.ends_with("record.json")
                && fs::read_to_string(&path).unwrap().contains(module)
            {
                return path.with_file_name("module.olean");
            }
        }
    }
    panic!("{module} was not kept");
}
