//! A study that is killed, damaged, disturbed or changed, on Debian's quantum logic database: what
//! comes of it is what comes of one that nobody touched.
//!
//! `killed_at_any_moment_a_study_ends_with_the_same_bytes` kills at 10 moments; the environment
//! variable `CATAMOUNT_KILLS` (such as 50) asks for more.

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use common::small::{SMALL, assert_same, results};
use common::{catamount, flip_a_bit, folder_with, refused, said};

const RUN: &str = "run small.toml --out study --device cpu";

fn folder() -> tempfile::TempDir {
    folder_with("small.toml", SMALL)
}

#[test]
fn killed_at_any_moment_a_study_ends_with_the_same_bytes() {
    let whole = folder();
    let started = Instant::now();
    said(whole.path(), RUN);
    let lasted = started.elapsed();
    let expected = results(&whole.path().join("study"));
    assert!(expected.len() > 20, "{:?}", expected.keys());

    let kills: usize =
        std::env::var("CATAMOUNT_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    // Any sequence of moments will do; this one is the same every time.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut broken = folder();
    let binary = assert_cmd::cargo::cargo_bin("catamount");
    let mut done = 0;
    while done < kills {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let share = (random >> 33) as f64 / (1u64 << 31) as f64;
        // Short lives, so that a study dies several times before it is done.
        let life = Duration::from_secs_f64(lasted.as_secs_f64() * share * 0.6);
        let mut child = Process::new(&binary)
            .args(RUN.split_whitespace())
            .current_dir(broken.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(life);
        let over = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        if over {
            assert_same(&expected, &results(&broken.path().join("study")), "after kills");
            broken = folder();
        } else {
            done += 1;
        }
    }
    said(broken.path(), RUN);
    assert_same(&expected, &results(&broken.path().join("study")), "after the last kill");
}

#[test]
fn what_is_damaged_or_gone_is_made_again() {
    let folder = folder();
    let study = folder.path().join("study");
    said(folder.path(), RUN);
    let expected = results(&study);
    let models: Vec<PathBuf> =
        expected.keys().filter(|path| path.ends_with("model.safetensors")).cloned().collect();
    assert_eq!(models.len(), 7, "a name with a space has a folder too: {models:?}");
    let shorten = |path: &str| {
        let bytes = fs::read(study.join(path)).unwrap();
        fs::write(study.join(path), &bytes[..bytes.len() / 2]).unwrap();
    };
    fs::remove_file(study.join("cells/ce-bfs-n6.jsonl")).unwrap();
    shorten("data/train.jsonl");
    shorten("tune/bfs-n6.json");
    flip_a_bit(&study.join("models/warm-up/model.safetensors"));

    let trusting = said(folder.path(), &format!("{RUN} --no-verify"));
    assert!(!trusting.contains("made again"), "{trusting}");
    let repaired = said(folder.path(), RUN);
    for (file, step) in [
        ("cells/ce-bfs-n6.jsonl: missing", "cell ce bfs n6"),
        ("data/train.jsonl: changed", "data"),
        ("models/warm-up/model.safetensors: changed", "warm-up"),
        ("tune/bfs-n6.json: changed", "tune bfs n6"),
    ] {
        let line = repaired
            .lines()
            .find(|line| line.contains(file))
            .unwrap_or_else(|| panic!("{repaired}"));
        assert!(line.ends_with(&format!("; {step} is made again")), "{line}");
    }
    assert_same(&expected, &results(&study), "after repair");
    let again = said(folder.path(), RUN);
    assert!(again.contains("20 of 21 steps are up to date"), "{again}");
}

#[test]
fn settings_that_come_back_find_their_work_again() {
    let folder = folder();
    let study = folder.path().join("study");
    let settings = |text: String| fs::write(folder.path().join("small.toml"), text).unwrap();
    said(folder.path(), RUN);
    let first = results(&study);
    settings(SMALL.replace("limit = 12", "limit = 5"));
    said(folder.path(), RUN);
    let log = |name: &str| fs::read_to_string(study.join("cells").join(name)).unwrap();
    assert_eq!(log("ce-bfs-n6.jsonl").lines().count(), 5);
    settings(SMALL.to_string());
    let back = said(folder.path(), RUN);
    assert_eq!(back.matches("taken back from stale/").count(), 7, "{back}");
    assert_same(&first, &results(&study), "after coming back");
    assert!(fs::read_dir(study.join("stale")).unwrap().count() >= 3, "the others' work is kept");
}

#[test]
fn a_study_has_one_writer() {
    let folder = folder();
    let study = folder.path().join("study");
    fs::create_dir(&study).unwrap();
    let held = fs::File::create(study.join(".lock")).unwrap();
    held.lock().unwrap();
    fs::write(study.join(".lock"), r#"{"process": 4321, "host": "elsewhere"}"#).unwrap();
    let said = refused(folder.path(), RUN);
    assert!(said.contains("process 4321 on elsewhere"), "{said}");
    assert!(!study.join("plan.json").exists(), "nothing was written");
}

/// How many theorems have the lengths that are searched is known once there are data: before
/// anything is trained, and again where the data were there before.
#[test]
fn what_the_data_have_nothing_for_is_refused_before_training() {
    let folder = folder();
    let long = SMALL.replace("[evaluation]", "[evaluation]\nsteps = \"70-80\"");
    fs::write(folder.path().join("long.toml"), long).unwrap();
    for _ in 0..2 {
        let said = refused(folder.path(), "run long.toml --out study --device cpu");
        assert!(said.contains("has 0 theorems of 70-80 steps"), "{said}");
        assert!(!folder.path().join("study/models").exists());
        assert!(!folder.path().join("study/training").exists());
    }
}

#[test]
fn a_file_is_judged_before_any_work_and_can_be_looked_at_before_its_data_are_there() {
    let folder = folder();
    fs::write(folder.path().join("bad.toml"), SMALL.replace("limit = 12", "limit = 0")).unwrap();
    let said = refused(folder.path(), "run bad.toml --out study");
    assert!(said.contains("bad.toml:9: evaluation.limit: is 0"), "{said}");
    assert!(!folder.path().join("study").exists());
    let nothing = SMALL.replace("0.5,0.3,0.2", "0.8,0.2,0");
    fs::write(folder.path().join("bad.toml"), nothing).unwrap();
    let said = refused(folder.path(), "run bad.toml --out study");
    assert!(
        said.contains("data.split: is 0.8,0.2,0, which leaves nothing to be searched"),
        "{said}"
    );
    assert!(!folder.path().join("study").exists());

    fs::write(folder.path().join("later.toml"), SMALL.replace("ql.mm", "later.mm")).unwrap();
    let output = catamount(folder.path(), "run later.toml --dry-run");
    let plan = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && plan.contains("later.mm"), "{plan}");
    assert!(plan.contains("cell a b bfs n6") && plan.contains("to do"), "{plan}");
    assert!(refused(folder.path(), "run later.toml").contains("metamath-databases"));

    for (preset, ..) in catamount_experiment::PRESETS {
        let printed = catamount(folder.path(), &format!("run {preset} --print")).stdout;
        fs::write(folder.path().join("mine.toml"), printed).unwrap();
        let plan = catamount(folder.path(), "run mine.toml --dry-run");
        assert!(plan.status.success(), "{preset}: {}", String::from_utf8_lossy(&plan.stderr));
    }
    let schema = catamount(folder.path(), "run --schema").stdout;
    let schema: serde_json::Value = serde_json::from_slice(&schema).unwrap();
    assert!(schema["properties"]["evaluation"].is_object(), "{schema}");
}
