//! Found proofs put back into the database, as a file that any Metamath verifier accepts.

use std::io::Write;
use std::path::Path;

use crate::assertion::AssertionId;
use crate::check;
use crate::database::Database;
use crate::proof::Proof;
use crate::{Error, source};

/// Writes the database with each of these proofs (a theorem's label and its tactics) in place of
/// the original one.
///
/// Everything else is copied byte for byte. A proof that uses dummy variables gets the `$d`
/// statements for them, in a block of its own. Each proof is checked before anything is written; a
/// theorem named twice takes the first proof. A comment at the end names the axioms that each rests
/// on.
pub fn export<L, T>(
    database: impl AsRef<Path>,
    proofs: &[(L, T)],
    mut out: impl Write,
) -> Result<(), Error>
where
    L: AsRef<str>,
    T: AsRef<[String]>,
{
    let database = Database::open(database)?;
    database.export(proofs, &mut out)
}

impl Database {
    /// As [`export`], for a database that is open already.
    pub fn export<L, T>(&self, proofs: &[(L, T)], mut out: impl Write) -> Result<(), Error>
    where
        L: AsRef<str>,
        T: AsRef<[String]>,
    {
        let mut checked: Vec<(AssertionId, Proof)> = Vec::with_capacity(proofs.len());
        let mut remark = String::new();
        for (label, tactics) in proofs {
            let label = label.as_ref();
            let theorem = self.theorem(label)?;
            let not_a_proof = |reason| Error::NotAProof { label: label.to_owned(), reason };
            let (proof, rests_on) =
                check::check(self, theorem, tactics.as_ref()).map_err(not_a_proof)?;
            checked.push((theorem, proof));
            remark.push_str(&wrapped(&format!("{label}: {}", rests_on.listed().join(" "))));
        }
        let borrowed: Vec<(AssertionId, &Proof)> =
            checked.iter().map(|(id, proof)| (*id, proof)).collect();
        let text = replaced(self, &borrowed)?;
        let failed = |reason: std::io::Error| Error::Export {
            path: self.path.clone(),
            reason: reason.to_string(),
        };
        let remark = match proofs.is_empty() {
            true => String::new(),
            false => {
                format!("\n$( Proofs found by a search, with the axioms of each.\n{remark}$)\n")
            }
        };
        out.write_all(text.as_bytes())
            .and_then(|()| out.write_all(remark.as_bytes()))
            .and_then(|()| out.flush())
            .map_err(failed)
    }

    /// Whether metamath-rs accepts the whole database with these proofs in place.
    pub(crate) fn accepts(&self, proofs: &[(AssertionId, &Proof)]) -> Result<(), String> {
        let text = replaced(self, proofs).map_err(|error| error.to_string())?;
        source::verified(&self.path, text.into_bytes())
            .map(|_| ())
            .map_err(|error| error.to_string())
    }
}

/// A paragraph of a comment, in lines of the length that Metamath's databases have.
fn wrapped(paragraph: &str) -> String {
    let (mut out, mut column) = (String::from("  "), 2);
    for word in paragraph.split_ascii_whitespace() {
        if column + 1 + word.len() > 79 && column > 4 {
            out.push_str("\n   ");
            column = 3;
        }
        out.push(' ');
        out.push_str(word);
        column += 1 + word.len();
    }
    out.push('\n');
    out
}

/// The text of the database with these proofs in place of the originals.
pub(crate) fn replaced(
    database: &Database,
    proofs: &[(AssertionId, &Proof)],
) -> Result<String, Error> {
    let failed =
        |reason: &str| Error::Export { path: database.path.clone(), reason: reason.to_owned() };
    let source = &database.source;
    if database.bases.len() > 1 {
        return Err(failed(
            "it includes other files; flatten it first, for example with `metamath`'s `write \
             source`",
        ));
    }
    let mut ordered: Vec<&(AssertionId, &Proof)> = proofs.iter().collect();
    ordered.sort_by_key(|(id, _)| *id);
    ordered.dedup_by_key(|(id, _)| *id);
    let text =
        source.statements().next().map(|s| s.segment().segment.buffer.clone()).unwrap_or_default();
    let text = std::str::from_utf8(&text).map_err(|_| failed("it is not plain text"))?;
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut copied = 0;
    for (id, proof) in ordered {
        let statement = source
            .statement(database.assertion(*id).label().as_bytes())
            .ok_or_else(|| failed("a theorem has no statement"))?;
        let spans = statement.proof_spans();
        let first = spans.first().ok_or_else(|| failed("a theorem has no proof"))?;
        let (from, label, to) =
            (first.start as usize, statement.span().start as usize, statement.span().end as usize);
        let column = label - text[..label].rfind('\n').map_or(0, |newline| newline + 1);
        let indent = " ".repeat(column);
        let dummies: Vec<&str> = proof
            .dummies
            .iter()
            .map(|&node| &*database.nodes.kinds[node as usize].pieces[0])
            .collect();
        let conditions = check::distinct_dummies(source, statement, &dummies)
            .map_err(|reason| failed(&reason))?;
        out.push_str(&text[copied..label]);
        if !conditions.is_empty() {
            out.push_str("${\n");
            for (a, b) in &conditions {
                out.push_str(&format!("{indent}$d {a} {b} $.\n"));
            }
            out.push_str(&indent);
        }
        out.push_str(text[label..from].trim_end());
        out.push_str(&proof.text(column + 2));
        out.push_str(" $.");
        copied = to;
        if !conditions.is_empty() {
            out.push_str(&format!("\n{indent}$}}"));
        }
    }
    out.push_str(&text[copied..]);
    Ok(out)
}
