//! One writer at a time, and no lock outlives its process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use catamount_base::{Lock, LockError};

const FOLDER: &str = "CATAMOUNT_TEST_LOCKED_FOLDER";

/// Not a test by itself: holds a lock until it is killed.
#[test]
#[ignore = "the other process of the test below"]
fn holder() {
    let folder = std::env::var_os(FOLDER).expect("started by the test below");
    let _lock = Lock::take(Path::new(&folder)).unwrap();
    println!("locked");
    std::thread::sleep(std::time::Duration::from_secs(600));
}

fn hold(folder: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holder", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("locked")), "the holder ended");
    child
}

#[test]
fn the_holder_is_named_and_a_killed_one_lets_go() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = hold(folder.path());
    let error = Lock::take(folder.path()).unwrap_err();
    let LockError::Held { holder, .. } = &error else { panic!("{error}") };
    assert_eq!(holder.as_ref().unwrap().process, child.id());
    assert!(error.to_string().contains(&format!("process {}", child.id())), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(Lock::take(folder.path()).unwrap());
    Lock::take(folder.path()).unwrap();
}

#[test]
fn one_process_does_not_take_a_lock_twice() {
    let folder = tempfile::tempdir().unwrap();
    let lock = Lock::take(folder.path()).unwrap();
    assert!(matches!(Lock::take(folder.path()), Err(LockError::Held { .. })));
    drop(lock);
    Lock::take(folder.path()).unwrap();
}

#[test]
fn parts_of_a_folder_are_shared_and_the_whole_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let parts = [Lock::share(folder.path()).unwrap(), Lock::share(folder.path()).unwrap()];
    assert!(matches!(Lock::take(folder.path()), Err(LockError::Held { .. })));
    drop(parts);
    let whole = Lock::take(folder.path()).unwrap();
    let error = Lock::share(folder.path()).unwrap_err();
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(whole);
    Lock::share(folder.path()).unwrap();
}
