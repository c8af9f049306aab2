//! Things that go wrong around a proof: tactics that eat time or memory, that print, broken
//! downloads, missing tools.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use catamount_lean::{Host, Lean, Options};
use catamount_search::{Environment, StateId, Verdict};

use crate::setup::{in_library, options, theorem};

fn with(workers: usize, change: impl FnOnce(&mut Options)) -> Lean {
    let mut options = Options { workers, ..options() };
    change(&mut options);
    Lean::new(options).unwrap()
}

fn one_worker(change: impl FnOnce(&mut Options)) -> Lean {
    with(1, change)
}

fn reason(verdict: Verdict) -> String {
    match verdict {
        Verdict::Rejected { reason } => reason,
        other => panic!("expected a rejection, got {other:?}"),
    }
}

/// Each round takes a while, because `repeat` calls itself: in a quick one, a quick machine runs
/// out of stack before any limit.
const ENDLESS: &str = "set_option maxHeartbeats 0 in set_option maxRecDepth 1000000 in \
                       repeat (have k : ∀ x y : Nat, x < y → y < x + 3 → y = x + 1 ∨ y = x + 2 := \
                       (by intro x y _ _; omega); clear k)";

#[test]
fn a_tactic_that_never_ends_is_stopped_and_the_session_goes_on() {
    // So many heartbeats that only the clock is left.
    let lean =
        one_worker(|o| (o.request_limit, o.heartbeats) = (Duration::from_secs(15), 100_000_000));
    let mut session = lean.open(&theorem("theorem t (p : Prop) : p → p")).unwrap();
    let Verdict::Open { state, .. } = session.apply(StateId(0), "intro h").unwrap() else {
        panic!("intro is valid")
    };
    let before = lean.process_ids();
    let why = reason(session.apply(state, ENDLESS).unwrap());
    assert!(why.starts_with("limit: no answer within 15 s"), "{why}");
    // The state was reached in a process that is gone; it is reached again in a new one.
    assert_eq!(session.apply(state, "exact h").unwrap(), Verdict::Proved);
    assert_ne!(lean.process_ids(), before);
}

#[test]
fn who_waits_for_a_tactic_that_never_ends_goes_on_at_another_worker() {
    let limits = (Duration::from_secs(30), 100_000_000);
    let lean = with(2, |o| (o.request_limit, o.heartbeats) = limits);
    lean.warm_up().unwrap();
    let swap = theorem("theorem t (p q : Prop) : p ∧ q → q ∧ p");
    let (mut slow, mut quick) = (lean.open(&swap).unwrap(), lean.open(&swap).unwrap());
    let Verdict::Open { state, .. } = quick.apply(StateId(0), "intro h").unwrap() else {
        panic!("intro is valid")
    };
    std::thread::scope(|scope| {
        let endless = scope.spawn(move || slow.apply(StateId(0), ENDLESS));
        // Until it has the worker that they share, the other one is served at once.
        let mut took = Duration::ZERO;
        while took < Duration::from_secs(1) {
            let begin = Instant::now();
            let verdict = quick.apply(state, "exact ⟨h.2, h.1⟩").unwrap();
            assert_eq!(verdict, Verdict::Proved, "the state is reached again");
            took = begin.elapsed();
        }
        assert!(!endless.is_finished(), "it was waited for");
        assert!(reason(endless.join().unwrap().unwrap()).starts_with("limit"));
    });
}

#[test]
fn a_tactic_that_eats_memory_is_stopped_and_the_session_goes_on() {
    let lean = one_worker(|o| o.memory_mb = 1000);
    let mut session = lean.open(&theorem("theorem t (p : Prop) : p → p")).unwrap();
    let hungry = "set_option maxHeartbeats 0 in set_option maxRecDepth 1000000 in \
                  exact absurd (show (List.replicate 3000000 0 ++ List.range 3000000).length = 1 \
                  by decide +kernel) (by decide)";
    let why = reason(session.apply(StateId(0), hungry).unwrap());
    assert!(why.starts_with("limit"), "{why}");
    assert_eq!(session.apply(StateId(0), "exact id").unwrap(), Verdict::Proved);
}

