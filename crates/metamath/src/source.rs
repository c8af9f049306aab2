//! metamath-rs's view of a database: parsing, verification, and its complaints as text.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use annotate_snippets::Renderer;
use metamath_rs::database::DbOptions;

use crate::Error;

/// Parses and verifies a database; refuses one with any error.
pub(crate) fn verified(path: &Path, text: Vec<u8>) -> Result<metamath_rs::Database, Error> {
    let name = path.to_string_lossy().into_owned();
    let inconsistent = |errors: usize, first: String| Error::Inconsistent {
        path: path.to_path_buf(),
        errors,
        first,
    };
    // The parser is not ours; should a hostile file make it panic, that is an error of the file.
    catch_unwind(AssertUnwindSafe(|| {
        let source = verify(name, text);
        let errors = errors(&source);
        match errors.first() {
            Some(first) => Err(inconsistent(errors.len(), first.clone())),
            None => Ok(source),
        }
    }))
    .unwrap_or_else(|_| {
        Err(inconsistent(1, "metamath-rs gave up on it; `metamath` can say more".to_owned()))
    })
}

/// Parses and verifies, keeping whatever is wrong for [`errors`].
pub(crate) fn verify(name: String, text: Vec<u8>) -> metamath_rs::Database {
    let mut source = metamath_rs::Database::new(DbOptions::default());
    source.parse(name.clone(), vec![(name, text)]);
    source.verify_pass();
    source
}

/// The errors (not the warnings) of a database in the order of the file, each with its place.
pub(crate) fn errors(source: &metamath_rs::Database) -> Vec<String> {
    let diagnostics = source.diag_notations();
    if diagnostics.is_empty() {
        return Vec::new();
    }
    let rendered =
        source.render_diags(diagnostics, |message| Renderer::plain().render(message).to_string());
    rendered.into_iter().filter(|text| text.starts_with("error")).collect()
}
