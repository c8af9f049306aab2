//! Numbers in sentences.

/// So many of something that takes an `s`: `1 trace`, `2 traces`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "trace")), ["0 traces", "1 trace", "2 traces"]);
    }
}
