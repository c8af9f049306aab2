//! What the tests share: the bundled toy database and Debian's databases.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

use catamount_metamath::{Database, Metamath};
use catamount_search::{Environment, Session};
use catamount_traces::Theorem;

/// The bundled database.
pub const TOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/toy.mm");

pub fn toy() -> Database {
    Database::open(TOY).expect("the toy database is consistent")
}

/// A database of Debian's `metamath-databases`.
pub fn debian(name: &str) -> PathBuf {
    let path = Path::new("/usr/share/metamath/databases").join(name);
    assert!(
        path.exists(),
        "{} is not there: install Debian's `metamath-databases` to run this test",
        path.display()
    );
    path
}

pub fn theorem(name: &str) -> Theorem {
    Theorem { name: name.to_owned(), ..Theorem::default() }
}

pub fn open(environment: &Metamath, name: &str) -> Box<dyn Session> {
    environment.open(&theorem(name)).expect("a theorem of the toy")
}

pub fn tactics(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Whether Debian's `metamath` program accepts a database. Its last line says that all proofs were
/// verified even after errors, so the errors are looked for too; the text is what it said.
pub fn metamath(text: &[u8], name: &str) -> Result<(), String> {
    let path = std::env::temp_dir().join(format!("catamount-{}-{name}.mm", std::process::id()));
    std::fs::write(&path, text).expect("a writable temporary folder");
    let commands =
        [format!("read '{}'", path.display()), "verify proof *".to_owned(), "exit".to_owned()];
    let output = Command::new("metamath").args(commands).output().expect(
        "the `metamath` program must be installed for this test (Debian package `metamath`)",
    );
    std::fs::remove_file(&path).expect("the file just written");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let accepted = said.contains("All proofs in the database were verified")
        && !said.contains("?Error")
        && !said.contains("?Warning");
    if accepted { Ok(()) } else { Err(said) }
}
