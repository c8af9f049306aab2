//! A second kernel, which neither we nor Lean's authors wrote: nanoda reads a proof and everything
//! it rests on from the ground up.
//!
//! The user builds it (<https://github.com/ammkrn/nanoda_lib>); we start `nanoda_bin`, confined
//! like a prover, and read how it ended.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use catamount_search::{Checked, Fault};
use serde_json::{Value, json};

use crate::certificate::Certificate;
use crate::check::Verified;
use crate::child::Child;
use crate::environment::Lean;
use crate::options::{Kernel, Options};
use crate::sandbox::{Layer, Program, Sandbox};
use crate::session::Target;
use crate::tool;
use crate::worker::Place;

/// How it refuses: its kernel panics ...
const PANICKED: i32 = 101;
/// ... or it finds an axiom that it was not to. Settings and formats that it does not know end with
/// the same code ...
const ERROR: i32 = 1;
const UNPERMITTED: &str = "unpermitted axiom";
/// ... and its reader panics, too.
const READER: &str = "panicked at src/parser.rs";
/// How much of its words is kept.
const WORDS: usize = 4096;

/// A certificate of `(p ∧ q) = (q ∧ p)`, written by this program.
const KNOWN: &str = include_str!("nanoda/known.ndjson");
/// What it takes on trust.
const TRUSTED: [&str; 3] = ["propext", "And.left", "And.right"];

impl Certificate {
    /// What nanoda makes of it: how many declarations it accepted, or why it did not.
    pub fn put_to_nanoda(&self, options: &Options) -> Result<Result<u64, String>, Fault> {
        let fault = |why: String| Fault(format!("nanoda: {why}"));
        let program = tool::nanoda().map_err(|e| Fault(e.to_string()))?;
        tried(&program, options).map_err(fault)?;
        ask(&program, &self.text, &self.kernel_settings(options), options).map_err(fault)
    }

    /// The settings under which nanoda judges this certificate, read from its standard input: what
    /// it may take on trust, and nothing else.
    pub fn kernel_settings(&self, options: &Options) -> Value {
        let allowed = self.axioms.iter().filter(|axiom| options.allowed_axioms.contains(axiom));
        settings(self.library_statements.iter().chain(allowed).map(String::as_str))
    }
}

fn settings<'a>(permitted: impl Iterator<Item = &'a str>) -> Value {
    json!({
        "use_stdin": true,
        "permitted_axioms": permitted.collect::<Vec<_>>(),
        "unpermitted_axiom_hard_error": true,
        "nat_extension": true,
        "string_extension": true,
        "print_success_message": true,
        // It prints the axioms; without a place to print to, it counts an error.
        "pp_to_stdout": true,
    })
}

/// Whether the program can tell a proof from what is none, found out once: one that does not know
/// our settings or the format ends as it does over a wrong proof, and one that accepts everything
/// is no kernel. What prevents an answer (a limit, a signal) may pass and is not remembered.
fn tried(program: &Path, options: &Options) -> Result<(), String> {
    static TRIED: Mutex<BTreeMap<PathBuf, Result<(), String>>> = Mutex::new(BTreeMap::new());
    let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = tried.get(program) {
        return known.clone();
    }
    let questions = [
        ("refuses a proof that is one", KNOWN.to_owned(), &TRUSTED[..], true),
        ("accepts what proves nothing", tampered(KNOWN), &TRUSTED[..], false),
        ("accepts an axiom that it was not to", KNOWN.to_owned(), &TRUSTED[1..], false),
    ];
    let mut found = Ok(());
    for (what, text, trusted, right) in questions {
        let settings = settings(trusted.iter().copied());
        let answer = ask(program, &text, &settings, options).map_err(|why| {
            format!(
                "{} does not answer a question about what is known ({why}); \
                 the revision that was tried is {}",
                program.display(),
                tool::NANODA_REVISION
            )
        })?;
        if answer.is_ok() != right {
            let said = answer.map_or_else(|why| why, |n| format!("checked {n} declarations"));
            found = Err(format!(
                "{} {what} ({said}), so its word counts for nothing; the revision that was tried \
                 is {}; {}",
                program.display(),
                tool::NANODA_REVISION,
                tool::NANODA_HINT
            ));
            break;
        }
    }
    tried.insert(program.to_path_buf(), found.clone());
    found
}

