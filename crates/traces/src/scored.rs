//! Log-probabilities of traces as JSON lines, from whatever scored them to whatever weighs them:
//! `{"name": "t1", "logp": [-0.5, -2.0]}`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The log-probability of each tactic of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogP {
    /// The trace's name: any JSON, handed through as it is.
    #[serde(default)]
    pub name: Value,
    /// One number for each tactic.
    pub logp: Vec<f64>,
}

impl LogP {
    /// One line; nothing for a blank one.
    pub fn parse(line: &[u8]) -> Result<Option<LogP>, String> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        serde_json::from_slice(line).map(Some).map_err(|error| {
            // JSON has no NaN; Python writes one all the same, and the parser's own message would
            // only confuse.
            if line.windows(3).any(|w| w == b"NaN") {
                "a log-probability is not a number (NaN); each must be a finite number, at most 0"
                    .to_owned()
            } else {
                format!(
                    "broken JSON ({error}); a line looks like {{\"name\": \"t1\", \"logp\": [-0.5, \
                     -2.0]}}"
                )
            }
        })
    }

    /// The first line of `text`, which then begins with the next: its name as JSON, and its numbers
    /// added to `numbers`. Nothing for a blank line.
    ///
    /// To the last bit what [`LogP::parse`] says, which lines of any other shape than our own are
    /// left to; where all that is computed of a trace is a formula, reading it is most of the work.
    pub fn take<'a>(
        text: &mut &'a [u8],
        numbers: &mut Vec<f64>,
    ) -> Result<Option<Cow<'a, [u8]>>, String> {
        let (known, mut rest) = (numbers.len(), Plain(text));
        if let Some(name) = rest.line(numbers) {
            *text = rest.0;
            return Ok(Some(Cow::Borrowed(name)));
        }
        numbers.truncate(known);
        let end = text.iter().position(|&byte| byte == b'\n').map_or(text.len(), |at| at + 1);
        let line = text.split_off(..end).unwrap_or_default();
        let Some(LogP { name, logp }) = LogP::parse(line)? else { return Ok(None) };
        numbers.extend(logp);
        Ok(Some(Cow::Owned(name.to_string().into_bytes())))
    }
}

/// What is left of a text whose lines look like `{"name": "t1", "logp": [-0.5, -2.0]}`. Whatever
/// else they may be, its methods say nothing of them.
struct Plain<'a>(&'a [u8]);

