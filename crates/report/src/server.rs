//! The report on localhost, made anew from the logs as they grow. Nothing is written to the folder,
//! which belongs to whoever runs the study.

mod request;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use catamount_figure::png_from_svg;

use crate::live::{Live, Seen};
use crate::page;
use crate::report::make;
use crate::run::Run;
use crate::trees;
use request::Request;

/// A server of one study's report.
pub struct Server {
    listener: TcpListener,
    study: Arc<Study>,
}

struct Study {
    dir: PathBuf,
    made: Mutex<Made>,
}

/// The report as it was made last.
#[derive(Default)]
struct Made {
    seen: Seen,
    version: Option<u64>,
    /// By the path that a browser asks for.
    files: BTreeMap<String, String>,
}

/// An answer: status, type, content.
type Answer = (&'static str, &'static str, Vec<u8>);

const LOST: &str = "404 Not Found";
const DONE: &str = "200 OK";

impl Server {
    /// Listens on this machine alone; port 0 takes a free one.
    pub fn bind(dir: &Path, port: u16) -> io::Result<Self> {
        if !dir.is_dir() {
            let reason = format!("{} is not the folder of a study", dir.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let study = Study { dir: dir.into(), made: Mutex::default() };
        Ok(Server { listener, study: Arc::new(study) })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until the process ends.
    pub fn serve(&self) -> io::Result<()> {
        loop {
            let (stream, _) = self.listener.accept()?;
            let study = Arc::clone(&self.study);
            // A browser opens connections it may never use: each has a thread of its own.
            std::thread::Builder::new().name("view".into()).spawn(move || {
                // A reader who has gone away is nobody's error.
                let _ = study.converse(stream);
            })?;
        }
    }
}

impl Study {
    fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let (status, kind, content) = match Request::read(&mut stream)? {
            Some(request) => self.answer(&request),
            None => ("400 Bad Request", "text/plain", b"only GET, and only localhost\n".to_vec()),
        };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: \
             {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
            content.len()
        )?;
        stream.write_all(&content)
    }

    fn answer(&self, request: &Request) -> Answer {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match request.path.as_str() {
            "live.json" => match Live::read(&self.dir, &mut made.seen) {
                Ok(live) => (DONE, "application/json", json(&live)),
                Err(error) => failed(&error),
            },
            "trees.json" => match Run::open(&self.dir) {
                Ok(run) => {
                    let theorem = request.value("theorem").unwrap_or_default();
                    (DONE, "application/json", json(&trees::of(&run, theorem)))
                }
                Err(error) => failed(&error),
            },
            path => {
                made.refresh(&self.dir);
                made.file(if path.is_empty() { page::INDEX } else { path })
            }
        }
    }
}

impl Made {
    /// Makes the report again if there is more to report on.
    fn refresh(&mut self, dir: &Path) {
        let version = Live::read(dir, &mut self.seen).map(|live| live.version).unwrap_or_default();
        if self.version == Some(version) {
            return;
        }
        self.version = Some(version);
        self.files.clear();
        match make(dir, true) {
            Ok(report) => {
                for figure in &report.figures {
                    let name = format!("figures/{}", figure.name);
                    self.files.insert(format!("{name}.svg"), figure.chart.to_svg());
                    self.files.insert(format!("{name}.csv"), figure.chart.to_csv());
                }
                self.files.insert(page::INDEX.into(), report.html);
            }
            Err(reason) => {
                let waiting = page::waiting(dir, &reason.to_string());
                self.files.insert(page::INDEX.into(), waiting);
            }
        }
    }

    fn file(&self, path: &str) -> Answer {
        if let Some(svg) =
            path.strip_suffix(".png").and_then(|p| self.files.get(&format!("{p}.svg")))
        {
            return match png_from_svg(svg, 2.0) {
                Ok(png) => (DONE, "image/png", png),
                Err(error) => failed(&error),
            };
        }
        let kind = match path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("html") => "text/html",
            Some("svg") => "image/svg+xml",
            Some("csv") => "text/csv",
            _ => "text/plain",
        };
        match self.files.get(path) {
            Some(text) => (DONE, kind, text.clone().into_bytes()),
            None => (LOST, "text/plain", b"there is no such page\n".to_vec()),
        }
    }
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn failed(error: &dyn std::error::Error) -> Answer {
    ("500 Internal Server Error", "text/plain", format!("{error}\n").into_bytes())
}
