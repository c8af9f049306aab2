//! The command line, for the `catamount` command that the package installs.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Does what the arguments say, of which the first is the program's name, and returns the exit
/// code; 101 after a panic, as a program of Rust's does.
#[pyfunction]
pub fn command_line(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| std::panic::catch_unwind(|| catamount::command_line(arguments)).unwrap_or(101))
}
