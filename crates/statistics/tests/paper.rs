//! The paper's own counts give the paper's gains, intervals and p-values.

use catamount_statistics::Comparison;

/// strategy, N, n, b, c, gain, low, high, p as printed.
type Row =
    (&'static str, u64, u64, u64, u64, &'static str, &'static str, &'static str, &'static str);

const ROWS: [Row; 8] = [
    ("Pass@N", 16, 458, 10, 1, "+2.0", "0.5", "3.4", "0.012"),
    ("Pass@N", 64, 458, 28, 8, "+4.4", "1.8", "6.9", "0.001"),
    ("Pass@N", 256, 408, 29, 12, "+4.2", "1.1", "7.2", "0.012"),
    ("BFS", 16, 458, 28, 8, "+4.4", "1.8", "6.9", "0.001"),
    ("BFS", 64, 458, 34, 13, "+4.6", "1.7", "7.5", "0.003"),
    ("BFS", 256, 407, 37, 9, "+6.9", "3.6", "10.1", "<0.001"),
    ("Pass@N", 1024, 57, 6, 1, "+8.8", "-0.3", "17.9", "0.125"),
    ("BFS", 1024, 56, 5, 2, "+5.4", "-3.9", "14.6", "0.453"),
];

#[test]
fn every_row_of_the_sweep() {
    for (strategy, budget, n, b, c, gain, low, high, p) in ROWS {
        let ours = Comparison::of_counts(n, b, c).unwrap();
        let text = |p: f64| if p < 0.0005 { "<0.001".to_owned() } else { format!("{p:.3}") };
        assert_eq!(
            [
                format!("{:+.1}", ours.gain_pp),
                format!("{:.1}", ours.ci_low),
                format!("{:.1}", ours.ci_high),
                text(ours.p)
            ],
            [gain, low, high, p],
            "{strategy} at {budget}: {ours:?}"
        );
    }
}

#[test]
fn pairs_and_counts_agree() {
    let pairs = (0..407).map(|i| match i {
        0..37 => (false, true),
        37..46 => (true, false),
        _ => (i % 3 == 0, i % 3 == 0),
    });
    assert_eq!(Comparison::of_pairs(pairs), Comparison::of_counts(407, 37, 9).unwrap());
}

#[test]
fn impossible_counts_are_refused() {
    assert!(Comparison::of_counts(5, 4, 2).unwrap_err().to_string().contains("n = 5"));
    assert!(Comparison::of_counts(5, u64::MAX, 2).is_err());
    let empty = Comparison::of_counts(0, 0, 0).unwrap();
    assert_eq!((empty.p, empty.ci_low, empty.ci_high), (1.0, -100.0, 100.0));
}

#[test]
fn keys_of_the_json() {
    let value = serde_json::to_value(Comparison::of_counts(458, 10, 1).unwrap()).unwrap();
    for key in ["n", "b", "c", "gain_pp", "ci_low", "ci_high", "p"] {
        assert!(value[key].is_number(), "{key}");
    }
}
