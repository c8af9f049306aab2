//! Validates a file of traces in any format and prints its statistics; with a second name, writes
//! it there in that format: `cargo run --release -p catamount-traces --example trace_report -- IN
//! [OUT]`

use std::path::Path;

use catamount_traces::{read_any, validate, write_any};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output @ ..] = arguments.as_slice() else {
        return Err("usage: trace_report IN [OUT]".into());
    };
    let report = validate(Path::new(input))?;
    print!("{report}");
    if let Some(output) = output.first() {
        let format = write_any(Path::new(output), &read_any(Path::new(input))?.traces)?;
        println!("written to {output} as {format}");
    }
    if report.is_valid() { Ok(()) } else { Err("the file cannot be used as it is".into()) }
}
