//! Declarations that come again and again. The parser behind this crate takes quadratic time over
//! them, so a file that repeats one too often is refused before it is parsed.

use rustc_hash::FxHashMap;

/// How often one thing may be declared outside all scopes. For constants, variables and labels even
/// twice is an error; what is bounded is the time until it is found. `$d` statements may come
/// again.
const OFTEN: u32 = 10_000;

/// What is being read.
#[derive(Clone, Copy)]
enum Part {
    /// Between statements: labels and keywords.
    Outside,
    /// The symbols that `$c` or `$v` declares.
    Symbols,
    /// A floating hypothesis, with so many of its symbols seen.
    Floating(u32),
    /// Anything else, up to its end.
    Rest,
}

/// What a text declares too often outside all scopes, if anything.
pub(crate) fn repeated(text: &[u8]) -> Option<String> {
    let mut counts: FxHashMap<(u8, &[u8]), u32> = FxHashMap::default();
    let (mut part, mut depth, mut comment) = (Part::Outside, 0_u32, false);
    for token in text.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty()) {
        if comment {
            comment = token != b"$)";
            continue;
        }
        let declared = match (token, part) {
            (b"$(", _) => {
                comment = true;
                None
            }
            (b"${", _) => {
                depth += 1;
                None
            }
            (b"$}", _) => {
                depth = depth.saturating_sub(1);
                None
            }
            (b"$.", _) => {
                part = Part::Outside;
                None
            }
            (b"$c" | b"$v", _) => {
                part = Part::Symbols;
                None
            }
            (b"$f", _) => {
                part = Part::Floating(0);
                None
            }
            (b"$d", _) => {
                part = Part::Rest;
                Some((b'd', token))
            }
            ([b'$', ..], _) => {
                part = Part::Rest;
                None
            }
            (_, Part::Outside) => Some((b'l', token)),
            (_, Part::Symbols) => Some((b's', token)),
            (_, Part::Floating(seen)) => {
                part = Part::Floating(seen + 1);
                (seen == 1).then_some((b'f', token))
            }
            (_, Part::Rest) => None,
        };
        // A label names its statement in every scope; the rest goes with its scope.
        let Some(declared) = declared.filter(|(kind, _)| depth == 0 || *kind == b'l') else {
            continue;
        };
        let count = counts.entry(declared).or_default();
        *count += 1;
        if *count > OFTEN {
            return Some(String::from_utf8_lossy(declared.1).into_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(text: &str) -> Vec<u8> {
        text.repeat(OFTEN as usize + 1).into_bytes()
    }

    #[test]
    fn what_is_declared_too_often_is_named() {
        for (text, name) in [
            ("$c a $.\n", "a"),
            ("$v b $.\n", "b"),
            ("x $f a b $.\n", "x"),
            ("${ x $a a $. $}\n", "x"),
            ("$d a b $.\n", "$d"),
        ] {
            assert_eq!(repeated(&many(text)).as_deref(), Some(name), "{text}");
        }
        let one_statement = [b"$c ".to_vec(), many("a "), b"$.".to_vec()].concat();
        assert_eq!(repeated(&one_statement).as_deref(), Some("a"));
    }

    #[test]
    fn what_scopes_and_comments_repeat_is_nobodys_business() {
        for text in ["${ $v b $. $d a b $. $}\n", "$( x $a a $. $)\n"] {
            assert_eq!(repeated(&many(text)), None, "{text}");
        }
    }
}
