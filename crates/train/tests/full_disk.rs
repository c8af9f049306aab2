//! A disk that is full while a checkpoint is written costs that checkpoint alone. The limit on file
//! sizes holds for the whole process, so this test has one of its own.

#![cfg(unix)]

mod common;

use std::sync::atomic::AtomicBool;

use catamount_objective::{Objective, Surrogate};
use catamount_train::{Checkpoint, Error, Recipe, Run, Snapshot, train};
use common::{data, model, recipe, tokenizer, traces};

/// No file may grow beyond this from now on: writing then fails as on a full disk.
fn limit(bytes: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: plain system calls with valid arguments; the signal would end the process instead of
    // failing the write.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

#[test]
fn a_full_disk_leaves_the_earlier_checkpoint_intact() {
    let traces = traces(40);
    let tokenizer = tokenizer(&traces);
    let data = data(&tokenizer, &traces);
    let (folder, go) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let objective = Surrogate::new(Objective::Bfs, 8);
    let mut recipe = Recipe { epochs: 2, ..recipe() };
    let mut whole = model(&tokenizer);
    train(&mut whole, &data, &objective, &recipe, &Run::new(folder.path(), "whole", &go)).unwrap();

    recipe.checkpoints.keep = 1;
    let run = Run::new(folder.path(), "run", &go).resuming(true);
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let fuse = common::Fuse::new(objective, 20, Some(stop.clone()));
    let first = Run { stop: &stop, ..run.clone() };
    train(&mut model(&tokenizer), &data, &fuse, &recipe, &first).unwrap();
    let before = Checkpoint::latest(&run.checkpoints(), &mut |_| {}).unwrap().unwrap();

    limit(60_000);
    let error = train(&mut model(&tokenizer), &data, &objective, &recipe, &run).unwrap_err();
    limit(libc::RLIM_INFINITY);
    let Error::File { path, .. } = &error else { panic!("{error}") };
    assert!(path.to_string_lossy().contains("state.safetensors"), "{error}");
    assert!(error.to_string().contains("the last checkpoint is intact"), "{error}");
    assert_eq!(Checkpoint::latest(&run.checkpoints(), &mut |_| {}).unwrap().unwrap(), before);
    let names: Vec<_> =
        std::fs::read_dir(run.checkpoints()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "nothing half-written is left: {names:?}");

    // With room again, the run continues as if nothing had happened.
    let mut resumed = model(&tokenizer);
    train(&mut resumed, &data, &objective, &recipe, &run).unwrap();
    assert_eq!(Snapshot::take(&whole).unwrap(), Snapshot::take(&resumed).unwrap());
}
