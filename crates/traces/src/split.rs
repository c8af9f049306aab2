//! Training and held-out parts that share no theorem and no near-duplicate of one.
//!
//! The caller says by a key which traces are near-duplicates; a whole group of equal keys always
//! goes to the same part. Where a group goes depends on the hash of (seed, key) and not on the
//! order of the traces, so that a split can be repeated anywhere; with fractions alone it does not
//! even depend on the other traces, so that data can be added without anything moving from one part
//! to another.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use crate::{Error, Trace};

/// How much of the traces a part gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share {
    /// This part of all, between 0 and 1: exact on average.
    Fraction(f64),
    /// This many traces: exact, unless whole groups do not add up to it.
    Count(usize),
    /// What the others leave.
    Rest,
}

/// The sizes of the parts. As text: `rest,500,500` or `0.9,0.05,0.05`; a number with a point is a
/// fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// Traces to train on.
    pub train: Share,
    /// Traces to choose settings on.
    pub valid: Share,
    /// Traces to report results on.
    pub test: Share,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // With a point even where it is whole, so that it reads back as a fraction.
            Share::Fraction(fraction) => write!(f, "{fraction:?}"),
            Share::Count(count) => write!(f, "{count}"),
            Share::Rest => f.write_str("rest"),
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.train, self.valid, self.test)
    }
}

/// The parts that a split gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts<T> {
    /// Traces to train on.
    pub train: Vec<T>,
    /// Traces to choose settings on.
    pub valid: Vec<T>,
    /// Traces to report results on.
    pub test: Vec<T>,
}

impl Split {
    /// Splits traces; near-duplicates are those for which `key` is the same. The parts keep the
    /// order of the traces. Names are unique, so the same name twice is an error.
    pub fn apply(
        &self,
        traces: Vec<Trace>,
        seed: u64,
        key: impl Fn(&Trace) -> String,
    ) -> Result<Parts<Trace>, Error> {
        self.check()?;
        let mut names = HashSet::new();
        if let Some(twice) = traces.iter().find(|trace| !names.insert(trace.theorem.name.as_str()))
        {
            return Err(Error::Split(format!(
                "the name {:?} occurs twice; names must be unique",
                twice.theorem.name
            )));
        }
        let hashes: Vec<[u8; 32]> = traces.iter().map(|trace| hash(seed, &key(trace))).collect();
        let parts = match [self.train, self.valid, self.test]
            .iter()
            .any(|share| matches!(share, Share::Count(_)))
        {
            true => self.by_count(&hashes)?,
            false => self.by_threshold(&hashes),
        };
        let mut split = Parts { train: Vec::new(), valid: Vec::new(), test: Vec::new() };
        for (trace, hash) in traces.into_iter().zip(hashes) {
            match parts.get(&hash) {
                Some(Part::Train) => split.train.push(trace),
                Some(Part::Valid) => split.valid.push(trace),
                Some(Part::Test) => split.test.push(trace),
                None => {}
            }
        }
        Ok(split)
    }

    fn check(&self) -> Result<(), Error> {
        let shares = [self.train, self.valid, self.test];
        let fractions = shares.map(|share| if let Share::Fraction(x) = share { x } else { 0.0 });
        if fractions.iter().any(|x| !(0.0..=1.0).contains(x))
            || fractions.iter().sum::<f64>() > 1.0 + 1e-9
        {
            return Err(Error::Split(
                "fractions are between 0 and 1 and add up to at most 1".into(),
            ));
        }
        match shares.iter().filter(|share| **share == Share::Rest).count() {
            0 | 1 => Ok(()),
            _ => Err(Error::Split("only one part can be the rest".into())),
        }
    }

