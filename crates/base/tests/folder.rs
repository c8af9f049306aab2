//! A folder is the old one or the complete new one.

use std::fs;

use catamount_base::AtomicFolder;

#[test]
fn a_folder_appears_whole_and_replaces_whole() {
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("deep").join("model");
    let dropped = AtomicFolder::create(&target).unwrap();
    fs::write(dropped.path().join("half"), "x").unwrap();
    drop(dropped);
    assert!(!target.exists());
    for text in ["one", "two"] {
        let folder = AtomicFolder::create(&target).unwrap();
        fs::write(folder.path().join(text), text).unwrap();
        folder.commit().unwrap();
        let names: Vec<_> =
            fs::read_dir(&target).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, [text], "nothing of the old one is left");
    }
    assert_eq!(fs::read_dir(place.path().join("deep")).unwrap().count(), 1);
}

#[test]
fn of_two_that_are_offered_the_first_stays() {
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("module");
    for text in ["first", "second"] {
        let folder = AtomicFolder::create(&target).unwrap();
        fs::write(folder.path().join("text"), text).unwrap();
        folder.offer().unwrap();
        assert_eq!(fs::read_to_string(target.join("text")).unwrap(), "first");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn what_a_killed_process_left_is_swept_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at(".model.1.0.unfinished")).unwrap();
    fs::write(at(".plan.json.1.0.unfinished"), "").unwrap();
    fs::write(at("mine.unfinished"), "").unwrap();
    fs::create_dir(at("model")).unwrap();
    AtomicFolder::sweep(place.path()).unwrap();
    let mut names: Vec<_> =
        fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["mine.unfinished", "model"]);
}

/// As a process that was killed while it filled a folder leaves it, beside one that is being
/// filled.
#[cfg(unix)]
#[test]
fn what_nobody_fills_any_more_is_removed_by_the_next() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at(".module.1.0.unfinished/deep")).unwrap();
    fs::create_dir(at("other")).unwrap();
    fs::write(at(".plan.json.1.0.unfinished"), "").unwrap();
    let filled = AtomicFolder::create(&at("first")).unwrap();
    assert!(!at(".module.1.0.unfinished").exists());
    fs::write(filled.path().join("text"), "whole").unwrap();
    AtomicFolder::create(&at("second")).unwrap().commit().unwrap();
    filled.commit().unwrap();
    assert_eq!(fs::read_to_string(at("first").join("text")).unwrap(), "whole");
    // Files have owners of their own.
    assert!(at("other").exists() && at(".plan.json.1.0.unfinished").exists());
}
