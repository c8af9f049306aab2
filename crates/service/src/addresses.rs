//! Where services are: named at once, or in a file that is read again as they come and go.

use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::str::FromStr;

/// Addresses of services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// These, `HOST:PORT` each.
    Listed(Vec<String>),
    /// One a line in a file, which whoever replaces services writes anew.
    File(PathBuf),
}

/// What is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is neither a file nor an address; give HOST:PORT,... as `catamount serve` prints them, \
     or a file with one on each line"
)]
pub struct AddressError(String);

impl Addresses {
    /// The addresses as of now; none where the file cannot be read yet.
    pub(crate) fn now(&self) -> Vec<String> {
        match self {
            Addresses::Listed(all) => all.clone(),
            Addresses::File(path) => {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                text.lines().map(bare).filter(|line| !line.is_empty()).map(str::to_owned).collect()
            }
        }
    }
}

fn bare(text: &str) -> &str {
    text.trim().trim_start_matches("http://").trim_end_matches('/')
}

impl FromStr for Addresses {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let path = PathBuf::from(text);
        if path.is_file() {
            return Ok(Addresses::File(path));
        }
        let all: Vec<String> = text.split(',').map(|one| bare(one).to_owned()).collect();
        match all.iter().find(|one| one.to_socket_addrs().is_err()) {
            Some(wrong) => Err(AddressError(wrong.clone())),
            None => Ok(Addresses::Listed(all)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_listed_or_in_a_file() {
        let listed = "http://127.0.0.1:80/, 127.0.0.1:81".parse::<Addresses>().unwrap();
        assert_eq!(listed.now(), ["127.0.0.1:80", "127.0.0.1:81"]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("provers");
        std::fs::write(&path, "127.0.0.1:82\n\n").unwrap();
        let filed = path.to_str().unwrap().parse::<Addresses>().unwrap();
        assert_eq!(filed.now(), ["127.0.0.1:82"]);
        std::fs::write(&path, "127.0.0.1:83\n127.0.0.1:84").unwrap();
        assert_eq!(filed.now(), ["127.0.0.1:83", "127.0.0.1:84"]);
        for wrong in ["nowhere", "127.0.0.1:80,", ""] {
            assert!(wrong.parse::<Addresses>().is_err(), "{wrong}");
        }
    }
}
