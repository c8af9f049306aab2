//! A server on a loopback socket.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A request.
pub struct HttpRequest {
    #[allow(dead_code, reason = "not every test looks at it")]
    pub path: String,
    pub body: String,
}

/// A server that hands each request and its number to `answer`, and sends back what it says; it
/// counts the requests.
pub fn serve(
    answer: impl Fn(usize, &HttpRequest) -> String + Send + Sync + 'static,
) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let (counter, answer) = (count.clone(), Arc::new(answer));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (counter, answer) = (counter.clone(), answer.clone());
            thread::spawn(move || {
                let mut stream = stream;
                if let Some(asked) = read(&mut stream) {
                    let number = counter.fetch_add(1, Ordering::SeqCst);
                    let _ = stream.write_all(answer(number, &asked).as_bytes());
                }
            });
        }
    });
    (url, count)
}

fn read(stream: &mut TcpStream) -> Option<HttpRequest> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
            });
            if body.len() >= length.unwrap_or(0) {
                let path = head.split_whitespace().nth(1)?.to_owned();
                return Some(HttpRequest { path, body: body.to_owned() });
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

/// An answer.
pub fn respond(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}