/// A certificate with the theorem's statement in place of its proof.
fn tampered(text: &str) -> String {
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap_or_default();
    let mut theorem: Value = serde_json::from_str(last).unwrap_or_default();
    theorem["thm"]["value"] = theorem["thm"]["type"].clone();
    format!("{before}\n{theorem}\n")
}

/// What the program says to one certificate under these settings; the outer error is no answer.
fn ask(
    program: &Path,
    text: &str,
    settings: &Value,
    options: &Options,
) -> Result<Result<u64, String>, String> {
    let io = |e: std::io::Error| e.to_string();
    let folder = tempfile::tempdir().map_err(io)?;
    let config = folder.path().join("config.json");
    std::fs::write(&config, settings.to_string()).map_err(io)?;
    let mut read = tool::installation(program);
    read.push(folder.path().to_path_buf());
    let sandbox = Sandbox { read, write: Vec::new(), memory_mb: options.memory_mb };
    let program =
        Program { path: program.to_path_buf(), args: vec![config.into()], ..Program::default() };
    let child = Child::spawn(&program, &sandbox, Layer::here()).map_err(io)?;
    verdict(&run(child, text, options)?)
}

/// How the process ended, the last words of its output and the first of its errors.
struct Ended {
    status: ExitStatus,
    output: String,
    errors: String,
}

/// Gives the process its input and waits for its end, within the limits of a check.
fn run(mut child: Child, input: &str, options: &Options) -> Result<Ended, String> {
    let (stdin, stdout, stderr) = child.streams();
    let deadline = Instant::now() + options.check_limit;
    thread::scope(|scope| {
        scope.spawn(move || {
            // A kernel that has seen enough stops reading.
            let _ = stdin.map(|mut stdin| stdin.write_all(input.as_bytes()));
        });
        let output = scope.spawn(move || last_words(stdout));
        let errors = scope.spawn(move || first_words(stderr));
        let status = loop {
            if let Some(status) = child.status() {
                break Ok(status);
            }
            if Instant::now() > deadline {
                break Err(format!("no answer within {} s", options.check_limit.as_secs_f64()));
            }
            if child.memory_mb().is_some_and(|mb| mb > options.memory_mb) {
                break Err(format!("it needed more than {} MiB", options.memory_mb));
            }
            thread::sleep(Duration::from_millis(20));
        };
        // The threads above end when its pipes are closed.
        child.kill();
        let (output, errors) = (output.join(), errors.join());
        Ok(Ended {
            status: status?,
            output: output.unwrap_or_default(),
            errors: errors.unwrap_or_default(),
        })
    })
}

