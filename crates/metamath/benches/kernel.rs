//! Kernel applications per second.

fn main() {}
