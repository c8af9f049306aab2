//! A completions server that misbehaves in one way.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anyhow::Result;

/// The key that the program is given, and must never show.
pub const KEY: &str = "sk-catamount-secret-0123456789";

/// How a server misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// An answer of this status, which echoes the request with its headers.
    Echo(&'static str),
    /// This, as the body of a good answer.
    Body(&'static str),
    /// The beginning of a good answer, and then nothing more.
    Cut,
    /// Not HTTP.
    Noise,
    /// A body without an end.
    Endless,
    /// Nothing, for ever.
    Hang,
    /// It loads adapters and completes, and hangs when it is to unload one.
    HangUnloading,
    /// Nobody listens.
    Away,
}

/// A completion of one tactic with these log-probabilities.
macro_rules! choice {
    ($log_p:literal) => {
        concat!(r#"{"choices":[{"text":"ax-1","logprobs":{"token_logprobs":"#, $log_p, "}}]}")
    };
}
/// Every misbehaviour that must end in errors.
pub const MISBEHAVIOURS: [(&str, Misbehaviour); 16] = [
    ("401 that echoes the headers", Misbehaviour::Echo("401 Unauthorized")),
    ("500 that echoes the headers", Misbehaviour::Echo("500 Internal Server Error")),
    ("404 that echoes the headers", Misbehaviour::Echo("404 Not Found")),
    ("429 without an end", Misbehaviour::Echo("429 Too Many Requests")),
    ("200 that echoes the headers", Misbehaviour::Echo("200 OK")),
    ("log p of null", Misbehaviour::Body(choice!("[null]"))),
    ("log p of nothing", Misbehaviour::Body(choice!("[]"))),
    ("log p above 0", Misbehaviour::Body(choice!("[5.0]"))),
    ("log p beyond numbers", Misbehaviour::Body(choice!("[-1e308,-1e308]"))),
    ("log p of a text", Misbehaviour::Body(choice!("[\"x\"]"))),
    ("no choices", Misbehaviour::Body("{\"choices\":[]}")),
    ("no JSON", Misbehaviour::Body("<html>")),
    ("a cut answer", Misbehaviour::Cut),
    ("no HTTP", Misbehaviour::Noise),
    ("an endless answer", Misbehaviour::Endless),
    ("no server", Misbehaviour::Away),
];

/// Starts such a server; its address.
pub fn serve(misbehaviour: Misbehaviour) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    if misbehaviour == Misbehaviour::Away {
        return Ok(url);
    }
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream, misbehaviour));
        }
    });
    Ok(url)
}

fn answer(mut stream: TcpStream, misbehaviour: Misbehaviour) {
    let mut request = vec![0; 1 << 16];
    let length = stream.read(&mut request).unwrap_or(0);
    let request = String::from_utf8_lossy(&request[..length]).into_owned();
    let whole = |status: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    };
    // The other side may be gone at any time; that is its business.
    let _ = match misbehaviour {
        Misbehaviour::HangUnloading => match request.lines().next() {
            Some(line) if line.contains("unload") => hang(),
            Some(line) if line.contains("load") => {
                stream.write_all(whole("200 OK", "Success").as_bytes())
            }
            _ => stream.write_all(whole("200 OK", choice!("[-0.5]")).as_bytes()),
        },
        Misbehaviour::Echo(status) => stream.write_all(whole(status, &request).as_bytes()),
        Misbehaviour::Body(body) => stream.write_all(whole("200 OK", body).as_bytes()),
        Misbehaviour::Cut => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{\"choi")
        }
        Misbehaviour::Noise => stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        Misbehaviour::Endless => endless(&mut stream),
        Misbehaviour::Hang | Misbehaviour::Away => hang(),
    };
}

fn hang() -> std::io::Result<()> {
    std::thread::sleep(Duration::from_secs(3600));
    Ok(())
}

fn endless(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n")?;
    let block = [b' '; 1 << 16];
    loop {
        stream.write_all(&block)?;
    }
}
