//! The live bar on the terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar with rate and time left; nothing where standard error is no terminal or nobody wants one.
pub(crate) fn bar(
    show: bool,
    name: &str,
    unit: &str,
    position: usize,
    total: usize,
) -> ProgressBar {
    if !show {
        return ProgressBar::hidden();
    }
    let template = format!(
        "{{prefix}} {{wide_bar}} {{pos}}/{{len}} {unit} · {{per_sec}} · {{eta}} left{{msg}}"
    );
    let style =
        ProgressStyle::with_template(&template).expect("a fixed template").progress_chars("━╸ ");
    let bar = ProgressBar::new(total as u64).with_style(style).with_prefix(name.to_owned());
    bar.set_position(position as u64);
    // What an earlier process did says nothing about this one's speed.
    bar.reset_eta();
    bar
}
