//! The path that a user's Lake project takes, by a toolchain that stands in for the real one:
//! `lake` and `lean` as small programs around the WebAssembly Lean.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LAKE: &str = r#"#!/bin/sh
# Elan's lake: outside a project it needs a default toolchain, and here there is none.
if [ ! -f lean-toolchain ]; then
  echo "error: no default toolchain configured" >&2
  exit 1
fi
case "$1" in
  --version) echo "Lake version 5.0.0 (Lean version 4.28.0)" ;;
  env)
    shift
    export LEAN_SYSROOT="@TOOLCHAIN@" LEAN_PATH="@CACHE@" PATH="@TOOLCHAIN@/bin:$PATH"
    exec "$@" ;;
  *) exit 2 ;;
esac
"#;

const LEAN: &str = r#"#!/bin/sh
case "$1" in
  --version) echo "Lean (version 4.28.0, a stand-in)" ;;
  -o) @COMPILE@ ;;
  --run) shift; exec "@NODE@" --stack-size=500000 "@TOOLCHAIN@/run.cjs" "$@" ;;
  *.lean) exec "@NODE@" --stack-size=7500 "@TOOLCHAIN@/elaborate.cjs" "$1" ;;
  *) exit 2 ;;
esac
"#;

/// `lean -o MODULE FILE`, which here keeps the text; and one that cannot.
const COMPILES: &str = r#"exec cp "$3" "$2""#;
const CANNOT_COMPILE: &str = "echo 'error: no such option' >&2; exit 1";

/// `lean --run FILE IMPORTS`, by the compiled form of the same file, or of what it imports.
const RUN: &str = r#"
const fs = require("fs"), path = require("path");
const [file, ...imports] = process.argv.slice(2);
const module_ = path.basename(file, ".lean"), cache = "@CACHE@";
const written = fs.readFileSync(file, "utf8");
const imported = /^import (Catamount\w+)\n\n/.exec(written);
const found = (module) => process.env.LEAN_PATH.split(":")
  .map((folder) => path.join(folder, `${module}.olean`)).find((at) => fs.existsSync(at));
const text = imported
  ? fs.readFileSync(found(imported[1]), "utf8") + written.slice(imported[0].length)
  : written;
const complete = (f) => fs.existsSync(path.join(cache, f, "complete"));
const whole = (kind) =>
  fs.readdirSync(cache).filter((f) => f.startsWith(kind) && complete(f));
// What was compiled is the same but for a short piece near its beginning, which is another for each
// host.
const different = (f) => {
  const compiled = fs.readFileSync(path.join(cache, f, "source", `${module_}.lean`), "utf8");
  let before = 0, after = 0;
  while (before < text.length && compiled[before] === text[before]) before++;
  while (after < text.length - before && compiled.at(-1 - after) === text.at(-1 - after)) after++;
  return text.length - before - after;
};
const same = (f) => different(f) < 2000;
const server = path.join(cache, whole("server-").find(same), "lib");
const runtime = path.join(cache, "@RUNTIME@");
const settings = {
  runtime, boot: module_, args: imports, mounts: [["/server", server, false]],
  env: { LEAN_PATH: "/lean/lib:/server" },
};
process.argv = [process.argv[0], "host.cjs", JSON.stringify(settings)];
require(path.join(runtime, "scripts", "host.cjs"));
"#;

/// `lean FILE`, by the package's own Lean.
const ELABORATE: &str = r#"
const path = require("path");
const file = process.argv[2], runtime = path.join("@CACHE@", "@RUNTIME@");
const settings = {
  runtime, args: [`/source/${path.basename(file)}`],
  mounts: [["/source", path.dirname(file), false]], pool: 2,
};
process.argv = [process.argv[0], "host.cjs", JSON.stringify(settings)];
require(path.join(runtime, "scripts", "host.cjs"));
"#;

struct StandIn {
    folder: tempfile::TempDir,
}

