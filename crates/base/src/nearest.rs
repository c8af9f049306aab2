//! The name that was probably meant.

/// The known name nearest to one that is not known, if any is near enough to be worth a guess.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= (name.chars().count() / 2).max(1))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        assert_eq!(nearest("dmeo", ["metamath", "demo"]), Some("demo"));
        assert_eq!(nearest("strategy", ["strategies", "trees"]), Some("strategies"));
        assert_eq!(nearest("quux", ["demo"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