#[test]
fn a_tactic_that_prints_does_not_disturb_the_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let text = "\
open Lean Elab Tactic in
elab \"shout\" : tactic => do
  IO.println \"{\\\"ok\\\":true,\\\"done\\\":true,\\\"state\\\":0,\\\"goals\\\":\\\"\\\"}\"
  IO.println \"not an answer\"

theorem quiet : 1 = 1 := by
  rfl
";
    fs::write(folder.path().join("Loud.lean"), format!("import Lean\n{text}")).unwrap();
    let lean = one_worker(|o| o.root = Some(folder.path().into()));
    let mut session = lean.open(&in_library("Loud.lean", "quiet")).unwrap();
    assert!(
        matches!(session.apply(StateId(0), "shout").unwrap(), Verdict::Open { .. }),
        "printing proves nothing"
    );
    assert_eq!(session.apply(StateId(0), "shout\nrfl").unwrap(), Verdict::Proved);
}

#[test]
fn lines_that_are_no_requests_do_not_end_the_server() {
    // Without a library workers begin with what headers begin with, and stay the same processes.
    let lean = one_worker(|o| o.root = None);
    lean.warm_up().unwrap();
    let before = lean.process_ids();
    // The other end of the pipe that the server reads its requests from.
    let mut requests =
        fs::OpenOptions::new().append(true).open(format!("/proc/{}/fd/0", before[0])).unwrap();
    for nonsense in
        [&b"\xff\xfe\xfd\n"[..], b"not json\n", b"{\"cmd\":\"tac\"}\n", b"[1,2\n", b"\n"]
    {
        requests.write_all(nonsense).unwrap();
    }
    let mut session = lean.open(&theorem("theorem t : 1 = 1")).unwrap();
    assert_eq!(session.root(), "⊢ 1 = 1");
    assert_eq!(session.apply(StateId(0), "rfl").unwrap(), Verdict::Proved);
    assert_eq!(lean.process_ids(), before);
}

#[test]
fn a_module_that_is_not_there_is_named() {
    let lean = one_worker(|o| (o.root, o.imports) = (None, vec!["No.Such.Module".into()]));
    let said = lean.warm_up().unwrap_err().to_string();
    assert!(said.contains("No.Such.Module"), "{said}");
}

#[test]
fn a_worker_is_replaced_when_it_has_served_its_time() {
    let lean = one_worker(|o| o.recycle_requests = 3);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut session = lean.open(&theorem("theorem t : 1 = 1")).unwrap();
        assert_eq!(session.apply(StateId(0), "rfl").unwrap(), Verdict::Proved);
        drop(session);
        ids.extend(lean.process_ids());
    }
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn more_sessions_than_workers_share_them() {
    let lean = one_worker(|_| ());
    let mut sessions: Vec<_> = (0..3)
        .map(|n| lean.open(&theorem(&format!("theorem t : {n} + 1 = 1 + {n}"))).unwrap())
        .collect();
    for (n, session) in sessions.iter_mut().enumerate() {
        assert_eq!(session.root(), format!("⊢ {n} + 1 = 1 + {n}"));
        assert_eq!(session.apply(StateId(0), "rfl").unwrap(), Verdict::Proved);
    }
}

