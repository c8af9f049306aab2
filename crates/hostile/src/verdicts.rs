//! Verdicts against verdicts: mutated Metamath databases and proofs, judged here and by Debian's
//! `metamath`, another program of other authors.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use catamount_metamath::{Database, Extraction};

use crate::random::Random;

/// Databases given to one process of `metamath`: starting it costs more than its verdict.
const BATCH: usize = 30;

/// The database that is mutated: it has hypotheses, distinct-variable conditions, dummies, local
/// declarations, both formats of proofs and a comment inside one.
pub const TOY: &str = include_str!("../../metamath/tests/toy.mm");

/// What is mutated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Any word or statement of a database.
    Database,
    /// The proof of one theorem.
    Proof,
    /// The typecode of a floating hypothesis: proofs may survive what grammars do not.
    Typecode,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 3] = [Part::Database, Part::Proof, Part::Typecode];
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Database => "databases",
            Part::Proof => "proofs",
            Part::Typecode => "typecodes",
        })
    }
}

/// What came of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Texts judged by both.
    pub judged: usize,
    /// Accepted by both.
    pub accepted: usize,
    /// Refused by both.
    pub refused: usize,
    /// Judged differently: the text, and who accepts it.
    pub disagreements: Vec<(String, &'static str)>,
    /// Proofs of databases that both accept: those that were taken apart into tactics and proved
    /// again from these.
    pub replayed: usize,
    /// Those that were not, with the reason.
    pub lost: Vec<(String, String)>,
}

/// Judges `count` mutations of the toy and of these databases.
pub fn compare(part: Part, count: usize, seeds: &[String]) -> Result<Compared> {
    let mut compared = Compared::default();
    let folder = tempfile::tempdir().context("no folder for databases")?;
    for first in (0..count).step_by(BATCH) {
        let texts: Vec<String> = (first..count.min(first + BATCH))
            .map(|number| {
                let mut random = Random::new(&part.to_string(), number as u64);
                let seed = random.pick(seeds).clone();
                mutated(part, &seed, &mut random)
            })
            .collect();
        let theirs = metamath(&texts, folder.path())?;
        for (text, theirs) in texts.into_iter().zip(theirs) {
            judge(text, theirs, &mut compared);
        }
    }
    Ok(compared)
}

fn judge(text: String, theirs: bool, compared: &mut Compared) {
    compared.judged += 1;
    let ours = Database::from_text("mutated.mm", text.clone().into_bytes());
    match (ours, theirs) {
        (Ok(database), true) => {
            compared.accepted += 1;
            // What the database proves, the kernel must be able to prove again; what lies beyond
            // its grammar, or has no proof, it says so of.
            let report = database.extract(&Extraction::default(), |_, _| {});
            compared.replayed += report.traces + report.trivial;
            let known = ["does not parse", "incomplete", "no complete proof", "conditions"];
            let lost = report.remainder.into_iter().chain(report.refused);
            compared.lost.extend(lost.filter(|(_, why)| !known.iter().any(|k| why.contains(k))));
        }
        (Err(_), false) => compared.refused += 1,
        (Ok(_), false) => compared.disagreements.push((text, "Catamount")),
        (Err(_), true) => compared.disagreements.push((text, "metamath")),
    }
}

/// Whether `metamath` accepts each of these databases.
pub fn metamath(texts: &[String], folder: &Path) -> Result<Vec<bool>> {
    let mut command = Command::new("metamath");
    command.arg("set scroll continuous");
    for (number, text) in texts.iter().enumerate() {
        let path: PathBuf = folder.join(format!("{number}.mm"));
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        command.args([&format!("read '{number}.mm'"), "verify proof *", "erase"]);
    }
    let output = command
        .arg("exit")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .context("this needs the program `metamath` (Debian package metamath)")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let parts: Vec<&str> = said.split("MM> read '").skip(1).collect();
    let judged = said.matches("MM> erase").count();
    if parts.len() == texts.len() && judged == texts.len() {
        return Ok(parts.iter().map(|part| !part.contains("?Error")).collect());
    }
    // A database may upset `metamath` so much that it gives up, with too many errors or a question
    // that nobody answers. The others are then judged alone, and that one is not accepted.
    match texts {
        [_] if said.contains("?Error") => Ok(vec![false]),
        [_] => bail!("metamath gave up without an error: {said}"),
        many => {
            let alone = |text| Ok(metamath(std::slice::from_ref(text), folder)?[0]);
            many.iter().map(alone).collect()
        }
    }
}

/// A text with one or two mutations.
fn mutated(part: Part, seed: &str, random: &mut Random) -> String {
    let mut words: Vec<String> = Vec::new();
    for piece in seed.split_inclusive(char::is_whitespace) {
        words.push(piece.to_owned());
    }
    for _ in 0..=random.below(2) {
        match part {
            Part::Database => change_database(&mut words, random),
            Part::Proof => change_proof(&mut words, random),
            Part::Typecode => {
                let places = places(&words);
                change_typecode(&mut words, &places, random);
            }
        }
    }
    words.concat()
}

