//! What a browser asks for: a path and the values after it. Only as much of HTTP as a page on
//! localhost needs.

use std::io::{self, BufRead, BufReader, Read};

/// No request of ours is as long.
const LONGEST: u64 = 16 * 1024;

#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// Without the leading slash.
    pub(super) path: String,
    values: Vec<(String, String)>,
}

impl Request {
    /// Reads a request; none if it is not one that is answered here: another method, or the name of
    /// another machine, by which a stranger's page would reach this one through its reader.
    pub(super) fn read(stream: &mut impl Read) -> io::Result<Option<Self>> {
        let mut lines = BufReader::new(stream.take(LONGEST)).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        let mut host = None;
        for line in lines {
            let line = line?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("host")
            {
                host = Some(value.trim().to_owned());
            }
        }
        let here = host.is_some_and(|host| {
            let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
            name == "127.0.0.1" || name == "localhost"
        });
        let mut words = first.split(' ');
        let (Some("GET"), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
        Ok(here.then(|| Request::parse(target)))
    }

    fn parse(target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decoded(name), decoded(value))
        };
        let values = query.split('&').filter(|part| !part.is_empty()).map(pair).collect();
        Request { path: decoded(path.trim_start_matches('/')), values }
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

/// `%41` is A and `+` a blank; what is neither stays as it is.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Option<Request> {
        Request::read(&mut text.as_bytes()).unwrap()
    }

    #[test]
    fn requests_are_taken_apart() {
        let request =
            asked("GET /trees.json?theorem=a%2Bb+c HTTP/1.1\r\nHost: localhost:80\r\n\r\n")
                .unwrap();
        assert_eq!(
            (request.path.as_str(), request.value("theorem")),
            ("trees.json", Some("a+b c"))
        );
        assert_eq!(asked("GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").unwrap().path, "");
        assert_eq!(decoded("100%"), "100%");
    }

    #[test]
    fn strangers_are_refused() {
        assert_eq!(asked("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), None);
        assert_eq!(asked("GET / HTTP/1.1\r\n\r\n"), None);
        assert_eq!(asked("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), None);
        assert_eq!(asked(""), None);
    }
}