/// The first words on a stream; the rest is read and forgotten, so that nobody waits.
fn first_words(stream: Option<impl Read>) -> String {
    let mut said = Vec::new();
    if let Some(mut stream) = stream {
        let _ = stream.by_ref().take(WORDS as u64).read_to_end(&mut said);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// The last words on a stream.
fn last_words(stream: Option<impl Read>) -> String {
    let mut said = Vec::new();
    let mut buffer = [0; WORDS];
    if let Some(mut stream) = stream {
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            said.extend_from_slice(&buffer[..n]);
            let excess = said.len().saturating_sub(WORDS);
            said.drain(..excess);
        }
    }
    String::from_utf8_lossy(&said).into_owned()
}

fn verdict(ended: &Ended) -> Result<Result<u64, String>, String> {
    // Where and why it gave up: a panic says so on two lines.
    let why = || {
        let lines = ended.errors.lines().map(str::trim);
        let telling = lines.filter(|line| !line.is_empty() && !line.starts_with("note:"));
        telling.take(2).collect::<Vec<_>>().join(" ")
    };
    match ended.status.code() {
        Some(0) => {
            let last = ended.output.lines().last().unwrap_or_default();
            let count = last
                .strip_prefix("Checked ")
                .and_then(|rest| rest.strip_suffix(" declarations with no errors"));
            let count = count.and_then(|count| count.parse().ok());
            count.map(Ok).ok_or_else(|| format!("an answer that is not understood: {last}"))
        }
        // What reads the file says nothing about the proof in it.
        Some(PANICKED) if !ended.errors.contains(READER) => Ok(Err(why())),
        Some(ERROR) if ended.errors.contains(UNPERMITTED) => Ok(Err(why())),
        Some(code) => Err(format!("it declines to judge (it ended with {code}): {}", why())),
        None => Err(format!("it was ended by a signal ({})", ended.status)),
    }
}

impl Lean {
    /// Where a second kernel is asked for, what the judge let stand must stand before it too.
    pub(crate) fn second_opinion(
        &self,
        place: &Place,
        target: &Target,
        terms: &str,
        mut first: Verified,
    ) -> Result<Verified, Fault> {
        let Checked::Proved { relative_to, .. } = &mut first.checked else { return Ok(first) };
        if self.options.kernel == Kernel::Lean {
            return Ok(first);
        }
        let certificate = match self.certificate_at(place, target, terms)? {
            Ok(certificate) => certificate,
            Err(why) => return Ok(Verified::refused(why)),
        };
        Ok(match certificate.put_to_nanoda(&self.options)? {
            Ok(_) => {
                *relative_to = certificate.library_statements;
                first
            }
            Err(why) => Verified::refused(format!("kernel: (nanoda) {why}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;

    fn ended(code: i32, said: &str) -> Ended {
        let status = ExitStatus::from_raw(code << 8);
        Ended { status, output: format!("axiom a : Prop\n{said}"), errors: said.into() }
    }

    #[test]
    fn only_its_own_words_of_success_are_a_success() {
        let said = "Checked 12 declarations with no errors\n";
        assert_eq!(verdict(&ended(0, said)), Ok(Ok(12)));
        for other in ["", "Checked many", "Checked 12 declarations with no errors, skipping x"] {
            assert!(verdict(&ended(0, other)).is_err(), "{other}");
        }
        let refusals = [(101, "thread 'main' panicked at src/tc.rs:925"), (1, "unpermitted axiom")];
        for (code, said) in refusals {
            assert!(matches!(verdict(&ended(code, said)), Ok(Err(_))), "{said}");
        }
        let no_answers = [
            (101, "thread 'main' panicked at src/parser.rs:90"),
            (1, "Error: unknown field `nat_extension`"),
            (2, "a reference to what does not come before it"),
            (3, ""),
        ];
        for (code, said) in no_answers {
            assert!(verdict(&ended(code, said)).is_err(), "{said}");
        }
        let killed = Ended { status: ExitStatus::from_raw(9), ..ended(0, said) };
        assert!(verdict(&killed).is_err(), "killed is no verdict");
    }
    /// A program that takes nanoda's place.
    fn program(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("nanoda_bin");
        std::fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_program_that_cannot_tell_proofs_apart_is_believed_nothing() {
        let unfit = [
            ("echo 'Error: unknown field' >&2; exit 1", "does not answer"),
            ("echo \"thread 'main' panicked at src/parser.rs:9\" >&2; exit 101", "does not answer"),
            ("echo \"thread 'main' panicked at src/tc.rs:9\" >&2; exit 101", "refuses a proof"),
            ("echo 'unpermitted axiom' >&2; exit 1", "refuses a proof"),
            ("echo 'Checked 13 declarations with no errors'", "accepts what proves nothing"),
        ];
        for (text, words) in unfit {
            let folder = tempfile::tempdir().unwrap();
            let program = program(folder.path(), text);
            for _ in 0..2 {
                let why = tried(&program, &Options::default()).unwrap_err();
                assert!(why.contains(words), "{text}: {why}");
                assert!(why.contains(tool::NANODA_REVISION), "{text}: {why}");
            }
        }
    }

    #[test]
    fn a_program_that_can_is_asked_once() {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), include_str!("../tests/kernel.sh"));
        assert_eq!(tried(&program, &Options::default()), Ok(()));
        std::fs::write(&program, "#!/bin/bash\nexit 1\n").unwrap();
        assert_eq!(tried(&program, &Options::default()), Ok(()));
    }
}
