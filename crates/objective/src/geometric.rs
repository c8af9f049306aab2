//! The closed form behind `pass` and `ua`: something of success probability x is tried up to K
//! times.
//!
//! With c = (1 - x)(1 - q), J = x (1 - c^K) / (1 - c). For q = 0 this is F(x) = 1 - (1 - x)^K and
//! its elasticity is the paper's H_F. K may be real: UA uses the continuous extension.

/// log J and d log J / d log x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempts {
    pub log_success: f64,
    pub elasticity: f64,
}

/// Below this x is 0 next to any quantity it is added to, and the limits below are exact to the
/// last bit.
const VANISHING: f64 = -690.0;

pub(crate) fn attempts(log_x: f64, tries: f64, absorption: f64) -> Attempts {
    let q = absorption;
    if log_x < VANISHING {
        // Success is one lucky try out of those that absorption leaves: J = x * sum of (1 - q)^j,
        // and the elasticity is 1.
        let expected = if q > 0.0 { -(tries * (-q).ln_1p()).exp_m1() / q } else { tries };
        return Attempts { log_success: log_x + expected.ln(), elasticity: 1.0 };
    }
    let (x, miss) = (log_x.exp(), -log_x.exp_m1());
    let stop = x + q * miss; // 1 - c, without cancellation
    // log c; accurate for x near 0 (log1p) as for x near 1 (log of a tiny miss).
    let log_c = if x < 0.5 { (-x).ln_1p() } else { miss.ln() } + (-q).ln_1p();
    let all_missed = (tries * log_c).exp(); // c^K
    let any = -(tries * log_c).exp_m1(); // 1 - c^K
    let failure = (q * miss + x * all_missed) / stop;
    let log_success = if failure < 0.5 { (-failure).ln_1p() } else { log_x + any.ln() - stop.ln() };
    // (1 - q) x K c^(K-1) / (1 - c^K) + q / (1 - c): every term positive.
    let last_try = if tries == 1.0 { 1.0 } else { ((tries - 1.0) * log_c).exp() };
    let elasticity = (1.0 - q) * x * tries * last_try / any + q / stop;
    Attempts { log_success, elasticity }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// lem:HF: H_F(x) = N / sum over j < N of (1 - x)^-j.
    #[test]
    fn elasticity_is_the_papers_h_f() {
        for x in [1e-9f64, 0.01, 0.3, 0.9] {
            for n in [1u32, 2, 7, 64] {
                let sum: f64 = (0..n).map(|j| (1.0 - x).powi(-(j as i32))).sum();
                let expected = f64::from(n) / sum;
                let got = attempts(x.ln(), f64::from(n), 0.0).elasticity;
                assert!((got - expected).abs() < 1e-12 * expected, "x={x} N={n}: {got} {expected}");
            }
        }
    }

    #[test]
    fn the_vanishing_branch_joins_the_general_one() {
        for q in [0.0, 0.02] {
            let (above, below) =
                (attempts(VANISHING + 1e-9, 50.0, q), attempts(VANISHING - 1e-9, 50.0, q));
            assert!((above.log_success - below.log_success).abs() < 1e-8);
            assert!((above.elasticity - below.elasticity).abs() < 1e-12);
        }
    }

    #[test]
    fn a_certain_tactic_is_certain() {
        let sure = attempts(0.0, 10.0, 0.0);
        assert_eq!((sure.log_success, sure.elasticity), (0.0, 0.0));
        assert_eq!(attempts(0.0, 1.0, 0.0).elasticity, 1.0);
    }
}
