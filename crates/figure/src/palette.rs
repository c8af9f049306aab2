//! Colours that survive colour-blindness, print and dark screens.
//!
//! Hues follow Okabe and Ito's set, darkened or lightened so that every series keeps a contrast of
//! at least 3:1 against both grounds. Series also differ by marker and dash, so that colour never
//! carries meaning alone.

use std::fmt::Write;

/// Series colours as (on light ground, on dark ground).
pub const SERIES_COLOURS: [(&str, &str); 8] = [
    ("#0b6aa8", "#63b3ea"),
    ("#c9520a", "#f2935c"),
    ("#0a8562", "#3ec79e"),
    ("#a8548a", "#dc9bc4"),
    ("#94700a", "#e0b84c"),
    ("#4b4b57", "#c4c4d0"),
    ("#6a51b5", "#b0a0ee"),
    ("#1d7f8c", "#66cad6"),
];

/// A named ground colour: class suffix, light value, dark value.
pub(crate) const ROLES: [(&str, &str, &str); 4] = [
    ("ground", "#ffffff", "#16181c"),
    ("ink", "#1d1f24", "#e8e9ec"),
    ("soft", "#5d626d", "#a5abb8"),
    ("grid", "#e3e5ea", "#31353d"),
];

/// The light value of a role, for renderers that read no stylesheet.
pub(crate) fn role(name: &str) -> &'static str {
    ROLES.iter().find(|r| r.0 == name).map_or("#000000", |r| r.1)
}

/// CSS rules for the classes used in every figure, under a selector prefix (`""`, or
/// `:root[data-theme=dark] `).
///
/// A page that inlines figures with [`crate::Chart::to_inline_svg`] supplies these itself, and so
/// can offer its own theme switch.
pub fn stylesheet(prefix: &str, dark: bool) -> String {
    let mut css = String::new();
    for (name, light, night) in ROLES {
        let _ = write!(css, "{prefix}.cf-{name}{{color:{}}}", if dark { night } else { light });
    }
    for (i, (light, night)) in SERIES_COLOURS.iter().enumerate() {
        let _ = write!(css, "{prefix}.cf-s{i}{{color:{}}}", if dark { night } else { light });
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(hex: &str) -> f64 {
        let channel = |i: usize| {
            let v = f64::from(u8::from_str_radix(&hex[i..i + 2], 16).unwrap()) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (x, y) = (luminance(a), luminance(b));
        (x.max(y) + 0.05) / (x.min(y) + 0.05)
    }

    #[test]
    fn every_series_stands_out_on_both_grounds() {
        for (light, dark) in SERIES_COLOURS {
            assert!(contrast(light, ROLES[0].1) >= 4.0, "{light}: {}", contrast(light, ROLES[0].1));
            assert!(contrast(dark, ROLES[0].2) >= 4.5, "{dark}: {}", contrast(dark, ROLES[0].2));
        }
        for text in ["ink", "soft"] {
            let (_, light, dark) = ROLES.into_iter().find(|r| r.0 == text).unwrap();
            assert!(contrast(light, ROLES[0].1) >= 4.5 && contrast(dark, ROLES[0].2) >= 4.5);
        }
    }
}
