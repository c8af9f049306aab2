//! Valid files, damaged.

use crate::random::Random;

/// Numbers at which programs break, as text.
const NUMBERS: [&str; 24] = [
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "255",
    "256",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "1e308",
    "-1e308",
    "-3.4e38",
    "1e-320",
    "0.1",
    "1e999",
    "null",
    "NaN",
];

/// The same as eight bytes.
const WORDS: [u64; 12] = [
    0,
    1,
    7,
    127,
    255,
    65_535,
    1 << 20,
    u32::MAX as u64,
    1 << 32,
    1 << 40,
    i64::MAX as u64,
    u64::MAX,
];

/// Words that parsers look for.
const TOKENS: [&str; 40] = [
    "{", "}", "[", "]", "\"", ",", ":", "\\", "\n", "\r\n", " ", "\t", "\0", "$(", "$)", "${",
    "$}", "$[", "$]", "$c", "$v", "$f", "$e", "$d", "$a", "$p", "$=", "$.", "?", "(", ")", "null",
    "true", "\u{feff}", "\u{202e}", "é", "\\u0000", "\\ud800", "[[", "=",
];

/// One of the seeds with one to eight kinds of damage; once in a while not even that.
pub fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = random.pick(seeds).clone();
    for _ in 0..=random.below(8) {
        let other = random.pick(seeds);
        damage(&mut bytes, other, random);
    }
    bytes
}

/// A place and a short length within bytes.
fn stretch(bytes: &[u8], random: &mut Random) -> (usize, usize) {
    let from = random.below(bytes.len() + 1);
    let longest = if random.once_in(4) { bytes.len() - from } else { 16.min(bytes.len() - from) };
    (from, from + random.below(longest + 1))
}

fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    match random.below(12) {
        0 if !bytes.is_empty() => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        1 if !bytes.is_empty() => {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        2 => {
            let (from, to) = stretch(bytes, random);
            bytes.drain(from..to);
        }
        3 => {
            let (from, to) = stretch(bytes, random);
            let copy = bytes[from..to].to_vec();
            let at = random.below(bytes.len() + 1);
            bytes.splice(at..at, copy);
        }
        4 => {
            let (from, to) = stretch(other, random);
            let (at, until) = stretch(bytes, random);
            bytes.splice(at..until, other[from..to].iter().copied());
        }
        5 => bytes.truncate(random.below(bytes.len() + 1)),
        6 | 7 => number(bytes, random),
        8 if bytes.len() >= 8 => {
            let width = *random.pick(&[1, 2, 4, 8]);
            let at = random.below(bytes.len() - width + 1);
            let word = random.pick(&WORDS).to_le_bytes();
            bytes[at..at + width].copy_from_slice(&word[..width]);
        }
        9 => {
            let token = random.pick(&TOKENS).bytes();
            let at = random.below(bytes.len() + 1);
            bytes.splice(at..at, token);
        }
        10 => swap_words(bytes, random),
        _ => {
            // The same thing many times over: depth and length.
            let (from, to) = stretch(bytes, random);
            let copy = bytes[from..to.min(from + 32)].to_vec();
            let times = *random.pick(&[2, 16, 256, 2048]);
            bytes.splice(from..from, copy.repeat(times));
        }
    }
}

/// Puts another number in place of one that is written in digits.
fn number(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let start = random.below(bytes.len());
    let Some(from) = (start..bytes.len()).find(|at| bytes[*at].is_ascii_digit()) else { return };
    let part = |byte: &u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
    let len = bytes[from..].iter().take_while(|byte| part(byte)).count();
    bytes.splice(from..from + len, random.pick(&NUMBERS).bytes());
}

/// Exchanges two words of a text.
fn swap_words(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut words: Vec<&[u8]> = bytes.split(|byte| *byte == b' ').collect();
    let (a, b) = (random.below(words.len()), random.below(words.len()));
    words.swap(a, b);
    *bytes = words.join(&b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_same_on_every_run_and_differ_from_each_other() {
        let seeds = [b"{\"a\": [1, 2]}".to_vec(), b"x y z".to_vec()];
        let input = |number| mutated(&seeds, &mut Random::new("target", number));
        let all: Vec<Vec<u8>> = (0..200).map(input).collect();
        assert_eq!(all[7], input(7));
        let different: std::collections::HashSet<&Vec<u8>> = all.iter().collect();
        assert!(different.len() > 150, "{}", different.len());
    }
}
