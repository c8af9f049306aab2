//! Workers killed at random moments during evaluations by every strategy: the final table does not
//! change.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use catamount_evaluate::log::{Outcome, Record};
use catamount_lean::{Lean, Options};
use catamount_search::{Environment, StrategyKind, Stream};

use crate::search::evaluate;
use crate::setup::{lean, options};

/// One strategy after another.
fn table(lean: &Arc<dyn Environment>) -> Vec<Vec<Record>> {
    StrategyKind::ALL.map(|strategy| evaluate(lean, strategy, 3)).to_vec()
}

/// An environment whose processes can be told from those of other tests by what they import.
fn marked(imports: &[&str]) -> Arc<dyn Environment> {
    let imports = imports.iter().map(|s| s.to_string()).collect();
    Arc::new(Lean::new(Options { imports, ..options() }).unwrap())
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

    let disturbed = marked(&["Init", "Init.Data.Bool"]);
    let killed = AtomicUsize::new(0);
    let tables = thread::scope(|scope| {
        scope.spawn(|| kill_some(&killed));
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
fn kill_some(killed: &AtomicUsize) {
    let stream = Stream::new(std::process::id().into());
    for n in 0.. {
        if killed.load(Ordering::Relaxed) == KILLS {
            return;
        }
        thread::sleep(Duration::from_secs_f64(0.5 + 3.0 * stream.uniform(2 * n)));
        let victims = children("Init.Data.Bool");
        if let Some(pid) = victims.get((stream.uniform(2 * n + 1) * victims.len() as f64) as usize)
        {
            // SAFETY: the process was a child of this one a moment ago; if it has just been
            // replaced, nothing is hit.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
            killed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
