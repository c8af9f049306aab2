//! What several tests share: one environment, so that two workers serve them all.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use catamount_lean::{Lean, Options, TraceReport, trace, write_bundled_library};
use catamount_traces::Theorem;

/// The bundled library, written out once.
pub fn library() -> &'static PathBuf {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("library");
        write_bundled_library(&folder).expect("the target folder can be written");
        folder
    });
    &FOLDER
}

/// Settings for tests: quick to give up, and one process for many checks.
pub fn options() -> Options {
    Options {
        root: Some(library().clone()),
        checks_per_header: 1000,
        heartbeats: 50_000,
        // A machine that does other work besides must not decide what is proved.
        check_limit: Duration::from_secs(900),
        ..Options::default()
    }
}

/// An environment with two workers.
pub fn lean() -> &'static Arc<Lean> {
    static LEAN: LazyLock<Arc<Lean>> =
        LazyLock::new(|| Arc::new(Lean::new(options()).expect("Lean is prepared")));
    &LEAN
}

/// The bundled library, traced once for all tests.
pub fn traced() -> &'static TraceReport {
    static REPORT: LazyLock<TraceReport> =
        LazyLock::new(|| trace(&options(), library(), |_| ()).expect("it can be traced"));
    &REPORT
}

/// A theorem given by its statement.
pub fn theorem(statement: &str) -> Theorem {
    Theorem { name: "t".into(), statement: statement.into(), ..Theorem::default() }
}

/// A theorem of the bundled library.
pub fn in_library(file: &str, name: &str) -> Theorem {
    Theorem { name: name.into(), file: Some(file.into()), ..Theorem::default() }
}
