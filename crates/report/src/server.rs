//! The report on localhost, made anew from the logs as they grow. Nothing is written to the folder,
//! which belongs to whoever runs the study.

mod request;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use catamount_evaluate::log::TreeRecord;
use catamount_figure::png_from_svg;

use crate::live::{Live, Seen};
use crate::page::{self, Served};
use crate::report::make;
use crate::run::Run;
use crate::trees;
use request::Request;

/// Searches a theorem again as the cell of a log did, for a tree that was not kept; or says why
/// not.
pub type SearchAgain = dyn Fn(&Path, &str) -> Result<TreeRecord, String> + Send + Sync;

/// A server of one study's report.
pub struct Server {
    listener: TcpListener,
    study: Study,
}

struct Study {
    dir: PathBuf,
    made: Mutex<Made>,
    again: Option<Box<SearchAgain>>,
    /// What was searched again, by theorem and the name of the search in links. Whoever holds it
    /// searches: one after another.
    searched: Mutex<HashMap<String, BTreeMap<String, TreeRecord>>>,
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
const FAILED: &str = "500 Internal Server Error";

impl Server {
    /// Listens on this machine alone; port 0 takes a free one.
    pub fn bind(dir: &Path, port: u16) -> io::Result<Self> {
        if !dir.is_dir() {
            let reason = format!("{} is not the folder of a study", dir.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let (made, searched) = (Mutex::default(), Mutex::default());
        let study = Study { dir: dir.into(), made, again: None, searched };
        Ok(Server { listener, study })
    }

    /// The same server, which shows the trees of theorems whose trees were not kept, too.
    pub fn searching(mut self, again: Box<SearchAgain>) -> Self {
        self.study.again = Some(again);
        self
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until the process ends.
    pub fn serve(self) -> io::Result<()> {
        let served = Arc::new(self.study);
        loop {
            let (stream, _) = self.listener.accept()?;
            let study = Arc::clone(&served);
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
        if request.path == "trees.json" {
            // Not under the lock: a search may take its time, and the page goes on meanwhile.
            return self.trees(request);
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match request.path.as_str() {
            "live.json" => match Live::read(&self.dir, &mut made.seen) {
                Ok(live) => (DONE, "application/json", json(&live)),
                Err(error) => failed(&error),
            },
            path => {
                made.refresh(&self.dir, self.again.is_some());
                made.file(if path.is_empty() { page::INDEX } else { path })
            }
        }
    }

    /// The trees of a theorem: those that were kept, and those that were searched again.
    fn trees(&self, request: &Request) -> Answer {
        let run = match Run::open(&self.dir) {
            Ok(run) => run,
            Err(error) => return failed(&error),
        };
        let theorem = request.value("theorem").unwrap_or_default();
        let search = request.value("search").unwrap_or_default();
        let mut searched = self.searched.lock().unwrap_or_else(PoisonError::into_inner);
        let known = searched.get(theorem).is_some_and(|trees| trees.contains_key(search));
        if let Some(again) = &self.again
            && !known
            && let Some(log) = trees::unkept(&run, theorem, search)
        {
            match again(&log.path, theorem) {
                Ok(tree) => {
                    searched.entry(theorem.into()).or_default().insert(search.into(), tree);
                }
                Err(reason) => return (FAILED, "text/plain", reason.into_bytes()),
            }
        }
        let found = trees::of(&run, theorem, searched.get(theorem));
        (DONE, "application/json", json(&found))
    }
}

impl Made {
    /// Makes the report again if there is more to report on.
    fn refresh(&mut self, dir: &Path, searches: bool) {
        let version = Live::read(dir, &mut self.seen).map(|live| live.version).unwrap_or_default();
        if self.version == Some(version) {
            return;
        }
        self.version = Some(version);
        self.files.clear();
        let served = if searches { Served::Searching } else { Served::Showing };
        match make(dir, served) {
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
    (FAILED, "text/plain", format!("{error}\n").into_bytes())
}
