//! A run that was killed or interrupted ends where an undisturbed one does, bit for bit.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::common::{Fuse, data, lora, metrics, model, recipe, tokenizer, traces};
use catamount_objective::{Objective, Surrogate};
use catamount_traces::Trace;
use catamount_train::{
    Checkpoint, Dataset, Error, Outcome, Recipe, Refresh, Run, Scores, Snapshot, Weighting,
    prepare, train,
};

/// Trains one run undisturbed and one that dies twice, and compares them.
fn compare(recipe: &Recipe, objective: Surrogate, interrupted: bool) {
    compare_weighed(recipe, objective, interrupted, |data, _| data);
}

fn compare_weighed(
    recipe: &Recipe,
    objective: Surrogate,
    interrupted: bool,
    weighed: impl Fn(Dataset, &[Trace]) -> Dataset,
) {
    let traces = traces(45);
    let tokenizer = tokenizer(&traces);
    let (held_out, traces) = traces.split_at(5);
    let held_out = data(&tokenizer, held_out);
    let data = weighed(data(&tokenizer, traces), traces);
    let folder = tempfile::tempdir().unwrap();
    let fresh = || {
        let mut model = model(&tokenizer);
        prepare(&mut model, recipe).unwrap();
        model
    };
    let go = AtomicBool::new(false);

    let mut whole = fresh();
    let run = Run::new(folder.path(), "whole", &go).validating(Some(&held_out));
    let outcome = train(&mut whole, &data, &objective, recipe, &run).unwrap();
    let Outcome::Finished(summary) = &outcome else { panic!("{outcome:?}") };
    assert!(summary.steps > 20, "{summary:?}");

    for fuse in [45, 15] {
        let stop = Arc::new(AtomicBool::new(false));
        let fused = Fuse::new(objective, fuse, interrupted.then(|| stop.clone()));
        // Each process starts from a model of its own; nothing in memory survives.
        let result = train(
            &mut fresh(),
            &data,
            &fused,
            recipe,
            &Run::new(folder.path(), "broken", &stop).resuming(true).validating(Some(&held_out)),
        );
        match result {
            Ok(Outcome::Interrupted(part)) => {
                assert!(interrupted && part.step > 0 && part.step < summary.steps, "{part:?}")
            }
            Err(Error::Objective(_)) => assert!(!interrupted),
            other => panic!("{other:?}"),
        }
    }
    let mut broken = fresh();
    let again = train(
        &mut broken,
        &data,
        &objective,
        recipe,
        &Run::new(folder.path(), "broken", &go).resuming(true).validating(Some(&held_out)),
    )
    .unwrap();
    assert_eq!(again.summary().infeasible, summary.infeasible);
    assert_eq!(Snapshot::take(&whole).unwrap(), Snapshot::take(&broken).unwrap());
    let lines = |name: &str| metrics(&folder.path().join(format!("{name}.metrics.jsonl")));
    assert_eq!(lines("whole"), lines("broken"));
    let state = |name: &str| {
        let folder =
            folder.path().join(name).join(format!("checkpoints/step-{:08}", summary.steps));
        std::fs::read(folder.join("state.safetensors")).unwrap()
    };
    assert!(state("whole") == state("broken"), "parameters and moments on the disk differ");

    // Resuming what is finished trains nothing and gives the trained model.
    let mut done = fresh();
    let outcome = train(
        &mut done,
        &data,
        &objective,
        recipe,
        &Run::new(folder.path(), "whole", &go).resuming(true),
    )
    .unwrap();
    assert!(matches!(outcome, Outcome::Finished(s) if s.last.is_none()));
    assert_eq!(Snapshot::take(&whole).unwrap(), Snapshot::take(&done).unwrap());
}

/// A number whose last digits matter survives being written and read.
fn odd() -> Recipe {
    let mut recipe = with(Refresh::Online);
    recipe.optimizer.lr = 0.003 * (1.0 + f64::EPSILON) / 1.000_000_7;
    recipe
}

fn with(refresh: Refresh) -> Recipe {
    Recipe { epochs: 2, weights: Weighting { refresh, ..Weighting::default() }, ..recipe() }
}

#[test]
fn killed_online() {
    compare(&odd(), Surrogate::new(Objective::Bfs, 3), false);
}

#[test]
fn killed_with_cross_entropy_and_recomputation() {
    let mut recipe = with(Refresh::Online);
    recipe.batch.recompute = true;
    compare(&recipe, Surrogate::new(Objective::Ce, 0), false);
}

#[test]
fn interrupted_online_with_an_adapter_and_dropout() {
    compare(
        &Recipe { lora: lora(), ..with(Refresh::Online) },
        Surrogate::new(Objective::Rdfs, 16),
        true,
    );
}

#[test]
fn killed_with_frozen_weights() {
    compare(&with(Refresh::Frozen), Surrogate::new(Objective::Ua, 8), false);
}

#[test]
fn killed_with_given_scores() {
    compare_weighed(
        &with(Refresh::Online),
        Surrogate::new(Objective::Vdfs, 9),
        false,
        |data, traces| {
            let log_p: Vec<f64> = (0..data.examples()).map(|e| -0.1 * (1 + e % 7) as f64).collect();
            let scores = Scores::new(traces, &data, &log_p);
            data.weighed_by(&scores, traces).unwrap()
        },
    );
}

