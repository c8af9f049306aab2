//! A study by several processes gives what one process gives: on several devices, killed, and step
//! by step. Processors stand in for cards: a device is a process of its own either way.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use common::small::{SMALL, assert_same, results};
use common::{flip_a_bit, folder_with, printed, refused, said};

const ONE: &str = "run small.toml --out one --device cpu";
const TWO: &str = "run small.toml --out two --device cpu:0,cpu:1";

#[test]
fn several_devices_give_what_one_gives() {
    let folder = folder_with("small.toml", SMALL);
    said(folder.path(), ONE);
    let log = said(folder.path(), TWO);
    assert!(log.contains("on cpu:0") && log.contains("on cpu:1"), "{log}");
    let expected = results(&folder.path().join("one"));
    assert_same(&expected, &results(&folder.path().join("two")), "on two devices");
    let tables = |name: &str| {
        let folder = folder.path().join(name).join("report/tables");
        let read = |entry: fs::DirEntry| (entry.file_name(), fs::read(entry.path()).unwrap());
        fs::read_dir(folder).unwrap().flatten().map(read).collect::<BTreeMap<_, _>>()
    };
    assert!(!tables("one").is_empty() && tables("one") == tables("two"));

    // Nothing is done twice, by whomever it was done.
    let again = said(folder.path(), TWO);
    assert!(again.contains("20 of 21 steps are up to date"), "{again}");
    let alone = said(folder.path(), &ONE.replace("one", "two"));
    assert!(alone.contains("20 of 21 steps are up to date"), "{alone}");
    // What is damaged is made again, with all the processes there are.
    fs::remove_file(folder.path().join("two/cells/ce-bfs-n6.jsonl")).unwrap();
    let repaired = said(folder.path(), TWO);
    assert!(repaired.contains("cell ce bfs n6 is made again"), "{repaired}");
    assert_same(&expected, &results(&folder.path().join("two")), "after repair");
}

#[test]
fn steps_done_together_on_one_device_give_what_each_gives_alone() {
    const TOGETHER: &str = "run small.toml --out two --device cpu --together 3";
    let folder = folder_with("small.toml", SMALL);
    said(folder.path(), ONE);
    let expected = results(&folder.path().join("one"));
    // Killed in the middle, and gone on with.
    let binary = assert_cmd::cargo::cargo_bin("catamount");
    let mut child = Process::new(&binary)
        .args(TOGETHER.split_whitespace())
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    child.kill().unwrap();
    child.wait().unwrap();
    let log = said(folder.path(), TOGETHER);
    assert!(log.contains("on cpu/"), "{log}");
    assert_same(&expected, &results(&folder.path().join("two")), "together");
    let said = refused(folder.path(), "run small.toml --out x --device cpu:0,cpu:1 --together 2");
    assert!(said.contains("--together is for steps on one device"), "{said}");
    // A step that fails says which, and where.
    fs::write(folder.path().join("two/models/ce/model.safetensors"), "not one").unwrap();
    fs::remove_file(folder.path().join("two/steps/cell-ce-bfs-n6.json")).unwrap();
    fs::remove_file(folder.path().join("two/cells/ce-bfs-n6.jsonl")).unwrap();
    let said = refused(folder.path(), &format!("{TOGETHER} --no-verify"));
    assert!(said.contains("bfs n6 failed on cpu/") && said.contains("model.safetensors"), "{said}");
}

