//! Provers behind real HTTP give a search what a prover in this process gives, whatever happens to
//! them on the way.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use catamount_metamath::{Database, Metamath};
use catamount_search::{Checked, Environment, Fault, Patience, Session, StateId, Verdict};
use catamount_service::{Addresses, ConnectError, Limits, Remote, Service};
use catamount_traces::Theorem;

const DATABASE: &str = "
$c ( ) -> wff |- $. $v ph ps ch $.
wph $f wff ph $. wps $f wff ps $. wch $f wff ch $.
wi $a wff ( ph -> ps ) $.
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
${ mp.1 $e |- ph $. mp.2 $e |- ( ph -> ps ) $. ax-mp $a |- ps $. $}
${ a1i.1 $e |- ph $. a1i $p |- ( ps -> ph ) $=
  wph wps wph wi a1i.1 wph wps ax-1 ax-mp $. $}
goal $p |- ( ph -> ( ps -> ph ) ) $= wph wps ax-1 $.
";

const LIMITS: Limits = Limits { queue: 8, sessions: 4, idle: Duration::from_secs(60), threads: 2 };

fn metamath(folder: &Path, text: &str) -> Arc<dyn Environment> {
    let path = folder.join("d.mm");
    std::fs::write(&path, text).unwrap();
    Arc::new(Metamath::new(Database::open(path).unwrap()))
}

fn theorem(name: &str) -> Theorem {
    Theorem { name: name.into(), ..Theorem::default() }
}

/// A service on a thread, which ends when it is dropped, its port with it.
struct Running {
    address: String,
    stop: &'static AtomicBool,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(environment: Arc<dyn Environment>, limits: Limits, listen: &str) -> Self {
        let stop: &'static AtomicBool = Box::leak(Box::default());
        let (sender, receiver) = channel();
        let listen = listen.parse().unwrap();
        let ready = move |address| sender.send(address).unwrap();
        let service = Service::new(environment, limits);
        let thread = thread::spawn(move || service.run(listen, stop, ready).unwrap());
        Running { address: receiver.recv().unwrap(), stop, thread: Some(thread) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// What tactics come to in a session: every state is branched from, and none is asked about twice.
fn explored(environment: &dyn Environment, between: &mut dyn FnMut(usize)) -> Vec<String> {
    let mut session = environment.open(&theorem("a1i")).unwrap();
    let mut said = vec![session.root().to_owned()];
    let mut states = vec![StateId(0)];
    let mut at = 0;
    while let Some(&state) = states.get(at) {
        between(at);
        for tactic in ["ax-mp $ ph ph", "ax-mp $ ph ps", "ax-1", "nonsense"] {
            let verdict = session.apply(state, tactic).unwrap();
            said.push(format!("{at} {tactic}: {verdict:?}"));
            if let Verdict::Open { state, .. } = verdict
                && states.len() < 12
            {
                states.push(state);
            }
        }
        at += 1;
    }
    let unknown = session.apply(StateId(4000), "ax-1").unwrap_err();
    said.push(unknown.to_string().contains("4000").to_string());
    for (name, tactics) in [("goal", ["ax-1"]), ("goal", ["nonsense"]), ("a1i", ["ax-1"])] {
        let tactics = tactics.map(String::from);
        said.push(format!("{:?}", environment.check(&theorem(name), &tactics)));
    }
    said.push(format!("{:?}", environment.open(&theorem("nothing")).err()));
    said
}

#[test]
fn a_prover_elsewhere_says_what_one_here_says() {
    let folder = tempfile::tempdir().unwrap();
    let here = metamath(folder.path(), DATABASE);
    let local = explored(&*here, &mut |_| {});
    assert!(local.iter().any(|line| line.contains("Open")), "{local:#?}");

    let service = Running::start(Arc::clone(&here), LIMITS, "127.0.0.1:0");
    let addresses = Addresses::Listed(vec![service.address.clone()]);
    let remote = Remote::connect(addresses, Some(here.identity())).unwrap();
    assert_eq!(remote.identity(), here.identity());
    assert_eq!(remote.describe(), here.describe());
    assert_eq!(remote.setup(), here.setup());
    assert_eq!(explored(&remote, &mut |_| {}), local);
}

/// What a service has forgotten is found again by its tactics.
#[test]
fn what_is_forgotten_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let here = metamath(folder.path(), DATABASE);
    let local = explored(&*here, &mut |_| {});
    let limits = Limits { idle: Duration::from_millis(300), ..LIMITS };
    let service = Running::start(Arc::clone(&here), limits, "127.0.0.1:0");
    let addresses = Addresses::Listed(vec![service.address.clone()]);
    let remote = Remote::connect(addresses, None).unwrap();
    let mut forgotten = 0;
    let mut between = |at: usize| {
        if at % 4 == 2 {
            // Longer than it is kept, and than the service takes to look.
            thread::sleep(Duration::from_millis(1000));
            forgotten += 1;
        }
    };
    assert_eq!(explored(&remote, &mut between), local);
    assert!(forgotten >= 2);
}

/// The service's half of the back-pressure: it turns away what it has no room for, and the client
/// waits until there is.
#[test]
fn a_service_without_room_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let here = metamath(folder.path(), DATABASE);
    let limits = Limits { sessions: 1, queue: 1, threads: 1, ..LIMITS };
    let service = Running::start(Arc::clone(&here), limits, "127.0.0.1:0");
    let addresses = Addresses::Listed(vec![service.address.clone()]);
    let remote = Remote::connect(addresses, None).unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut session = remote.open(&theorem("goal")).unwrap();
                assert_eq!(session.apply(StateId(0), "ax-1").unwrap(), Verdict::Proved);
                let checked = remote.check(&theorem("goal"), &["ax-1".to_string()]).unwrap();
                assert!(matches!(checked, Checked::Proved { .. }));
            });
        }
    });
}

