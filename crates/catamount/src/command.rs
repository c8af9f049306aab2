//! How the command line was called, for manifests.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use catamount_base::Content;

static ARGUMENTS: OnceLock<Vec<String>> = OnceLock::new();

/// Keeps the arguments of this call. They are not always the process's: in Python these begin with
/// the interpreter.
pub fn remember(arguments: &[OsString]) {
    let text = arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    // Of several calls in one process, the first names all: only tests call twice.
    let _ = ARGUMENTS.set(text.collect());
}

/// The command line, with arguments quoted where a shell would need it and without passwords.
pub fn line() -> String {
    let quote = |argument: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    };
    std::iter::once("catamount".to_string())
        .chain(
            ARGUMENTS.get().into_iter().flatten().map(|argument| catamount_base::shown(argument)),
        )
        .map(quote)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Names the program that processes of a study are started with, where it is not this one's path.
const PROGRAM: &str = "CATAMOUNT_PROGRAM";

/// How this program is started again: by its own path, or in Python as the package's module.
pub fn program() -> std::io::Result<Vec<String>> {
    if let Some(named) = std::env::var(PROGRAM).ok().filter(|named| !named.is_empty()) {
        return Ok(vec![named]);
    }
    let path = std::env::current_exe()?;
    let python = path.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with("python"));
    let mut program = vec![path.display().to_string()];
    if python {
        program.extend(["-m", "catamount"].map(String::from));
    }
    Ok(program)
}

/// The commit this binary was built from, where that is known.
pub fn commit() -> Option<String> {
    option_env!("CATAMOUNT_COMMIT").map(String::from)
}

/// The content of the file that this program's code was loaded from: in Python, of the package's
/// library.
pub fn executable() -> Option<Content> {
    let code = executable as fn() -> Option<Content> as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let holds = |line: &&str| {
        let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        range
            .and_then(|(from, to)| Some(number(from)?..number(to)?))
            .is_some_and(|range| range.contains(&code))
    };
    let mapped = maps.lines().find(holds).and_then(|line| Some(&line[line.find('/')?..]));
    let path = mapped.map(PathBuf::from).or_else(|| std::env::current_exe().ok())?;
    Content::of_file(&path).ok()
}

/// How whatever this process makes is made.
pub fn provenance() -> catamount_evaluate::log::Provenance {
    let version = env!("CARGO_PKG_VERSION").to_string();
    catamount_evaluate::log::Provenance { version, commit: commit(), command: line() }
}
