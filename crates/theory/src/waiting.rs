//! The waiting times behind the retry surrogate, from their definition: T_t is geometric, S_L their
//! sum (eq:retry_surrogate_again). Plain convolution, sharing nothing with the objectives' own
//! code, so that identities checked with it are really checked.

/// P(T_1 + ... = n) for n = 0, ..., `last`, for independent geometric waiting times.
pub(crate) fn sum_of_waits(p: &[f64], last: usize) -> Vec<f64> {
    let mut sum = vec![0.0; last + 1];
    sum[0] = 1.0;
    for &p in p {
        let before = sum;
        sum = vec![0.0; last + 1];
        for (already, &mass) in before.iter().enumerate() {
            let mut wait = p;
            for slot in &mut sum[already + 1..] {
                *slot += mass * wait;
                wait *= 1.0 - p;
            }
        }
    }
    sum
}

/// P(T_1 + ... <= n) for n = 0, ..., `last`.
pub(crate) fn done_by(p: &[f64], last: usize) -> Vec<f64> {
    sum_of_waits(p, last)
        .into_iter()
        .scan(0.0, |total, mass| {
            *total += mass;
            Some(*total)
        })
        .collect()
}

/// h(p, k): the weight of a single tactic with k attempts of its own (eq:mf_local_criticality).
pub(crate) fn local_criticality(p: f64, k: f64) -> f64 {
    k * p * (1.0 - p).powf(k - 1.0) / (1.0 - (1.0 - p).powf(k))
}