#[test]
fn another_prover_is_refused_with_its_address() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let here = metamath(folder.path(), DATABASE);
    let there = metamath(other.path(), &DATABASE.replace("goal", "other"));
    let service = Running::start(there, LIMITS, "127.0.0.1:0");
    let addresses = Addresses::Listed(vec![service.address.clone()]);
    let refused = Remote::connect(addresses, Some(here.identity())).err().unwrap();
    let ConnectError::Unusable(reason) = &refused else { panic!("{refused}") };
    assert!(reason.contains(&service.address) && reason.contains("its database is"), "{reason}");
}

/// The status line of the answer to a request for the prover's status.
fn asked(address: &str, more: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET /status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn requests_that_never_arrive_keep_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { queue: 1, threads: 1, ..LIMITS };
    let service = Running::start(metamath(folder.path(), DATABASE), limits, "127.0.0.1:0");
    let stalled: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(&service.address).unwrap();
            let head = "POST /run HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n";
            write!(stream, "{head}{{").unwrap();
            // The listener's threads take connections one at a time, or may leave one lying.
            thread::sleep(Duration::from_millis(100));
            stream
        })
        .collect();
    assert!(asked(&service.address, "").contains("200"));
    drop(stalled);
}

#[test]
fn pages_in_a_browser_are_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    let service = Running::start(metamath(folder.path(), DATABASE), LIMITS, "127.0.0.1:0");
    assert!(asked(&service.address, "Origin: http://elsewhere\r\n").contains("403"));
}

#[test]
fn as_many_theorems_are_open_as_may_be_and_none_is_found_by_counting() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { queue: 64, threads: 8, ..LIMITS };
    let service = Running::start(metamath(folder.path(), DATABASE), limits, "127.0.0.1:0");
    let open = || {
        let url = format!("http://{}/open", service.address);
        let answer = ureq::post(&url).send(r#"{"name": "goal"}"#);
        answer.ok().map(|mut answer| answer.body_mut().read_to_string().unwrap())
    };
    let opened: Vec<String> = thread::scope(|scope| {
        let asked: Vec<_> = (0..16).map(|_| scope.spawn(open)).collect();
        asked.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(opened.len(), limits.sessions);
    let session = |text: &String| {
        serde_json::from_str::<serde_json::Value>(text).unwrap()["session"].as_u64().unwrap()
    };
    let mut numbers: Vec<u64> = opened.iter().map(session).collect();
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] > 1000), "{numbers:?}");
}

/// A prover that opens nothing before it is let go.
struct Hanging(Mutex<Receiver<()>>);

impl Environment for Hanging {
    fn open(&self, _: &Theorem) -> Result<Box<dyn Session>, Fault> {
        let _ = self.0.lock().unwrap().recv();
        Err(Fault("let go".into()))
    }

    fn check(&self, _: &Theorem, _: &[String]) -> Result<Checked, Fault> {
        Err(Fault("it checks nothing".into()))
    }

    fn describe(&self) -> String {
        "a prover that hangs".into()
    }
}

/// Whoever waits for a prover that is busy can still ask how it is, and need not wait.
#[test]
fn a_busy_service_says_how_it_is_and_nobody_has_to_wait_for_it() {
    let (let_go, waits) = channel();
    let limits = Limits { threads: 1, ..LIMITS };
    let service = Running::start(Arc::new(Hanging(Mutex::new(waits))), limits, "127.0.0.1:0");
    let addresses = Addresses::Listed(vec![service.address.clone()]);
    let remote = Remote::connect(addresses, None).unwrap();
    let late = Patience {
        deadline: Some(Instant::now() + Duration::from_millis(100)),
        ..Patience::default()
    };
    let fault = remote.open_within(&theorem("t"), &late).err().unwrap();
    assert!(fault.is_late(), "{fault}");
    // The only thread that answers is at that still.
    assert!(asked(&service.address, "").contains("200"));

    let over = Patience::default();
    over.over.store(true, Ordering::SeqCst);
    let fault = remote.open_within(&theorem("t"), &over).err().unwrap();
    assert!(!fault.is_late(), "{fault}");
    drop(let_go);
}
