//! A real browser without a window.
//!
//! Debian's `chromium`, or the program named by `CATAMOUNT_BROWSER`; without one there is nothing
//! to be tried, and the tests that ask for it fail.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The browser of this machine, which must have one.
pub fn browser() -> PathBuf {
    if let Some(named) = std::env::var_os("CATAMOUNT_BROWSER") {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .flat_map(|dir| ["chromium", "chromium-browser", "google-chrome"].map(|n| dir.join(n)))
        .find(|p| p.is_file())
        .expect("a browser: apt install chromium, or set CATAMOUNT_BROWSER")
}

fn run(browser: &Path, profile: &Path, arguments: &[String]) -> Output {
    Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--virtual-time-budget=8000",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .output()
        .unwrap_or_else(|e| panic!("cannot run {}: {e}", browser.display()))
}

/// The DOM of a page once its scripts have run.
pub fn dom(browser: &Path, address: &str, profile: &Path) -> String {
    let output = run(browser, profile, &["--dump-dom".into(), address.into()]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A picture of the top of a page.
///
/// A window is never narrower than some 500 pixels, so the page stands in a frame of its own width.
pub fn picture(browser: &Path, page: &Path, png: &Path, size: (u32, u32), profile: &Path) {
    let (width, height) = size;
    let frame = page.with_extension("frame.html");
    let inside = format!(
        "<!doctype html><style>body{{margin:0}}</style><iframe \
         style=\"width:{width}px;height:{height}px;border:0\" src=\"{}\"></iframe>",
        page.file_name().unwrap_or_default().to_string_lossy()
    );
    std::fs::write(&frame, inside).unwrap();
    let png = std::path::absolute(png).unwrap();
    std::fs::create_dir_all(png.parent().unwrap()).unwrap();
    let arguments = [
        format!("--screenshot={}", png.display()),
        format!("--window-size={width},{height}"),
        format!("file://{}", frame.display()),
    ];
    let output = run(browser, profile, &arguments);
    assert!(png.is_file(), "{}", String::from_utf8_lossy(&output.stderr));
}
