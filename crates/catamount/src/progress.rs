//! Progress bars with a rate and an estimate of the time left, on standard error so that results
//! can be piped.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `length` items of a kind.
pub fn bar(length: u64, kind: &str) -> ProgressBar {
    let template = format!(
        "{{bar:30}} {{pos}}/{{len}} {kind}  {{per_sec}}  {{elapsed}} + {{eta}} left  {{msg}}"
    );
    let style = ProgressStyle::with_template(&template).expect("a valid template");
    ProgressBar::new(length).with_style(style.progress_chars("█▉▊▋▌▍▎▏ "))
}
