//! The exact binomial test behind McNemar's, accurate from one discordant pair to billions.

/// ln(n!) minus Stirling's leading terms, `ln sqrt(2 pi n) + n ln n - n`: the small part, kept
/// apart so that large factorials can be subtracted without losing it.
fn stirling_error(n: u64) -> f64 {
    if n == 0 {
        // By convention: the leading terms are never formed for zero.
        return 0.0;
    }
    let x = n as f64;
    if n < 16 {
        let log_factorial: f64 = (2..=n).map(|k| (k as f64).ln()).sum();
        return log_factorial - (0.5 * (2.0 * std::f64::consts::PI * x).ln() + x * x.ln() - x);
    }
    let r = 1.0 / (x * x);
    (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / x
}

/// `x ln(x / m) + m - x` for the deviation of `x` from its mean, without cancellation near the
/// mean.
fn deviance(x: f64, m: f64) -> f64 {
    let d = x - m;
    if d.abs() > 0.1 * (x + m) {
        return x * (x / m).ln() - d;
    }
    // x ln(x/m) with x/m = (1+v)/(1-v), v = d/(x+m): a series in odd powers of v.
    let v = d / (x + m);
    let mut sum = d * v;
    let mut power = 2.0 * x * v;
    for j in 1..200 {
        power *= v * v;
        let next = sum + power / f64::from(2 * j + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// Log-probability of `k` heads in `m` fair throws.
pub fn binomial_log_pmf(k: u64, m: u64) -> f64 {
    if k > m {
        return f64::NEG_INFINITY;
    }
    if k == 0 || k == m {
        return -(m as f64) * std::f64::consts::LN_2;
    }
    let (kf, mf) = (k as f64, m as f64);
    let rest = mf - kf;
    let half = mf / 2.0;
    stirling_error(m)
        - stirling_error(k)
        - stirling_error(m - k)
        - deviance(kf, half)
        - deviance(rest, half)
        + 0.5 * (mf / (2.0 * std::f64::consts::PI * kf * rest)).ln()
}

/// Exact two-sided McNemar p-value: the sign test on the `b + c` discordant pairs.
///
/// Twice the smaller tail of Binomial(b + c, 1/2), at most 1. No discordant pair means no evidence:
/// 1.
pub fn mcnemar(b: u64, c: u64) -> f64 {
    let (few, m) = (b.min(c), b + c);
    if b == c {
        return 1.0;
    }
    // The tail relative to its largest term, summed downwards; the ratio of neighbours is k / (m -
    // k + 1) < 1.
    let (mut tail, mut term) = (1.0, 1.0);
    for k in (1..=few).rev() {
        term *= k as f64 / (m - k + 1) as f64;
        let next = tail + term;
        if next == tail {
            break;
        }
        tail = next;
    }
    (std::f64::consts::LN_2 + binomial_log_pmf(few, m) + tail.ln()).exp().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exact integers, for as long as they fit.
    fn by_integers(b: u64, c: u64) -> f64 {
        let m = b + c;
        let mut choose = 1u128;
        let mut tail = 0u128;
        for k in 0..=b.min(c) {
            tail += choose;
            choose = choose * u128::from(m - k) / u128::from(k + 1);
        }
        (2.0 * tail as f64 / 2f64.powi(m as i32)).min(1.0)
    }

    #[test]
    fn agrees_with_exact_integers() {
        for b in 0..50 {
            for c in 0..50 {
                let (ours, exact) = (mcnemar(b, c), by_integers(b, c));
                assert!((ours / exact - 1.0).abs() < 1e-12, "{b} {c}: {ours} {exact}");
                assert_eq!(ours, mcnemar(c, b));
            }
        }
    }

    #[test]
    fn large_counts_follow_the_normal_tail() {
        // With m = 4e8 pairs and a deviation of z standard deviations, the continuity-corrected
        // normal tail is all but exact.
        let m = 400_000_000u64;
        let z = 2.0f64;
        let few = m / 2 - (z * (m as f64).sqrt() / 2.0) as u64;
        let p = mcnemar(few, m - few);
        // Two-sided tail beyond 2 standard deviations.
        assert!((p - 0.045_500_26).abs() < 2e-5, "{p}");
        assert_eq!(mcnemar(0, 10_000), 0.0, "below the smallest double, and no NaN");
        assert!(mcnemar(5_000_000, 5_000_001) > 0.999);
    }

    #[test]
    fn pmf_sums_to_one() {
        for m in [1, 7, 30, 1000] {
            let sum: f64 = (0..=m).map(|k| binomial_log_pmf(k, m).exp()).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{m}: {sum}");
        }
        assert_eq!(binomial_log_pmf(3, 2), f64::NEG_INFINITY);
        assert_eq!(binomial_log_pmf(0, 0), 0.0);
    }
}