#[test]
fn interrupted_with_weights_refreshed_every_third_step() {
    compare(&with(Refresh::Every(3)), Surrogate::new(Objective::Mcts, 20), true);
}

#[test]
fn another_run_is_not_continued() {
    let traces = traces(12);
    let tokenizer = tokenizer(&traces);
    let folder = tempfile::tempdir().unwrap();
    let go = AtomicBool::new(false);
    let attempt = |recipe: &Recipe, objective, n: usize, resume: bool| {
        let data = data(&tokenizer, &traces[..n]);
        let run = Run::new(folder.path(), "run", &go).resuming(resume);
        train(&mut model(&tokenizer), &data, &Surrogate::new(objective, 9), recipe, &run)
            .map_err(|e| e.to_string())
    };
    attempt(&recipe(), Objective::Bfs, 12, false).unwrap();
    assert!(attempt(&recipe(), Objective::Bfs, 12, false).unwrap_err().contains("resume it"));
    assert!(
        attempt(&recipe(), Objective::Ua, 12, true)
            .unwrap_err()
            .contains("objective bfs with budget 9")
    );
    assert!(attempt(&recipe(), Objective::Bfs, 11, true).unwrap_err().contains("other data"));
    let mut other = recipe();
    other.optimizer.lr = 0.01;
    let error = attempt(&other, Objective::Bfs, 12, true).unwrap_err();
    assert!(error.contains("lr = 0.003") && error.contains("lr = 0.01"), "{error}");
    let mut quieter = recipe();
    quieter.log_every = 5;
    quieter.checkpoints.every = 1;
    attempt(&quieter, Objective::Bfs, 12, true).unwrap();
}

/// What an adapter's checkpoint does not hold is the base that it adapts.
#[test]
fn a_run_goes_on_with_the_model_that_it_began_from() {
    let traces = traces(8);
    let tokenizer = tokenizer(&traces);
    let (data, go) = (data(&tokenizer, &traces), AtomicBool::new(false));
    let folder = tempfile::tempdir().unwrap();
    let attempt = |base: &str| {
        let run = Run::new(folder.path(), "run", &go).resuming(true);
        let run = run.begun_from(Some(base.to_string()));
        let objective = Surrogate::new(Objective::Bfs, 9);
        let trained = train(&mut model(&tokenizer), &data, &objective, &recipe(), &run);
        trained.map(|_| ()).map_err(|error| error.to_string())
    };
    attempt("one").unwrap();
    attempt("one").unwrap();
    let refused = attempt("two").unwrap_err();
    assert!(refused.contains("begun from another model (one, now two)"), "{refused}");
}

/// Whichever file of the newest checkpoint is damaged, and however: the run goes on from the one
/// before and ends where it would have.
#[test]
fn a_damaged_checkpoint_is_passed_over_for_the_one_before() {
    let traces = traces(16);
    let tokenizer = tokenizer(&traces);
    let (data, go) = (data(&tokenizer, &traces), AtomicBool::new(false));
    let attempt = |folder: &Path| {
        let (mut model, run) = (model(&tokenizer), Run::new(folder, "run", &go).resuming(true));
        let objective = Surrogate::new(Objective::Bfs, 9);
        train(&mut model, &data, &objective, &recipe(), &run).unwrap();
        Snapshot::take(&model).unwrap()
    };
    let flip = |bytes: &mut Vec<u8>| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    };
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2);
    type Damaging<'a> = &'a dyn Fn(&mut Vec<u8>);
    let damages: [(&str, Damaging<'_>); 5] = [
        ("state.safetensors", &flip),
        ("state.safetensors", &cut),
        ("position.json", &flip),
        ("checksums.json", &cut),
        ("checksums.json", &|bytes| *bytes = b"{}".to_vec()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let whole = attempt(folder.path());
    let checkpoints = folder.path().join("run/checkpoints");
    let newest = || std::fs::read_dir(&checkpoints).unwrap().map(|e| e.unwrap().path()).max();
    for (name, damage) in damages {
        let file = newest().unwrap().join(name);
        let sound = std::fs::read(&file).unwrap();
        let mut bytes = sound.clone();
        damage(&mut bytes);
        std::fs::write(&file, bytes).unwrap();
        let error = Checkpoint::open(&newest().unwrap()).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{name}: {error}");
        assert_eq!(attempt(folder.path()), whole, "{name}");
        assert_eq!(std::fs::read(&file).unwrap(), sound, "{name} is made again");
    }
    // With none left that is sound, the run begins anew.
    for entry in std::fs::read_dir(&checkpoints).unwrap() {
        std::fs::remove_file(entry.unwrap().path().join("position.json")).unwrap();
    }
    assert_eq!(attempt(folder.path()), whole);
}

/// That a checkpoint is damaged is said on standard error; where that cannot be, the run goes on
/// all the same.
#[cfg(target_os = "linux")]
#[test]
fn a_damaged_checkpoint_is_passed_over_where_nothing_can_be_said() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "resume::a_damaged_checkpoint_is_passed_over_for_the_one_before"])
        .arg("--nocapture")
        .stdout(std::process::Stdio::null())
        .stderr(full)
        .status();
    assert!(status.unwrap().success());
}