impl<'a> Plain<'a> {
    /// The name of the next line with its quotes; its numbers are added to `numbers`.
    fn line(&mut self, numbers: &mut Vec<f64>) -> Option<&'a [u8]> {
        self.token(b"{")?.token(b"\"name\"")?.token(b":")?;
        let name = self.string()?;
        self.token(b",")?.token(b"\"logp\"")?.token(b":")?.token(b"[")?;
        numbers.push(self.number()?);
        while self.token(b"]").is_none() {
            numbers.push(self.token(b",")?.number()?);
        }
        self.token(b"}")?.blank();
        if !self.0.is_empty() {
            self.token(b"\n")?;
        }
        Some(name)
    }

    /// Leaves out what is blank within a line.
    fn blank(&mut self) {
        while let [b' ' | b'\t' | b'\r', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }

    fn token(&mut self, token: &[u8]) -> Option<&mut Self> {
        self.blank();
        self.0 = self.0.strip_prefix(token)?;
        Some(self)
    }

    /// A string that stands in JSON as it is.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.blank();
        let plain = |&byte: &u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        let length = self.0.strip_prefix(b"\"")?.iter().position(|byte| !plain(byte))?;
        let (string, rest) = self.0.split_at(length + 2);
        self.0 = rest;
        string.ends_with(b"\"").then_some(string)
    }

    fn number(&mut self) -> Option<f64> {
        self.blank();
        let negative = self.sign(b'-');
        let (mut significand, mut exponent) = (0, 0);
        if !self.sign(b'0') {
            self.digits(&mut significand)?;
        }
        if self.sign(b'.') {
            exponent -= self.digits(&mut significand)?;
        }
        if self.sign(b'e') || self.sign(b'E') {
            let below = self.sign(b'-');
            if !below {
                self.sign(b'+');
            }
            let mut shift = 0;
            // More digits are a number that is none of ours.
            (self.digits(&mut shift)? < 6).then_some(())?;
            exponent += if below { -(shift as i32) } else { shift as i32 };
        }
        // In the way of `serde_json`, which is within a bit or two of the nearest number: whoever
        // reads a line reads the same.
        let power = *POWERS.get(exponent.unsigned_abs() as usize)?;
        let significand = significand as f64;
        let size = if exponent < 0 { significand / power } else { significand * power };
        Some(if negative { -size } else { size })
    }

    /// Whether this comes next; if so it is taken.
    fn sign(&mut self, sign: u8) -> bool {
        let rest = self.0.strip_prefix(&[sign]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Adds digits to a number, as many as there are: one at least, and no more than it can hold.
    fn digits(&mut self, number: &mut u64) -> Option<i32> {
        let (mut rest, mut sum) = (self.0, *number);
        while let Some(next) = rest.first_chunk().and_then(eight) {
            (sum < u64::MAX / 100_000_000).then_some(())?;
            (rest, sum) = (&rest[8..], sum * 100_000_000 + next);
        }
        while let [digit @ b'0'..=b'9', next @ ..] = rest {
            (sum < u64::MAX / 10).then_some(())?;
            (rest, sum) = (next, sum * 10 + u64::from(digit - b'0'));
        }
        let count = self.0.len() - rest.len();
        (self.0, *number) = (rest, sum);
        (count > 0).then_some(count as i32)
    }
}

/// The number that eight digits say, if that is what they are: neighbours are joined to pairs,
/// these to fours and these to all eight, everywhere in the word at once.
fn eight(digits: &[u8; 8]) -> Option<u64> {
    let word = u64::from_le_bytes(*digits);
    // A digit's upper half is 3, and still is with 6 added.
    let upper = 0xf0f0_f0f0_f0f0_f0f0;
    let threes = 0x3030_3030_3030_3030;
    let more = word.wrapping_add(0x0606_0606_0606_0606);
    (word & upper == threes && more & upper == threes).then_some(())?;
    let ones = word & !upper;
    let twos = (ones.wrapping_mul((10 << 8) | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul((100 << 16) | 1) >> 16) & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul((10_000 << 32) | 1) >> 32)
}

/// 10^k.
const POWERS: [f64; 41] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32,
    1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40,
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_is_read_and_a_broken_one_says_what_it_should_look_like() {
        let line = br#"{"name": 7, "logp": [-0.5]}"#;
        let read = LogP::parse(line).unwrap().unwrap();
        assert_eq!(read, LogP { name: 7.into(), logp: vec![-0.5] });
        assert_eq!(LogP::parse(b" \r\n").unwrap(), None);
        for (line, part) in [
            (&b"{\"logp\": [NaN]}"[..], "not a number"),
            (b"{\"logp\": [null]}", "a line looks like"),
            (b"{\"name\": 1}", "missing field `logp`"),
        ] {
            let error = LogP::parse(line).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
    /// Every line of a text by [`LogP::take`], and by [`LogP::parse`].
    fn both_ways(text: &[u8]) {
        let (mut rest, mut numbers) = (text, Vec::new());
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let known = numbers.len();
            let taken = LogP::take(&mut rest, &mut numbers);
            let shown = String::from_utf8_lossy(line);
            match LogP::parse(line) {
                Ok(None) => assert_eq!(taken, Ok(None), "{shown}"),
                Err(error) => assert_eq!(taken, Err(error), "{shown}"),
                Ok(Some(LogP { name, logp })) => {
                    assert_eq!(taken.unwrap().unwrap(), name.to_string().as_bytes(), "{shown}");
                    let bits = |numbers: &[f64]| -> Vec<u64> {
                        numbers.iter().map(|number| number.to_bits()).collect()
                    };
                    assert_eq!(bits(&numbers[known..]), bits(&logp), "{shown}");
                }
            }
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn a_text_is_taken_as_its_lines_are_parsed() {
        let names =
            [r#""t1""#, r#""a b\u00e9\"\n""#, "\"é\"", "7", "-0", "null", r#"{"a":[1]}"#, "\"\t\""];
        let numbers = [
            "-0.5",
            "0",
            "-0",
            "-0.0",
            "1e5",
            "-1E-7",
            "-2.5e+3",
            "-12345678901234567890",
            "01",
            "-18446744073709551615",
            "-0.12844820584926352",
            "-0.0000012844820584926352",
            "1e400",
            "-1e-400",
            "-1.7976931348623157e308",
            "-.5",
            "-5.",
            "1e",
            "-1e-",
            "-",
            "NaN",
            "null",
            "-0.000000000000000000000000000000000000000000000001",
            "-1.00000000000000000000000001",
            "-1e0000000000000000000007",
            "-1e12345678901",
            "true",
            "",
        ];
        let mut text = Vec::new();
        for name in names {
            for number in numbers {
                for line in [
                    format!("{{\"name\": {name}, \"logp\": [{number}]}}\n"),
                    format!("{{\"name\":{name},\"logp\":[-1.5,{number},-2]}}\r\n"),
                    format!(" {{ \"name\" :\t{name} , \"logp\" : [ {number} , -2 ] }} \n"),
                    format!("{{\"logp\": [{number}], \"name\": {name}}}\n"),
                ] {
                    text.extend(line.bytes());
                }
            }
        }
        for line in [
            "",
            " \t\r",
            "{}",
            "{\"name\": \"a\"}",
            "{\"logp\": [-1]}",
            "[\"a\", [-1]]",
            "{\"name\": \"a",
            "{\"name\": \"a\", \"logp\": []}",
            "{\"name\": \"a\", \"logp\": [-1]} x",
            "{\"name\": \"a\", \"logp\": [-1], \"more\": 1}",
            "{\"name\": \"a\", \"logp\": [-1",
            "{\"name\": \"a\", \"logp\": [-1 -2]}",
            "{\"name\": \"a\", \"logp\": [-1,]}",
        ] {
            text.extend(line.bytes().chain([b'\n']));
        }
        text.extend(b"{\"name\": \"\xff\", \"logp\": [-1]}\n{\"name\": \"z\", \"logp\": [-1]}");
        both_ways(&text);
        both_ways(b"{\"name\": \"unfinished");
    }

    proptest! {
        #[test]
        fn numbers_are_read_to_the_last_bit(
            bits in proptest::collection::vec(any::<f64>(), 1..4),
            plain in proptest::collection::vec("-?[0-9]{1,3}\\.[0-9]{1,20}(e-?[0-9]{1,2})?", 1..4),
            cut in 0usize..200,
        ) {
            let bits: Vec<f64> = bits.into_iter().filter(|number| number.is_finite()).collect();
            let text = format!(
                "{{\"name\": \"a\", \"logp\": {}}}\n{{\"name\": \"b\", \"logp\": [{}]}}",
                serde_json::to_string(&bits).unwrap(), plain.join(", "),
            );
            both_ways(text.as_bytes());
            both_ways(&text.as_bytes()[..cut.min(text.len())]);
        }
    }
}
