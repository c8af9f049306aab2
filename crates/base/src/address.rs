//! Addresses that may hold a user and a password, which nobody is shown.

use std::ops::Range;

/// What stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// A text with an address in it, or none, without its user and password.
pub fn shown(address: &str) -> String {
    match user(address) {
        Some(user) => format!("{}{REDACTED}{}", &address[..user.start], &address[user.end..]),
        None => address.to_owned(),
    }
}

/// Where the user and password stand in an address: between `://` and the `@` before its path.
pub fn user(address: &str) -> Option<Range<usize>> {
    let from = address.find("://")? + 3;
    let host = address[from..].find('/').map_or(address.len(), |end| from + end);
    address[from..host].rfind('@').map(|at| from..from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(shown("http://me:pass@host:8000/v1"), "http://[redacted]@host:8000/v1");
        assert_eq!(shown("http://host/a@b"), "http://host/a@b");
        assert_eq!(shown("--policy=http://me@host"), "--policy=http://[redacted]@host");
        assert_eq!(shown("files//of@me"), "files//of@me");
    }
}