#[test]
fn a_damaged_download_is_refused_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let broken = |package: &std::path::Path| {
        let host = Host::Wasm { cache: Some(cache.clone()), package: Some(package.to_path_buf()) };
        Lean::new(Options { host, ..Options::default() })
            .err()
            .expect("the package is not the real one")
            .to_string()
    };
    let not_gzip = folder.path().join("garbage.tgz");
    fs::write(&not_gzip, b"this is not an archive").unwrap();
    assert!(broken(&not_gzip).contains("damaged"));
    let wrong = folder.path().join("wrong.tgz");
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(
        fs::File::create(&wrong).unwrap(),
        flate2::Compression::fast(),
    ));
    for name in ["lean.js", "lean.wasm", "lean-lib.tar.gz"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(4);
        header.set_cksum();
        archive.append_data(&mut header, format!("package/{name}"), &b"fake"[..]).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
    let said = broken(&wrong);
    assert!(said.contains("sha256") && said.contains("expected"), "{said}");
    let left: Vec<_> = fs::read_dir(&cache)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        // A node that was fetched, where the system's is too old, is whole.
        .filter(|n| n != "lock" && !n.to_string_lossy().starts_with("node-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn missing_tools_are_named_with_what_to_install() {
    const MARK: &str = "CATAMOUNT_TEST_EMPTY_PATH";
    if std::env::var_os(MARK).is_some() {
        // The child: no program can be found here.
        let folder = tempfile::tempdir().unwrap();
        let wasm = Host::Wasm { cache: Some(folder.path().join("cache")), package: None };
        let said = |host| {
            Lean::new(Options { host, ..Options::default() })
                .err()
                .expect("there are no tools")
                .to_string()
        };
        let no_node = said(wasm);
        assert!(
            no_node.contains("`node` was not found") && no_node.contains("install"),
            "{no_node}"
        );
        let no_lake = said(Host::Native { project: folder.path().into() });
        assert!(no_lake.contains("`lake` was not found") && no_lake.contains("elan"), "{no_lake}");
        let found = catamount_lean::diagnose(Some(folder.path().into()), None);
        let tools = found.iter().filter(|f| f.what != "confinement of provers");
        assert!(tools.clone().all(|f| !f.ok && !f.text.is_empty()), "{found:?}");
        return;
    }
    let name = "faults::missing_tools_are_named_with_what_to_install";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env("PATH", "")
        .env(MARK, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

/// A folder with a node that says it is of this version; asked for anything else, it is `or_else`.
fn node_of(version: &str, or_else: &str) -> tempfile::TempDir {
    let bin = tempfile::tempdir().unwrap();
    let node = bin.path().join("node");
    let text = format!(
        "#!/bin/sh\n[ \"$*\" = --version ] && echo {version} && exit\nexec {or_else} \"$@\"\n"
    );
    fs::write(&node, text).unwrap();
    fs::set_permissions(&node, fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

/// With a node but no npm, an unprepared cache cannot be filled; with an old node, npm would have
/// fetched another.
#[test]
fn a_missing_npm_is_named() {
    const MARK: &str = "CATAMOUNT_TEST_NO_NPM";
    if let Some(wanted) = std::env::var_os(MARK) {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::Wasm { cache: Some(folder.path().join("cache")), package: None };
        let said = Lean::new(Options { host, ..Options::default() })
            .err()
            .expect("there is no npm")
            .to_string();
        assert!(said.contains(wanted.to_str().unwrap()), "{said}");
        assert!(said.contains("apt install npm"), "{said}");
        return;
    }
    for (version, wanted) in
        [("v20.19.2", "`npm` was not found"), ("v18.20.8", "`node` is version v18.20.8")]
    {
        let bin = node_of(version, "false");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "faults::a_missing_npm_is_named"])
            .env("PATH", bin.path())
            .env(MARK, wanted)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "{said}");
    }
}

/// Debian 12 and Ubuntu 24.04 have node 18, on which Lean does not run: one that will do is
/// fetched.
#[test]
fn an_old_node_is_replaced_by_one_that_is_fetched() {
    const MARK: &str = "CATAMOUNT_TEST_OLD_NODE";
    if std::env::var_os(MARK).is_some() {
        let lean = one_worker(|_| ());
        let mut session = lean.open(&theorem("theorem t : 1 = 1")).unwrap();
        assert_eq!(session.apply(StateId(0), "rfl").unwrap(), Verdict::Proved);
        let node = fs::read_link(format!("/proc/{}/exe", lean.process_ids()[0])).unwrap();
        assert!(node.to_string_lossy().contains("catamount"), "{}", node.display());
        return;
    }
    let real = Command::new("sh").args(["-c", "command -v node"]).output().unwrap();
    // npm runs on it as well and must go on doing so.
    let bin = node_of("v18.20.8", String::from_utf8(real.stdout).unwrap().trim());
    let mut paths = vec![bin.path().to_path_buf()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::an_old_node_is_replaced_by_one_that_is_fetched"])
        .env("PATH", std::env::join_paths(paths).unwrap())
        .env(MARK, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}
