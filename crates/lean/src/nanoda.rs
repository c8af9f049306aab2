//! A second kernel, which neither we nor Lean's authors wrote: nanoda reads a proof and everything
//! it rests on from the ground up.
//!
//! The user builds it (<https://github.com/ammkrn/nanoda_lib>); we start `nanoda_bin`, confined
//! like a prover, and read how it ended.

use std::io::{Read, Write};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use catamount_search::{Checked, Fault};
use serde_json::json;

use crate::certificate::Certificate;
use crate::check::Verified;
use crate::child::Child;
use crate::environment::Lean;
use crate::options::{Kernel, Options};
use crate::sandbox::{Layer, Program, Sandbox};
use crate::session::Target;
use crate::tool;
use crate::worker::Place;

/// How it says that it will not judge, which is neither yes nor no.
const DECLINED: i32 = 2;
/// How much of its words is kept.
const WORDS: usize = 4096;

impl Certificate {
    /// What nanoda makes of it: how many declarations it accepted, or why it did not.
    pub fn put_to_nanoda(&self, options: &Options) -> Result<Result<u64, String>, Fault> {
        let fault = |why: String| Fault(format!("nanoda: {why}"));
        let path = tool::nanoda().map_err(|e| Fault(e.to_string()))?;
        let folder = tempfile::tempdir().map_err(|e| fault(e.to_string()))?;
        let config = folder.path().join("config.json");
        let permitted: Vec<&String> = self
            .library_statements
            .iter()
            .chain(self.axioms.iter().filter(|axiom| options.allowed_axioms.contains(axiom)))
            .collect();
        let settings = json!({
            "use_stdin": true,
            "permitted_axioms": permitted,
            "unpermitted_axiom_hard_error": true,
            "nat_extension": true,
            "string_extension": true,
            "print_success_message": true,
            // It prints the axioms; without a place to print to, it counts an error.
            "pp_to_stdout": true,
        });
        std::fs::write(&config, settings.to_string()).map_err(|e| fault(e.to_string()))?;
        let sandbox = Sandbox {
            read: vec![folder.path().to_path_buf(), tool::installation(&path)],
            write: Vec::new(),
            memory_mb: options.memory_mb,
        };
        let program = Program { path, args: vec![config.into()], ..Program::default() };
        let child =
            Child::spawn(&program, &sandbox, Layer::here()).map_err(|e| fault(e.to_string()))?;
        let ended = run(child, &self.text, options).map_err(fault)?;
        verdict(&ended).map_err(fault)
    }
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
        Some(DECLINED) => Err(format!("it declines to judge: {}", why())),
        Some(_) => Ok(Err(why())),
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
        first: Verified,
    ) -> Result<Verified, Fault> {
        if self.options.kernel == Kernel::Lean || !matches!(first.checked, Checked::Proved { .. }) {
            return Ok(first);
        }
        let certificate = match self.certificate_at(place, target, terms)? {
            Ok(certificate) => certificate,
            Err(why) => return Ok(Verified::refused(why)),
        };
        Ok(match certificate.put_to_nanoda(&self.options)? {
            Ok(_) => Verified { relative_to: certificate.library_statements, ..first },
            Err(why) => Verified::refused(format!("kernel: (nanoda) {why}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert!(matches!(verdict(&ended(101, "thread 'main' panicked")), Ok(Err(_))));
        assert!(matches!(verdict(&ended(1, "unpermitted axiom")), Ok(Err(_))));
        assert!(verdict(&ended(DECLINED, "Declined: ...")).is_err());
        let killed = Ended { status: ExitStatus::from_raw(9), ..ended(0, said) };
        assert!(verdict(&killed).is_err(), "killed is no verdict");
    }
}
