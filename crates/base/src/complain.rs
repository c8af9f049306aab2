//! Standard error, whether or not anybody can read it.

use std::fmt;
use std::io::Write;

/// Writes to standard error. If even that cannot be written, there is nobody left to tell: a device
/// that is full, or a reader that is gone, must not decide what comes of the work (`eprintln!` of
/// the standard library panics).
pub fn complain(text: fmt::Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    /// Has this test say something in a process of its own, whose standard error is as given.
    fn succeeds(stderr: Stdio) -> bool {
        let name = "complain::tests::a_full_or_closed_standard_error_is_no_panic";
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(MARK, "1")
            .stdout(Stdio::null())
            .stderr(stderr)
            .status();
        status.unwrap().success()
    }

    const MARK: &str = "CATAMOUNT_TEST_COMPLAINS";

    #[test]
    fn a_full_or_closed_standard_error_is_no_panic() {
        if std::env::var_os(MARK).is_some() {
            super::complain(format_args!("warning\n"));
            crate::say("on the way");
            return;
        }
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert!(succeeds(full.into()));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert!(succeeds(writer.into()));
    }
}
