//! The public test suite of Metamath verifiers (metamath-test): databases that must be accepted and
//! databases that must not, as the suite's own script lists them.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use catamount_metamath::Database;

/// The suite's script, which says what is expected of each file.
const SCRIPT: &str = "run-testsuite";

/// A database of the suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its file.
    pub file: String,
    /// Whether a verifier must accept it.
    pub good: bool,
}

/// What became of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What the suite asks for.
    Right,
    /// The opposite.
    Wrong,
    /// The file is not there: the suite's largest are not in every copy of it.
    Missing,
}

/// The cases that a script lists: `pass FILE ...` and `fail FILE ...`.
pub fn cases(script: &str) -> Vec<Case> {
    let case = |line: &str| {
        let mut words = line.split_whitespace();
        let good = match words.next()? {
            "pass" => true,
            "fail" => false,
            _ => return None,
        };
        let file = words.next().filter(|word| word.ends_with(".mm"))?;
        Some(Case { file: file.to_owned(), good })
    };
    script.lines().filter_map(case).collect()
}

/// Judges every database of a copy of the suite, from within its folder: one of them includes
/// another by a name that is relative to it.
pub fn judge(folder: &Path) -> Result<Vec<(Case, Verdict)>> {
    let script = folder.join(SCRIPT);
    let text = std::fs::read_to_string(&script)
        .with_context(|| format!("cannot read {}", script.display()))?;
    let cases = cases(&text);
    if cases.is_empty() {
        bail!("{} lists no databases", script.display());
    }
    std::env::set_current_dir(folder).with_context(|| folder.display().to_string())?;
    let verdict = |case: Case| {
        let verdict = match Path::new(&case.file).exists() {
            false => Verdict::Missing,
            true if Database::open(&case.file).is_ok() == case.good => Verdict::Right,
            true => Verdict::Wrong,
        };
        (case, verdict)
    };
    Ok(cases.into_iter().map(verdict).collect())
}

/// Whether `metamath` accepts a database, in the folder where what it includes is; none where the
/// program is not installed.
pub fn accepted_by_metamath(folder: &Path, file: &str) -> Option<bool> {
    let output = Command::new("metamath")
        .args([&format!("read '{file}'"), "verify proof *", "exit"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    Some(!String::from_utf8_lossy(&output.stdout).contains("?Error"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_says_what_is_expected_and_databases_are_judged_by_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        let script = "pass () {\n run\n}\npass good.mm 'fine'\nfail bad.mm\nfail lying.mm\n\
                      pass gone.mm \"not here\"\n";
        write(SCRIPT, script).unwrap();
        write("good.mm", "$c a $. x $a a $.\n").unwrap();
        write("bad.mm", "$c a $. x $p a $= y $.\n").unwrap();
        write("lying.mm", "$c a $.\n").unwrap();
        let verdicts: Vec<Verdict> =
            judge(folder.path()).unwrap().into_iter().map(|(_, verdict)| verdict).collect();
        use Verdict::{Missing, Right, Wrong};
        assert_eq!(verdicts, [Right, Right, Wrong, Missing]);
    }
}
