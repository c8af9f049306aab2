//! How many Lean processes this machine has room for.

use std::{fs, thread};

use crate::options::Options;

/// Where a container's limit on memory stands, in bytes, if it has one.
const LIMITS: [&str; 2] =
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/// As many workers as there are processors, as far as memory holds what each may come to.
pub fn workers_here() -> usize {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let limits = LIMITS.map(|path| fs::read_to_string(path).unwrap_or_default());
    workers(processors, memory_mb(&meminfo, &limits))
}

fn workers(processors: usize, memory_mb: Option<u64>) -> usize {
    let each = Options::default().recycle_mb;
    let fit = memory_mb.map_or(processors, |mb| usize::try_from(mb / each).unwrap_or(usize::MAX));
    processors.min(fit).max(1)
}

/// Memory that may still be taken, in MiB; none where nothing says.
fn memory_mb(meminfo: &str, limits: &[String]) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    let free = kib.map(|kib| kib >> 10);
    // `max`, for none, is no number.
    let limits = limits.iter().filter_map(|text| text.trim().parse::<u64>().ok());
    limits.map(|bytes| bytes >> 20).chain(free).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_as_many_as_processors_and_memory_allow() {
        let meminfo = "MemTotal:  65536000 kB\nMemAvailable:   33554432 kB\n";
        let free = |limit: &str| memory_mb(meminfo, &[limit.to_string(), String::new()]);
        assert_eq!([free("max\n"), free("4294967296\n")], [Some(32768), Some(4096)]);
        assert_eq!(memory_mb("", &[]), None);
        assert_eq!([workers(16, free("max")), workers(64, free("max"))], [16, 17]);
        assert_eq!([workers(16, Some(100)), workers(16, None)], [1, 16]);
    }
}
