//! What tests of the binary share: a folder to run it in, and what is expected of a run.
#![allow(dead_code, reason = "every test uses a part of this")]

pub mod service;
pub mod small;

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

/// Debian's quantum logic database, which package metamath-databases puts there.
pub const DATABASE: &str = "/usr/share/metamath/databases/ql.mm";

/// Runs the binary in a folder.
pub fn catamount(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::cargo_bin("catamount").unwrap();
    command.current_dir(folder).args(arguments.split_whitespace()).output().unwrap()
}

/// What a run printed, which must succeed.
pub fn printed(folder: &Path, arguments: &str) -> String {
    let output = succeeded(catamount(folder, arguments), arguments);
    String::from_utf8(output.stdout).unwrap()
}

/// What a run that must succeed said on the way.
pub fn said(folder: &Path, arguments: &str) -> String {
    let output = succeeded(catamount(folder, arguments), arguments);
    String::from_utf8(output.stderr).unwrap()
}

fn succeeded(output: Output, arguments: &str) -> Output {
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Why a run was refused, which it must be.
pub fn refused(folder: &Path, arguments: &str) -> String {
    let output = catamount(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
    said
}

/// A file of a folder as text.
pub fn read(folder: &Path, path: &str) -> String {
    fs::read_to_string(folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A folder with a file in it.
pub fn folder_with(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), text).unwrap();
    folder
}

/// Changes one bit of a file.
pub fn flip_a_bit(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(path, bytes).unwrap();
}
