//! The library that comes with the program: small theorems over core Lean, for demonstrations and
//! tests.

use std::io;
use std::path::Path;

use catamount_base::Content;

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

/// Writes the library's files into `folder`, which then serves as [`crate::Options::root`]. What is
/// there already stays untouched: another process may be reading it.
pub fn write_bundled_library(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, text) in FILES {
        let path = folder.join(name);
        if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
            catamount_base::write(&path, text)?;
        }
    }
    Ok(())
}

/// The hash of the library, as of any other: names and contents, in the order of the names.
pub(crate) fn content() -> Content {
    let file = |(name, text): &(&str, &str)| [name.to_string(), Content::of(text).to_string()];
    Content::of_texts(FILES.iter().flat_map(file))
}
