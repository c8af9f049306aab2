//! Names of files. What people call a thing may be anything: absolute, `../../x`, empty, `a b`
//! beside `a-b`. What its files are called is made from a few harmless characters, and where that
//! loses something, from a hash of the whole name too.

use catamount_base::Content;

/// Longest part that is taken from a name.
const LONGEST: usize = 48;

/// A name as part of a file's name. A name that is harmless stays as it is; every other one gets a
/// hash, so that no two share files. `@` is in none of them, and joins them to what comes after.
pub(crate) fn slug(name: &str) -> String {
    let plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '-' | '_');
    // A point only between digits, as in `q0.02`: elsewhere it may begin an ending.
    let digit = |at: Option<usize>| {
        at.and_then(|at| name.as_bytes().get(at)).is_some_and(u8::is_ascii_digit)
    };
    let harmless = |(at, c): (usize, char)| {
        plain(c) || (c == '.' && digit(at.checked_sub(1)) && digit(Some(at + 1)))
    };
    let first = name.chars().next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let whole = first && name.len() <= LONGEST && name.char_indices().all(harmless);
    if whole && !RESERVED.contains(&name) && !hashed(name) {
        return name.to_string();
    }
    let kept: String = name
        .to_ascii_lowercase()
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .take(LONGEST)
        .collect();
    let hash = Content::of(name.as_bytes());
    let kept = kept.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let dash = if kept.is_empty() { "" } else { "-" };
    format!("{kept}{dash}{}", &hash.short()[..HASH])
}

/// Names that the study itself uses beside those of objectives.
const RESERVED: [&str; 1] = [catamount_report::WARM_UP];

/// Digits of the hash.
const HASH: usize = 8;

/// Whether a name ends as if it had a hash already, so that it could pass for another's.
fn hashed(name: &str) -> bool {
    let tail = name.rsplit('-').next().unwrap_or_default();
    tail.len() == HASH && tail.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::{Component, Path};

    use super::*;

    #[test]
    fn harmless_names_stay_and_no_name_escapes_or_collides() {
        for name in ["ce", "ua", "bfs+kappa5+q0.02", "bfs+fitted", "my-own_2"] {
            assert_eq!(slug(name), name);
        }
        let long = "x".repeat(300);
        let odd = [
            "",
            " ",
            ".",
            "..",
            "../../x",
            "/etc",
            "C:\\x",
            "warm-up",
            "a b",
            "a/b",
            "a.b",
            "A B",
            "a-b",
            "é",
            "ce\0",
            "-x",
            "x.trees",
            &long,
            "a-b-1f3c9a7e",
        ];
        let slugs: HashSet<String> = odd.iter().map(|name| slug(name)).collect();
        assert_eq!(slugs.len(), odd.len(), "{slugs:?}");
        for slug in &slugs {
            let parts: Vec<Component<'_>> = Path::new(slug).components().collect();
            assert!(matches!(parts[..], [Component::Normal(_)]), "{slug}");
            assert!(slug.is_ascii() && slug.len() < 64 && slug != "warm-up", "{slug}");
        }
        // What another name's slug is, taken as a name, is not that slug.
        assert_ne!(slug(&slug("a b")), slug("a b"));
    }
}
