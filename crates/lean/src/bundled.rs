//! The library that comes with the program: small theorems over core Lean, for demonstrations and
//! tests.

use std::io;
use std::path::Path;

macro_rules! library {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../library/", $name)))),*] };
}

const FILES: &[(&str, &str)] = library![
    "Bool.lean",
    "Function.lean",
    "Int.lean",
    "List.lean",
    "Logic.lean",
    "Nat.lean",
    "Option.lean"
];

/// Writes the library's files into `folder`, which then serves as [`crate::Options::root`].
pub fn write_bundled_library(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, text) in FILES {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}
