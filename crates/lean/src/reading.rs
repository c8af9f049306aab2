//! Text made to be misread: what a person sees in a claim must be what Lean reads.

/// Why the text could be taken for something else, if it could.
pub(crate) fn misleading(text: &str) -> Option<String> {
    if let Some(c) = text.chars().find(|c| is_invisible(*c)) {
        return Some(format!("U+{:04X} cannot be seen, or turns the text around", u32::from(c)));
    }
    if text.replace("\r\n", "").contains('\r') {
        return Some("a carriage return without a line feed ends a line to the eye only".into());
    }
    if let Some(name) = quoted_names(text).find(|name| has_number(name)) {
        return Some(format!("the quoted name «{name}» can be taken for a number"));
    }
    if let Some(name) = quoted_names(text).find(|name| !name.chars().all(is_part_of_name)) {
        return Some(format!(
            "the quoted name «{name}» can be taken for something else than a name"
        ));
    }
    let mixed = |word: &&str| {
        let latin = word.chars().filter(char::is_ascii_alphabetic).count();
        // `hε` and `Δx` are ordinary; a Greek letter among several Latin ones can pass for one.
        (latin > 0 && word.chars().any(looks_latin))
            || (latin > 1 && without_end(word).chars().any(resembles_latin))
            // Nothing in the whole word tells it from a Latin one.
            || word.chars().any(is_twin) && word.chars().all(|c| c.is_ascii() || is_twin(c))
    };
    let word = text.split(|c: char| !c.is_alphanumeric()).find(mixed)?;
    Some(format!("`{word}` mixes letters that look alike, or could be taken for another word"))
}

/// Greek, Cyrillic and other letters of which the Latin twin cannot be told apart at all.
const IS_LATIN_TO_THE_EYE: &str =
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοϲϳϹͿАВЕЅІЈКМНОРСТУХаеорсухѕіјһԁԛԝ\u{212a}\u{212b}\u{210e}";

/// Greek letters that nobody takes for a Latin one where a word ends: `hfμ`, `hsσ`.
const READ_AT_AN_END: &str = "γηωσεβμ";

fn without_end(word: &str) -> &str {
    word.trim_end_matches(|c| READ_AT_AN_END.contains(c))
}

/// Whether one of the name's parts starts with a digit, as a number does.
fn has_number(name: &str) -> bool {
    name.split('.').any(|part| part.starts_with(char::is_numeric))
}

/// What looks like a Latin letter or a digit and is none. `𝟘` and `𝟙` are used as themselves.
fn is_twin(c: char) -> bool {
    IS_LATIN_TO_THE_EYE.contains(c)
        || matches!(c, '\u{a4d0}'..='\u{a4ff}' | '\u{1d7ce}'..='\u{1d7d7}')
        || matches!(c, '\u{1d7da}'..='\u{1d7ff}')
}

/// Characters without an appearance of their own, and those that change the direction of writing.
fn is_invisible(c: char) -> bool {
    let control = c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    control
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
        // Blanks of other widths, letters without ink, and marks that go on the letter before.
        || matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
        || matches!(c, '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}')
        || matches!(c, '\u{2800}' | '\u{3164}' | '\u{ffa0}' | '\u{300}'..='\u{36f}')
        || matches!(c, '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}')
}

fn quoted_names(text: &str) -> impl Iterator<Item = &str> {
    text.split('«').skip(1).filter_map(|rest| rest.split_once('»').map(|(name, _)| name))
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '\'' | '!' | '?' | '.' | '-')
}

/// Letters of other scripts that are easily taken for a Latin one.
fn looks_latin(c: char) -> bool {
    matches!(c, '\u{400}'..='\u{52f}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}')
        || IS_LATIN_TO_THE_EYE.contains(c)
        // Latin without a dot or with another shape, and the phonetic alphabet.
        || matches!(c, 'ı' | 'ĸ' | 'ŀ' | 'ȷ' | 'ſ' | 'ƒ')
        || matches!(c, '\u{180}'..='\u{24f}' | '\u{250}'..='\u{2af}')
        || matches!(c, '\u{1d00}'..='\u{1d7f}' | '\u{a720}'..='\u{a7ff}' | '\u{13a0}'..='\u{13ff}')
}

/// Letters that are read as themselves alone, and as a Latin one between Latin ones.
fn resembles_latin(c: char) -> bool {
    "αικνρτυχγηωσεβμ".contains(c)
        || matches!(c, '\u{1f00}'..='\u{1fff}' | '\u{2100}'..='\u{214f}')
        || matches!(c, '\u{1d400}'..='\u{1d7ff}')
}

#[cfg(test)]
mod tests {
    use super::misleading;

    #[test]
    fn honest_text_is_left_alone() {
        let honest = [
            "theorem t (α β : Type u) (ε δ : ℝ) (hε : 0 < ε) : Δx ≤ ε₁ ∧ hfμ = λ' = 𝓝 x",
            "def «foo-bar» : ℕ → ℤ := fun n => ↑n\n\t-- naïve, Gödel, Erdős",
            "notation \"‖\" x \"‖\" => norm x",
            "",
            "an opening « without an end",
        ];
        for text in honest {
            assert_eq!(misleading(text), None, "{text}");
        }
    }

    #[test]
    fn look_alikes_are_named() {
        let misled =
            |text: &str, word: &str| misleading(text).is_some_and(|why| why.contains(word));
        assert!(misled("abbrev Νat := Unit", "Νat"), "a Greek Nu");
        assert!(misled("def N\u{430}t := 1", "N\u{430}t"), "a Cyrillic a");
        assert!(misled("theorem t (a b : Fın 3) : a = b", "Fın"), "an i without its dot");
        assert!(misled("abbrev Nαt := Unit", "Nαt"), "a Greek alpha among Latin letters");
        assert!(misled("abbrev ℬool := Unit", "ℬool"), "a letter of mathematics");
        assert!(misled("abbrev 𝖭at := Unit", "𝖭at"));
        assert!(misled("theorem «t : 1 = 2» : True", "t : 1 = 2"));
        assert!(misled("True /- \u{202e} -/", "U+202E"));
        assert!(misled("abbrev Α := True", "Α"), "a Greek Alpha alone");
        assert!(misled("abbrev Veϲ := Unit", "Veϲ"), "a lunate sigma");
        assert!(misled("abbrev Bὀol := Unit", "Bὀol"), "an omicron with a breathing");
        assert!(misled("1 =\u{338} 1", "U+0338"), "a stroke through the sign before");
        assert!(misled("«Nat\u{3164}»", "U+3164"), "a letter without ink");
        assert!(misled("Na\u{200b}t", "U+200B"));
        assert!(misled("rfl\0", "U+0000"));
        assert!(misled("True --\r ∧ 1 = 2", "carriage return"));
        assert!(misled("def «2» : Nat := 1", "number"));
        assert!(misled("def \u{212a} : Nat := 5", "\u{212a}"), "the sign of kelvin");
        assert!(misled("notation \"\u{445}\" => 5", "\u{445}"), "a Cyrillic kha alone");
        assert!(misled("notation \"𝟸\" => 1", "𝟸"));
    }
}
