//! The program `catamount`: the command line in a process of its own.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(catamount::command_line(std::env::args_os().collect()))
}
