//! Where the time goes, as a table.

use std::collections::BTreeMap;

use catamount_cuda::Timing;

/// Every kernel of what took `seconds` unprofiled. While a profile is taken nothing runs beside
/// anything else and every kernel is waited for, so that the shares of a step may add up to more
/// than it, and those of small kernels are too large by a few microseconds a launch.
pub fn print_profile(what: &str, timings: &BTreeMap<String, Timing>, seconds: f64) {
    let total: f64 = timings.values().map(|t| t.milliseconds).sum();
    let mut rows: Vec<_> = timings.iter().collect();
    rows.sort_by(|a, b| b.1.milliseconds.total_cmp(&a.1.milliseconds));
    println!("profile | {what} | {:.2} ms unprofiled, {total:.2} ms in kernels", seconds * 1e3);
    println!("| kernel | launches | ms | share of the step |\n|---|---|---|---|");
    for (name, t) in rows {
        let share = t.milliseconds / (10.0 * seconds);
        println!("| `{name}` | {} | {:.3} | {share:.1} % |", t.count, t.milliseconds);
    }
}
