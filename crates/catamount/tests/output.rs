//! Standard output that cannot be written: a full device is an error, a reader that has gone is
//! none, and no command panics.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const TRACES: &str = concat!(
    r#"{"name": "goal", "steps": "#,
    r#"[{"state": "$p ( ph -> ( ps -> ph ) )", "tactic": "ax-1"}]}"#,
    "\n"
);
const DATABASE: &str = "$c ( ) -> wff |- $. $v ph ps $.
wph $f wff ph $. wps $f wff ps $. wi $a wff ( ph -> ps ) $.
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
goal $p |- ( ph -> ( ps -> ph ) ) $= wph wps ax-1 $.
";

/// Every command that says something on standard output, and what it is told.
const COMMANDS: [(&str, &str); 29] = [
    ("--help", ""),
    ("--version", ""),
    ("eval --help", ""),
    ("weights --objective bfs --budget 8", "{\"logp\": [-1]}\n"),
    ("check --database d.mm", "{\"name\": \"goal\", \"tactics\": [\"ax-1\"]}\n"),
    ("data metamath --database d.mm --out extracted --split 0,0,1", ""),
    ("data split t.jsonl --out parts --split 0,0,1", ""),
    ("data convert t.jsonl t.parquet", ""),
    ("data found --theorems t.jsonl --out found.jsonl cell.jsonl", ""),
    ("data validate t.jsonl", ""),
    ("data stats t.jsonl", ""),
    ("prove goal --database d.mm --policy replay:t.jsonl --strategy bfs --budget 8", ""),
    ("prove goal --database d.mm --policy replay:t.jsonl --strategy bfs --budget 8 --tree", ""),
    ("prove goal --database d.mm --policy replay:t.jsonl --strategy bfs --budget 1", ""),
    (
        "eval --database d.mm --theorems t.jsonl --policy replay:t.jsonl --strategy bfs --budget 8 \
         --out again.jsonl",
        "",
    ),
    ("export --format mm --database d.mm cell.jsonl", ""),
    ("export --format lean --theorems t.jsonl cell.jsonl", ""),
    ("compare cell.jsonl cell.jsonl", ""),
    ("compare cell.jsonl cell.jsonl --json", ""),
    ("run demo --print", ""),
    ("run demo --dry-run", ""),
    ("report study", ""),
    ("verify study", ""),
    ("train demo --dry-run", ""),
    ("calibrate demo --dry-run", ""),
    ("completions bash", ""),
    ("man", ""),
    ("man --out pages", ""),
    ("doctor", ""),
];

/// Those that take a model, Lean or minutes, or listen: `make faults` tries them.
const ELSEWHERE: [&str; 10] = [
    "theory",
    "data trace-lean",
    "lean build",
    "lean trace",
    "serve",
    "step",
    "score",
    "generate",
    "view",
    "tune",
];

fn start(folder: &Path, arguments: &str, input: &str, out: Stdio) -> Child {
    let stdin = folder.join("input");
    std::fs::write(&stdin, input).unwrap();
    Command::new(assert_cmd::cargo::cargo_bin("catamount"))
        .current_dir(folder)
        .args(arguments.split_whitespace())
        .stdin(File::open(stdin).unwrap())
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn finish(child: Child) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.jsonl"), TRACES).unwrap();
    std::fs::write(folder.path().join("d.mm"), DATABASE).unwrap();
    let cells = folder.path().join("study/cells");
    std::fs::create_dir_all(&cells).unwrap();
    let eval = "eval --database d.mm --theorems t.jsonl --policy replay:t.jsonl --strategy bfs \
                --budget 8 --out";
    for out in ["cell.jsonl", "study/cells/ce-bfs-8-1.jsonl"] {
        let (code, said) =
            finish(start(folder.path(), &format!("{eval} {out}"), "", Stdio::null()));
        assert_eq!(code, Some(0), "{said}");
    }
    folder
}

/// A new command has a manual page, and must be tried, too.
#[test]
fn every_command_is_tried() {
    let folder = prepared();
    let (code, said) = finish(start(folder.path(), "man --out pages", "", Stdio::null()));
    assert_eq!(code, Some(0), "{said}");
    let entries = std::fs::read_dir(folder.path().join("pages")).unwrap();
    let names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| {
            Some(name.strip_suffix(".1")?.strip_prefix("catamount-")?.replace('-', " "))
        })
        .collect();
    assert!(names.len() > 20, "{names:?}");
    let tried: Vec<String> = COMMANDS
        .iter()
        .map(|(arguments, _)| *arguments)
        .chain(ELSEWHERE)
        .map(|arguments| format!("{} ", arguments.replace('-', " ")))
        .collect();
    for name in names {
        let tried = tried.iter().any(|arguments| arguments.starts_with(&format!("{name} ")));
        assert!(tried, "no test tries `catamount {name}`");
    }
}

#[test]
fn a_full_device_is_an_error() {
    let folder = prepared();
    for (arguments, input) in COMMANDS {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (code, said) = finish(start(folder.path(), arguments, input, full.into()));
        assert_eq!(code, Some(2), "{arguments}: {said}");
        assert!(!said.contains("panicked"), "{arguments}: {said}");
        assert!(said.contains("standard output"), "{arguments}: {said}");
    }
}

#[test]
fn a_reader_that_has_gone_is_none() {
    let folder = prepared();
    for (arguments, input) in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, said) = finish(start(folder.path(), arguments, input, writer.into()));
        assert_eq!(code, Some(0), "{arguments}: {said}");
        assert!(!said.contains("panicked") && !said.contains("error:"), "{arguments}: {said}");
    }
}

#[test]
fn standard_error_may_be_full_as_well() {
    let folder = prepared();
    for (arguments, expected) in [("data stats missing.jsonl", 2), ("data validate t.jsonl", 0)] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let status = Command::new(assert_cmd::cargo::cargo_bin("catamount"))
            .current_dir(folder.path())
            .args(arguments.split_whitespace())
            .stdout(Stdio::null())
            .stderr(full)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(expected), "{arguments}");
    }
}
