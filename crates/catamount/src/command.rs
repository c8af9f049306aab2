//! How this process was called, for manifests.

/// The command line, with arguments quoted where a shell would need it.
pub fn line() -> String {
    let quote = |argument: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    };
    std::iter::once("catamount".to_string())
        .chain(std::env::args().skip(1))
        .map(quote)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The commit this binary was built from, where that is known.
pub fn commit() -> Option<String> {
    option_env!("CATAMOUNT_COMMIT").map(String::from)
}
