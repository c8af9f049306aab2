//! Whole files, and what is left of writers that were killed.

use std::io::Write;

use catamount_base::AtomicFile;

#[test]
fn what_a_killed_writer_left_is_removed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("train.jsonl");
    // As a process leaves them that was killed: nobody holds their locks.
    for name in [".train.jsonl.4321.0.unfinished", ".train.jsonl.4321.7.unfinished"] {
        std::fs::write(folder.path().join(name), "half a li").unwrap();
    }
    let others = [
        ".other.jsonl.4321.0.unfinished",
        ".train.jsonl.notes.unfinished",
        "train.jsonl.unfinished",
    ];
    for name in others {
        std::fs::write(folder.path().join(name), "mine").unwrap();
    }
    let living = AtomicFile::create(&target).unwrap();
    let mut second = AtomicFile::create(&target).unwrap();
    second.write_all(b"whole\n").unwrap();
    second.commit().unwrap();
    let names = || -> std::collections::BTreeSet<String> {
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| name(entry).into_string().unwrap()).collect()
    };
    let unfinished: Vec<String> =
        names().into_iter().filter(|name| name.starts_with(".train.jsonl.")).collect();
    assert_eq!(unfinished.len(), 2, "the living writer's, and one that is no writer's");
    drop(living);
    let mut left: Vec<&str> = others.to_vec();
    left.push("train.jsonl");
    left.sort_unstable();
    assert!(names().iter().eq(left.iter()), "{:?}", names());
}

#[cfg(unix)]
#[test]
fn a_file_that_another_writer_made_for_itself_alone_is_as_readable_as_any() {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let folder = tempfile::tempdir().unwrap();
    let (plain, target) = (folder.path().join("plain"), folder.path().join("target"));
    std::fs::write(&plain, "x").unwrap();
    let file = AtomicFile::create(&target).unwrap();
    std::fs::remove_file(file.unfinished()).unwrap();
    let mut private = std::fs::OpenOptions::new();
    private.write(true).create_new(true).mode(0o600).open(file.unfinished()).unwrap();
    file.commit().unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&target), mode(&plain));
}