    /// The parts that get nothing, whatever the traces are.
    pub fn empty(&self) -> Vec<&'static str> {
        let shares = [("train", self.train), ("valid", self.valid), ("test", self.test)];
        let fraction = |share: &Share| if let Share::Fraction(x) = share { *x } else { 0.0 };
        let taken: f64 = shares.iter().map(|(_, share)| fraction(share)).sum();
        let nothing = |share: &Share| match share {
            Share::Fraction(fraction) => *fraction == 0.0,
            Share::Count(count) => *count == 0,
            Share::Rest => taken >= 1.0 - 1e-9,
        };
        shares.into_iter().filter(|(_, share)| nothing(share)).map(|(name, _)| name).collect()
    }

    /// The parts in the order in which they are filled: test first, so that a change of the others
    /// does not move it.
    fn order(&self) -> [(Part, Share); 3] {
        let mut order =
            [(Part::Test, self.test), (Part::Valid, self.valid), (Part::Train, self.train)];
        order.sort_by_key(|(_, share)| *share == Share::Rest);
        order
    }

    fn by_threshold(&self, hashes: &[[u8; 32]]) -> HashMap<[u8; 32], Part> {
        let part = |hash: &[u8; 32]| {
            let unit = prefix(hash) as f64 / 2f64.powi(64);
            let mut end = 0.0;
            self.order().into_iter().find_map(|(part, share)| {
                end += if let Share::Fraction(x) = share { x } else { 1.0 };
                // Rounding in the sum of fractions must not lose the last traces.
                (unit < end + 1e-12).then_some(part)
            })
        };
        hashes.iter().filter_map(|hash| Some((*hash, part(hash)?))).collect()
    }

    fn by_count(&self, hashes: &[[u8; 32]]) -> Result<HashMap<[u8; 32], Part>, Error> {
        let mut sizes: HashMap<[u8; 32], usize> = HashMap::new();
        hashes.iter().for_each(|hash| *sizes.entry(*hash).or_default() += 1);
        let mut groups: Vec<([u8; 32], usize)> = sizes.into_iter().collect();
        groups.sort_unstable();
        let mut parts = HashMap::new();
        for (part, share) in self.order() {
            let wanted = match share {
                Share::Fraction(x) => (x * hashes.len() as f64).round() as usize,
                Share::Count(n) => n,
                Share::Rest => usize::MAX,
            };
            let mut left = wanted;
            // A group too large for what is left stays for a later part, so that counts come out
            // exactly where they can.
            groups.retain(|(hash, size)| {
                let takes = *size <= left;
                if takes {
                    left -= size;
                    parts.insert(*hash, part);
                }
                !takes
            });
            if matches!(share, Share::Count(_)) && left > 0 && groups.is_empty() {
                let all = hashes.len();
                return Err(Error::Split(format!(
                    "{wanted} traces were wanted for one part, {left} too many for these {all}"
                )));
            }
        }
        Ok(parts)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Train,
    Valid,
    Test,
}

impl FromStr for Split {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::Split(format!(
                "{text:?} is not a split; write train,valid,test such as rest,500,500 or \
                 0.9,0.05,0.05"
            ))
        };
        let share = |word: &str| match word.trim() {
            "rest" => Ok(Share::Rest),
            word if word.contains('.') => word.parse().map(Share::Fraction).map_err(|_| wrong()),
            word => word.parse().map(Share::Count).map_err(|_| wrong()),
        };
        let shares: Vec<Share> = text.split(',').map(share).collect::<Result<_, _>>()?;
        let [train, valid, test] = shares.try_into().map_err(|_| wrong())?;
        let split = Split { train, valid, test };
        split.check().map(|()| split)
    }
}

pub(crate) fn hash(seed: u64, key: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes()).update(key.as_bytes());
    hasher.finalize().into()
}

fn prefix(hash: &[u8; 32]) -> u64 {
    hash[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A key for text of any prover: the statement (or the first state, where there is none) with its
/// own name, spacing, letter case, numerals and the names of short variables taken out. It sees
/// renamed and re-instantiated copies, not paraphrases.
pub fn text_key(trace: &Trace) -> String {
    let theorem = &trace.theorem;
    let first = trace.steps.first().map(|step| step.state.as_str()).unwrap_or_default();
    let text = [theorem.statement.as_str(), first, theorem.name.as_str()]
        .into_iter()
        .find(|text| !text.trim().is_empty());
    let short = theorem.name.rsplit('.').next().unwrap_or_default();
    let mut variables: HashMap<&str, usize> = HashMap::new();
    let mut key = String::new();
    for word in words(text.unwrap_or_default()) {
        if word == theorem.name || word == short || matches!(word, "theorem" | "lemma") {
            continue;
        }
        let letters = word.chars().take_while(|c| c.is_alphabetic()).count();
        let numeral = word.chars().all(|c| c.is_ascii_digit());
        let rest_is_index =
            word.chars().skip(letters).all(|c| c.is_numeric() || matches!(c, '_' | '\'' | '✝'));
        key.push(' ');
        if numeral {
            key.push('0');
        } else if (1..=2).contains(&letters) && rest_is_index {
            let fresh = variables.len();
            key.push_str(&format!("v{}", variables.entry(word).or_insert(fresh)));
        } else {
            key.extend(word.chars().flat_map(char::to_lowercase));
        }
    }
    key
}

/// Words of letters, digits and what joins them; every other visible character by itself.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '\'' | '✝');
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let end = if joins(first) {
            rest.find(|c| !joins(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}
