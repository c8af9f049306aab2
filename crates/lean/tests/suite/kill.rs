//! Workers killed at random moments during evaluations by every strategy: the final table does not
//! change.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use catamount_evaluate::log::{Outcome, Record};
use catamount_lean::{Lean, Options};
use catamount_search::{Checked, Environment, StrategyKind, Stream};

use crate::search::evaluate;
use crate::setup::{lean, options, theorem};

/// One strategy after another.
fn table(lean: &Arc<dyn Environment>) -> Vec<Vec<Record>> {
    StrategyKind::ALL.map(|strategy| evaluate(lean, strategy, 3)).to_vec()
}

/// Server processes that have this process as their parent and `marker` in their command line.
fn children(marker: &str) -> Vec<i32> {
    let me = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.file_name().to_string_lossy().parse::<i32>().ok())
        .filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = stat
                .rsplit(')')
                .next()
                .and_then(|s| s.split_whitespace().nth(1))
                .and_then(|p| p.parse::<u32>().ok());
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            parent == Some(me) && String::from_utf8_lossy(&command).contains(marker)
        })
        .collect()
}

#[test]
fn killing_workers_at_random_moments_changes_no_result() {
    let calm = table(&(lean().clone() as Arc<dyn Environment>));
    let count = |outcome| calm.iter().flatten().filter(|r| r.outcome == outcome).count();
    assert!(
        count(Outcome::Proved) > 0 && count(Outcome::Budget) > 0 && count(Outcome::Error) == 0,
        "{calm:#?}"
    );

    let workers = Arc::new(Lean::new(options()).unwrap());
    let disturbed = workers.clone() as Arc<dyn Environment>;
    let killed = AtomicUsize::new(0);
    let tables = thread::scope(|scope| {
        scope.spawn(|| kill_some(&workers, &killed));
        let mut tables = Vec::new();
        while killed.load(Ordering::Relaxed) < KILLS {
            tables.push(table(&disturbed));
        }
        tables
    });
    for table in tables {
        assert_eq!(table, calm);
    }
}

/// How many workers are killed.
const KILLS: usize = 3;

/// Kills workers, whatever they are doing, one at a time and after waits of random length.
fn kill_some(workers: &Lean, killed: &AtomicUsize) {
    let stream = Stream::new(std::process::id().into());
    for n in 0.. {
        if killed.load(Ordering::Relaxed) == KILLS {
            return;
        }
        thread::sleep(Duration::from_secs_f64(0.5 + 3.0 * stream.uniform(2 * n)));
        let victims = workers.process_ids();
        if let Some(pid) = victims.get((stream.uniform(2 * n + 1) * victims.len() as f64) as usize)
        {
            let pid = i32::try_from(*pid).unwrap();
            // SAFETY: the process was a child of this one a moment ago; if it has just been
            // replaced, nothing is hit.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            killed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A judge that is killed while it has proofs before it is replaced, and says what the first would
/// have said.
#[test]
fn killing_the_judge_changes_no_verdict() {
    let imports = ["Init", "Init.Data.Option"].map(String::from).to_vec();
    let lean = Lean::new(Options { imports, ..options() }).unwrap();
    let (good, bad) = (theorem("theorem t (p : Prop) : p → p"), theorem("theorem t : False"));
    let terms = lean.terms(&good, &["exact id".into()]).unwrap().unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut killed = Vec::new();
            // One proof may cost so many judges.
            while killed.len() < 2 && !done.load(Ordering::Relaxed) {
                let judges = children("Init.Data.Option").into_iter().filter(|pid| is_judge(*pid));
                for pid in judges.filter(|pid| !killed.contains(pid)).take(1).collect::<Vec<_>>() {
                    // SAFETY: as above.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                    killed.push(pid);
                }
                thread::sleep(Duration::from_millis(20));
            }
            killed.len()
        });
        while !killer.is_finished() {
            assert!(matches!(lean.judge(&good, &terms).unwrap(), Checked::Proved { .. }));
            assert!(matches!(lean.judge(&bad, &terms).unwrap(), Checked::Refused { .. }));
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(killer.join().unwrap(), 2);
    });
}

/// By the program that it was started with.
fn is_judge(pid: i32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command).contains(r#""boot":"Judge""#)
}