impl StandIn {
    fn new() -> StandIn {
        StandIn::compiling(COMPILES)
    }

    fn compiling(compile: &str) -> StandIn {
        // It runs what the WebAssembly host has prepared.
        catamount_lean::Lean::new(catamount_lean::Options::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let cache = catamount_lean::modules_folder().parent().unwrap().to_path_buf();
        let toolchain = folder.path().join("toolchain");
        let project = folder.path().join("project");
        for folder in [toolchain.join("bin"), folder.path().join("bin"), project.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(project.join("lean-toolchain"), "leanprover/lean4:v4.28.0\n").unwrap();
        fs::write(
            project.join("Mine.lean"),
            "theorem mine (p q : Prop) (h : p ∧ q) : q := by\n  cases h with\n  | intro a b => \
             exact b\n",
        )
        .unwrap();
        let bundled = cache.join("node-22.23.3").join("node");
        let node = if bundled.is_file() { bundled } else { PathBuf::from("/usr/bin/node") };
        let write = |path: PathBuf, text: &str| {
            let text = text
                .replace("@COMPILE@", compile)
                .replace("@TOOLCHAIN@", toolchain.to_str().unwrap())
                .replace("@CACHE@", cache.to_str().unwrap())
                .replace("@RUNTIME@", &catamount_lean::runtime_name())
                .replace("@NODE@", node.to_str().unwrap());
            fs::write(&path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        write(folder.path().join("bin/lake"), LAKE);
        write(toolchain.join("bin/lean"), LEAN);
        write(toolchain.join("run.cjs"), RUN);
        write(toolchain.join("elaborate.cjs"), ELABORATE);
        StandIn { folder }
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn catamount(&self, folder: &Path, args: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap();
        Command::new(assert_cmd::cargo::cargo_bin("catamount"))
            .args(args)
            .current_dir(folder)
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .env("PATH", format!("{}:{path}", self.folder.path().join("bin").display()))
            .output()
            .unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_lake_project_is_searched_traced_and_judged_by_its_own_toolchain() {
    let standin = StandIn::new();
    let project = standin.project();
    let claims = project.join("claims.jsonl");
    let statement = "theorem t (p : Prop) : p → p";
    let claim = |name: &str, tactic: &str| {
        format!(
            "{{\"name\": \"{name}\", \"statement\": \"{statement}\", \
             \"tactics\": [\"{tactic}\"]}}\n"
        )
    };
    fs::write(&claims, claim("good", "exact id") + &claim("bad", "sorry")).unwrap();
    let args = ["check", "--env", "lean", "--project", project.to_str().unwrap(), "claims.jsonl"];
    let out = standin.catamount(&project, &args);
    let said = text(&out.stdout);
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    let verdicts: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&verdicts[0]["verdict"], &verdicts[1]["verdict"]),
        (&"proved".into(), &"refused".into())
    );

    let args = ["data", "trace-lean", "Mine.lean", "--project", ".", "--out", "t.jsonl"];
    let out = standin.catamount(&project, &args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let traces = fs::read_to_string(project.join("t.jsonl")).unwrap();
    assert_eq!(traces.lines().count(), 1, "{traces}");
    assert!(traces.contains("\"exact b\""), "{traces}");
}

#[test]
fn the_server_is_compiled_once_for_a_toolchain_or_elaborated_where_it_does_not_compile() {
    let trace = |standin: &StandIn| {
        let args = ["data", "trace-lean", "Mine.lean", "--project", ".", "--out", "t.jsonl"];
        let out = standin.catamount(&standin.project(), &args);
        assert!(out.status.success(), "{}", text_of(&out));
        text(&out.stderr)
    };
    let kept = |standin: &StandIn| {
        let cache = standin.folder.path().join("cache/catamount/lean");
        let folders = fs::read_dir(cache).unwrap().flatten().map(|entry| entry.path());
        folders.filter(|folder| folder.join("CatamountServer.olean").is_file()).count()
    };
    let standin = StandIn::new();
    let doing = "compiling server and judge";
    assert!(trace(&standin).contains(doing));
    assert!(!trace(&standin).contains(doing), "it is kept");
    assert_eq!(kept(&standin), 1);
    let standin = StandIn::compiling(CANNOT_COMPILE);
    let said = trace(&standin);
    assert!(said.contains("no such option") && said.contains("at every start"), "{said}");
    assert_eq!(kept(&standin), 0);
}

#[test]
fn a_missing_default_toolchain_is_not_called_a_missing_program() {
    let standin = StandIn::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let out = standin.catamount(elsewhere.path(), &["doctor"]);
    let said = text(&out.stdout);
    let line = said.lines().find(|l| l.contains("lake:")).unwrap();
    assert!(line.contains("no default toolchain configured"), "{line}");
    assert!(line.contains("--project") && !line.contains("was not found"), "{line}");
    let project = standin.project();
    let out =
        standin.catamount(elsewhere.path(), &["doctor", "--project", project.to_str().unwrap()]);
    let said = text(&out.stdout);
    assert!(
        said.lines().any(|l| l.starts_with("ok") && l.contains("Lake version 5.0.0")),
        "{said}"
    );
    let api = said.lines().find(|l| l.contains("Lean's API")).unwrap();
    assert!(api.starts_with("ok"), "{api}");
}

#[test]
fn a_project_says_where_its_sources_are_and_with_what_options() {
    let standin = StandIn::new();
    let project = standin.project();
    let source = project.join("code/Mine/Auto.lean");
    fs::create_dir_all(source.parent().unwrap()).unwrap();
    let text = "theorem plain : 1 = 1 := by\n  rfl\n\ntheorem auto (xs : List α) : xs = xs := \
                by\n  rfl\n";
    fs::write(&source, text).unwrap();
    let args = ["data", "trace-lean", "code/Mine/Auto.lean", "--project", ".", "--out", "t.jsonl"];
    let traced = |lakefile: &str| {
        fs::write(project.join("lakefile.toml"), lakefile).unwrap();
        let out = standin.catamount(&project, &args);
        let said = text_of(&out);
        assert!(out.status.success(), "{said}");
        (fs::read_to_string(project.join("t.jsonl")).unwrap().lines().count(), said)
    };
    assert_eq!(traced("name = \"mine\"\n").0, 2);
    let strict = "name = \"mine\"\nsrcDir = \"code\"\n[leanOptions]\nautoImplicit = false\n";
    let (traces, said) = traced(strict);
    assert_eq!(traces, 1, "{said}");
    assert!(said.contains("Auto.lean:4"), "{said}");
}

#[test]
fn a_limit_ends_the_lean_that_a_project_runs() {
    let standin = StandIn::new();
    let project = standin.project();
    let endless = "set_option maxHeartbeats 0 in set_option maxRecDepth 1000000 in exact absurd \
                   (show (List.replicate 3000000 0 ++ List.range 3000000).length = 1 by decide \
                   +kernel) (by decide)";
    let claim = serde_json::json!({
        "name": "t", "statement": "theorem t (p : Prop) : p → p", "tactics": [endless],
    });
    fs::write(project.join("claims.jsonl"), format!("{claim}\n")).unwrap();
    let folder = project.to_str().unwrap();
    let limit = ["--tactic-limit", "4", "--workers", "1", "claims.jsonl"];
    let args = [&["check", "--env", "lean", "--project", folder][..], &limit].concat();
    let out = standin.catamount(&project, &args);
    let said = text_of(&out);
    assert!(said.contains("limit"), "{said}");
    // What was started in the toolchain's name has ended with the command.
    let toolchain = standin.folder.path().join("toolchain").display().to_string();
    let running = fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        text(&line).contains(&toolchain)
    });
    assert!(!running, "a Lean of the project still runs");
}

/// Everything that a command said.
fn text_of(out: &Output) -> String {
    text(&out.stdout) + &text(&out.stderr)
}
