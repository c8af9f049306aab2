//! metamath-rs's view of a database: parsing, verification, and its complaints as text.

use std::collections::HashSet;
use std::path::Path;

use annotate_snippets::Renderer;
use catamount_base::{Content, guarded};
use metamath_rs::database::DbOptions;
use metamath_rs::diag::Diagnostic;

use crate::database::clip;
use crate::repetition::repeated;
use crate::{Error, letter};

/// The longest complaint that is shown whole. It quotes the line it is about, and a file that is no
/// database may be one line of megabytes.
const LONGEST_COMPLAINT: usize = 4000;

/// What is wrong with a database.
pub(crate) struct Complaints {
    /// How many errors there are.
    pub(crate) errors: usize,
    /// The first in the order of the file, with its place.
    pub(crate) first: String,
}

/// Parses and verifies a database; refuses one with any error.
pub(crate) fn verified(path: &Path, text: Vec<u8>) -> Result<metamath_rs::Database, Error> {
    let name = path.to_string_lossy().into_owned();
    let inconsistent = |errors: usize, first: String| Error::Inconsistent {
        path: path.to_path_buf(),
        errors,
        first,
    };
    if let Some(what) = repeated(&text) {
        let what = clip(&what);
        return Err(inconsistent(1, format!("it declares `{what}` thousands of times")));
    }
    // The parser is not ours; should a hostile file make it panic, that is an error of the file.
    guarded(|| {
        let source = verify(name, text);
        match complaints(&source) {
            Some(complaints) => Err(inconsistent(complaints.errors, complaints.first)),
            None => match letter::complaint(&source) {
                Some((label, why)) => {
                    Err(inconsistent(1, format!("the proof of `{label}` is malformed: {why}")))
                }
                None => Ok(source),
            },
        }
    })
    .unwrap_or_else(|_| Err(gave_up(path)))
}

/// Parses and verifies, keeping whatever is wrong for [`complaints`].
pub(crate) fn verify(name: String, text: Vec<u8>) -> metamath_rs::Database {
    let mut source = parse(name, text);
    source.verify_pass();
    source
}

fn parse(name: String, text: Vec<u8>) -> metamath_rs::Database {
    let mut source = metamath_rs::Database::new(DbOptions::default());
    source.parse(name.clone(), vec![(name, text)]);
    source
}

/// The hash of a database's text and of what it includes, which only parsing tells; nothing is
/// verified.
pub(crate) fn content_of(path: &Path, text: Vec<u8>) -> Result<Content, Error> {
    let name = path.to_string_lossy().into_owned();
    guarded(|| content(&parse(name, text))).map_err(|_| gave_up(path))
}

/// The hash of the text, file by file.
pub(crate) fn content(source: &metamath_rs::Database) -> Content {
    let mut seen = HashSet::new();
    let texts = source.statements().filter_map(|statement| {
        let segment = statement.segment();
        seen.insert(segment.id.0).then(|| Content::of(segment.buffer.as_slice()).to_string())
    });
    Content::of_texts(texts)
}

fn gave_up(path: &Path) -> Error {
    let first = "metamath-rs gave up on it; `metamath` can say more".to_owned();
    Error::Inconsistent { path: path.to_path_buf(), errors: 1, first }
}

/// The errors (not the warnings) of a database; none if it is sound. Only the first is written out:
/// each quotes its line, so that writing all of them takes quadratic time where there is one line.
pub(crate) fn complaints(source: &metamath_rs::Database) -> Option<Complaints> {
    let mut errors = source.diag_notations();
    errors.retain(|(_, diagnostic)| !is_tolerated(diagnostic));
    let first = (0..errors.len())
        .min_by(|&a, &b| source.cmp_address(&errors[a].0, &errors[b].0).then(a.cmp(&b)))?;
    let count = errors.len();
    let one = vec![errors.swap_remove(first)];
    let rendered =
        source.render_diags(one, |message| Renderer::plain().render(message).to_string());
    let text = rendered.into_iter().next().unwrap_or_default();
    let first = if text.len() > LONGEST_COMPLAINT {
        let lines: Vec<&str> = text.lines().map(|line| clip(line).trim_end()).collect();
        lines.join("\n")
    } else {
        text
    };
    Some(Complaints { errors: count, first })
}

/// What a database may have all the same: remarks on comments, on `$j` commands and on style, and
/// proofs that are not finished (see [`crate::axioms`]). Whatever is not known to be harmless is an
/// error.
fn is_tolerated(diagnostic: &Diagnostic) -> bool {
    use Diagnostic::*;
    matches!(
        diagnostic,
        BadCommand(_)
            | CommandExpectedAs(_)
            | CommandExpectedString(_)
            | CommandIncomplete(_)
            | CommentMarkerNotStart(_)
            | DuplicateMarkupDef(..)
            | MidStatementCommentMarker(_)
            | ProofIncomplete
    )
}
