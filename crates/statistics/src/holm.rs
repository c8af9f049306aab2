//! Holm's correction for a family of tests.

/// Holm-adjusted p-values, in the order given: comparing them with 0.05 keeps the chance of any
/// false alarm in the family below 5 %, whatever the dependence between tests. A value that is not
/// a number stays one and is no member of the family.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).filter(|&i| !p[i].is_nan()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut adjusted = vec![f64::NAN; p.len()];
    let mut floor = 0.0f64;
    for (rank, &i) in order.iter().enumerate() {
        floor = floor.max((p[i] * (order.len() - rank) as f64).min(1.0));
        adjusted[i] = floor;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_down_and_stays_monotone() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (ours, by_hand) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((ours - by_hand).abs() < 1e-15, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        let with_gap = holm(&[0.02, f64::NAN, 0.5]);
        assert!(with_gap[0] == 0.04 && with_gap[1].is_nan() && with_gap[2] == 0.5);
        assert!(holm(&[]).is_empty());
    }
}