/// A word without the blank after it.
fn bare(word: &str) -> &str {
    word.trim_end()
}

/// The places of words that are not white space alone and stand in no comment.
fn places(words: &[String]) -> Vec<usize> {
    let mut comment = false;
    let mut places = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match bare(word) {
            "$(" => comment = true,
            "$)" => comment = false,
            "" => {}
            _ if !comment => places.push(at),
            _ => {}
        }
    }
    places
}

fn change_database(words: &mut Vec<String>, random: &mut Random) {
    let places = places(words);
    let Some(&at) = (!places.is_empty()).then(|| random.pick(&places)) else { return };
    let other = words[*random.pick(&places)].clone();
    match random.below(12) {
        0 => _ = words.remove(at),
        1 => words.insert(at, words[at].clone()),
        2 if at + 1 < words.len() => words.swap(at, at + 1),
        3 => words[at] = other,
        4 => words.insert(at, other),
        5 => change_typecode(words, &places, random),
        6 => {
            let end = (at + 1 + random.below(12)).min(words.len());
            words.insert(end, "$) ".to_owned());
            words.insert(at, "$( ".to_owned());
        }
        7 => {
            let (from, to) = statement(words, at);
            words.drain(from..to);
        }
        8 => {
            let (from, to) = statement(words, at);
            let copy = words[from..to].to_vec();
            let (to, _) = statement(words, *random.pick(&places));
            words.splice(to..to, copy);
        }
        9 => words.insert(at, format!("{} ", random.pick(&KEYWORDS))),
        10 => change_proof(words, random),
        _ => words.insert(at, format!("{} ", random.pick(&COMMENTS))),
    }
}

const KEYWORDS: [&str; 12] =
    ["$c", "$v", "$f", "$e", "$d", "$a", "$p", "$=", "$.", "${", "$}", "?"];
const COMMENTS: [&str; 6] =
    ["$( x $)", "$( $( $)", "$( a $( b $) c $)", "$( ${ $)", "$(", "$( $)x $)"];

/// Another constant as the typecode of a `$f` statement.
fn change_typecode(words: &mut [String], places: &[usize], random: &mut Random) {
    let after = |keyword: &str| -> Vec<usize> {
        let found = places.windows(2).filter(|pair| bare(&words[pair[0]]) == keyword);
        found.map(|pair| pair[1]).collect()
    };
    let (floating, constants) = (after("$f"), after("$c"));
    let (Some(&at), Some(&from)) = (
        (!floating.is_empty()).then(|| random.pick(&floating)),
        (!constants.is_empty()).then(|| random.pick(&constants)),
    ) else {
        return;
    };
    let declared: Vec<String> =
        words[from..].iter().take_while(|word| bare(word) != "$.").cloned().collect();
    words[at] = random.pick(&declared).clone();
}

/// Where the statement around a place begins and ends.
fn statement(words: &[String], at: usize) -> (usize, usize) {
    let ends = |word: &String| matches!(bare(word), "$." | "${" | "$}");
    let from = words[..at].iter().rposition(ends).map_or(0, |end| end + 1);
    let to = words[at..].iter().position(ends).map_or(words.len(), |end| at + end + 1);
    (from, to)
}

fn change_proof(words: &mut Vec<String>, random: &mut Random) {
    let proofs: Vec<(usize, usize)> = (0..words.len())
        .filter(|&at| bare(&words[at]) == "$=")
        .map(|at| {
            let end = words[at..].iter().position(|word| bare(word) == "$.");
            (at + 1, end.map_or(words.len(), |end| at + end))
        })
        .filter(|(from, to)| from < to)
        .collect();
    let Some(&(from, to)) = (!proofs.is_empty()).then(|| random.pick(&proofs)) else { return };
    let at = from + random.below(to - from);
    let (a, b) = *random.pick(&proofs);
    let other = words[a + random.below(b - a)].clone();
    match random.below(9) {
        0 => _ = words.remove(at),
        1 => words.insert(at, words[at].clone()),
        2 if at + 1 < to => words.swap(at, at + 1),
        3 => words[at] = other,
        4 => words.insert(at, other),
        5 => words[at] = "? ".to_owned(),
        6 => {
            // One letter of a compressed proof, or of a label.
            let word = bare(&words[at]).to_owned();
            let mut letters: Vec<char> = word.chars().collect();
            if !letters.is_empty() {
                let place = random.below(letters.len());
                let letter = *random.pick(&['A', 'B', 'C', 'F', 'T', 'U', 'Y', 'Z', '?', 'a']);
                match random.below(3) {
                    0 => letters[place] = letter,
                    1 => letters.insert(place, letter),
                    _ => _ = letters.remove(place),
                }
            }
            words[at] = letters.into_iter().chain([' ']).collect();
        }
        7 => {
            let (a, b) = (from + random.below(to - from), from + random.below(to - from));
            words.swap(a, b);
        }
        _ => {
            // The proof of another theorem.
            let (a, b) = *random.pick(&proofs);
            let proof = words[a..b].to_vec();
            words.splice(from..to, proof);
        }
    }
}