/// `catamount train` on two devices, by processes that fail where a script says so.
fn train_with(folder: &Path, script: &str) -> (Option<i32>, String) {
    use std::os::unix::fs::PermissionsExt;
    let binary = assert_cmd::cargo::cargo_bin("catamount");
    let wrapper = folder.join("wrapper");
    let fails = r#"{ echo "the card has fallen off the bus" >&2; exit 4; }"#;
    let script = script.replace("FAILS", fails);
    fs::write(&wrapper, format!("#!/bin/sh\n{script}\nexec {} \"$@\"\n", binary.display()))
        .unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Process::new(&binary)
        .args("train small.toml --out two --device cpu:0,cpu:1".split_whitespace())
        .env("CATAMOUNT_PROGRAM", &wrapper)
        .env_remove("RAYON_NUM_THREADS")
        .current_dir(folder)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_task_that_fails_on_one_device_is_done_on_another() {
    let folder = folder_with("small.toml", SMALL);
    // A folder is made once.
    let once = "echo $RAYON_NUM_THREADS >> threads\n\
                case \"$*\" in *'--only branch-ce'*) mkdir failed && FAILS;; esac";
    let (code, log) = train_with(folder.path(), once);
    assert_eq!(code, Some(0), "{log}");
    let (_, after) = log.split_once("branch ce: failed on ").expect(&log);
    assert!(after.contains("the card has fallen off the bus; it is done again"), "{log}");
    let other = if after.starts_with("cpu:0") { "cpu:1" } else { "cpu:0" };
    assert!(log.contains(&format!("branch ce on {other}, ")), "{log}");
    assert!(folder.path().join("two/models/ce").is_dir(), "{log}");
    // Processes share the processors.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = fs::read_to_string(folder.path().join("threads")).unwrap();
    assert!(threads.lines().all(|line| line == (cores / 2).max(1).to_string()), "{threads}");
}

#[test]
fn what_fails_on_two_devices_is_a_failure() {
    let folder = folder_with("small.toml", SMALL);
    let (code, log) = train_with(folder.path(), "case \"$*\" in *'--only data'*) FAILS;; esac");
    assert_eq!((code, log.matches("it is done again on another").count()), (Some(2), 1), "{log}");
    assert!(log.contains("exit status: 4: the card has fallen off the bus"), "{log}");
}

#[test]
fn a_killed_scheduler_takes_its_processes_along_and_loses_nothing() {
    let folder = folder_with("small.toml", SMALL);
    said(folder.path(), ONE);
    let binary = assert_cmd::cargo::cargo_bin("catamount");
    for life in [600, 1500, 2500] {
        let mut child = Process::new(&binary)
            .args(TWO.split_whitespace())
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(life));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    said(folder.path(), TWO);
    let expected = results(&folder.path().join("one"));
    assert_same(&expected, &results(&folder.path().join("two")), "after three kills");
}

#[test]
fn a_study_has_one_scheduler() {
    let folder = folder_with("small.toml", SMALL);
    let study = folder.path().join("two");
    fs::create_dir(&study).unwrap();
    let held = fs::File::create(study.join(".schedule.lock")).unwrap();
    held.lock().unwrap();
    fs::write(study.join(".schedule.lock"), r#"{"process": 4321, "host": "elsewhere"}"#).unwrap();
    let reason = refused(folder.path(), TWO);
    assert!(reason.contains("process 4321 on elsewhere"), "{reason}");
    assert!(!study.join("steps").exists(), "nothing was written");
}

/// The ids of a plan, by `--dry-run --json`.
fn ids(folder: &Path) -> Vec<String> {
    let outline = printed(folder, "run small.toml --out study --dry-run --json");
    let outline: serde_json::Value = serde_json::from_str(&outline).unwrap();
    let steps = outline["steps"].as_array().unwrap();
    for step in steps {
        assert!(step["needs"]["cpus"].as_f64().unwrap() >= 1.0, "{step}");
        assert!(step["outputs"].as_array().is_some_and(|files| !files.is_empty()), "{step}");
        let before = step["after"].as_array().unwrap();
        assert_eq!(before.is_empty(), step["kind"] == "data", "{step}");
    }
    steps.iter().map(|step| step["id"].as_str().unwrap().to_string()).collect()
}

#[test]
fn steps_can_be_done_one_by_one_in_an_order_that_makes_sense() {
    let folder = folder_with("small.toml", SMALL);
    let ids = ids(folder.path());
    let step = |ids: &str| format!("step small.toml --out study --device cpu {ids}");
    let reason = refused(folder.path(), &step("--only warm-up"));
    assert!(reason.contains("warm-up needs data, which is not done"), "{reason}");
    let reason = refused(folder.path(), &step("--only warmup"));
    assert!(reason.contains("did you mean `warm-up`"), "{reason}");
    for id in &ids {
        said(folder.path(), &step(&format!("--only {id}")));
        if id == "warm-up" {
            what_a_step_needs_is_looked_at(folder.path(), &step("--only branch-ce"));
            said(folder.path(), &step("--only warm-up"));
        }
    }
    assert!(!said(folder.path(), &step("--only warm-up")).contains("warm-up"), "it is done");
    said(folder.path(), ONE);
    let expected = results(&folder.path().join("one"));
    assert_same(&expected, &results(&folder.path().join("study")), "step by step");
}

/// A model with a flipped bit trains no branch.
fn what_a_step_needs_is_looked_at(folder: &Path, branch: &str) {
    flip_a_bit(&folder.join("study/models/warm-up/model.safetensors"));
    let reason = refused(folder, branch);
    assert!(reason.contains("branch ce needs warm-up, which is damaged"), "{reason}");
    assert!(reason.contains("model.safetensors: changed since it was written"), "{reason}");
    assert!(!folder.join("study/models/ce").exists());
}

#[test]
fn a_larger_cluster_is_forecast_from_times() {
    let folder = folder_with("small.toml", SMALL);
    let plan = "run small.toml --out study --dry-run --nodes 8 --cpus 1";
    let reason = refused(folder.path(), plan);
    assert!(reason.contains("--times data=SECONDS"), "{reason}");
    let times = "--times data=5,warm-up=30,fold=30,scores=2,branch=20,tournament=10,cell=10,\
                 report=1 --startup 0";
    let forecast = printed(folder.path(), &format!("{plan} {times}"));
    assert!(forecast.contains("node 5") && forecast.contains("limited by"), "{forecast}");
    // 5 + 30 + 2 + 20 + 10 + 10 + 1: data, warm-up, scores, branch, tournament, cell, report.
    assert!(forecast.contains("78 s on 8 nodes"), "{forecast}");
    // Seeds are one plan, and one document.
    fs::write(folder.path().join("seeds.toml"), format!("seeds = [1, 2]\n{SMALL}")).unwrap();
    let seeds = format!("{plan} {times} --json").replace("small.toml", "seeds.toml");
    let both: serde_json::Value =
        serde_json::from_str(&printed(folder.path(), &seeds)).expect("one document");
    assert!(both["seconds"].as_f64().unwrap() < 1.5 * 78.0, "they are done side by side");
    let names = both["tasks"].as_array().unwrap().iter().map(|task| task["name"].to_string());
    assert_eq!(names.filter(|name| name.contains("seed 2, warm-up")).count(), 1);
    let none_left = refused(folder.path(), &format!("{plan} {times} --ray --ray-provers 8"));
    assert!(none_left.contains("leave the nodes no processor"), "{none_left}");
    let reason = refused(folder.path(), &format!("{plan} --times cells=3"));
    assert!(reason.contains("there is no kind `cells`"), "{reason}");
}

#[test]
fn machines_that_cannot_be_are_refused() {
    let temporary = folder_with("small.toml", SMALL);
    for (rest, named) in [
        ("--startup nan", "from 0 to"),
        ("--startup inf", "from 0 to"),
        ("--cpus 0", "from 1 to"),
        ("--cpus nan", "from 1 to"),
        ("--gpus nan", "from 0 to"),
        ("--times data=nan", "from 0 to"),
    ] {
        let asked = format!("run small.toml --dry-run --nodes 2 {rest}");
        let said = refused(temporary.path(), &asked);
        assert!(said.contains(named), "{rest}: {said}");
    }
}

#[test]
fn devices_that_are_not_there_are_refused() {
    let folder = folder_with("small.toml", SMALL);
    for (device, named) in
        [("cuda:0,cuda:0", "twice"), ("auto,cpu", "name them all"), ("tpu:1", "unknown device")]
    {
        let reason = refused(folder.path(), &format!("run small.toml --out x --device {device}"));
        assert!(reason.contains(named), "{reason}");
    }
    let reason = refused(folder.path(), "calibrate small.toml --out x --device cpu:0,cpu:1");
    assert!(reason.contains("name one --device"), "{reason}");
    assert!(!folder.path().join("x").exists());
}
