//! `catamount serve`, as a client meets it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A service, which ends with this.
pub struct Service {
    child: Child,
    pub address: String,
}

impl Service {
    pub fn start(args: &[&str]) -> Service {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("catamount"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("http://").next().unwrap().to_owned();
        Service { child, address }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
