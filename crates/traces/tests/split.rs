//! Splits and pools.

use std::collections::HashSet;

use catamount_traces::{Share, Split, Statistics, Step, Steps, Theorem, Trace, text_key};

fn trace(name: &str, statement: &str) -> Trace {
    Trace {
        theorem: Theorem { name: name.into(), statement: statement.into(), ..Theorem::default() },
        steps: vec![Step { state: statement.into(), tactic: "t".into(), ..Step::default() }],
    }
}

/// Three hundred statements, every third of which is a renamed copy of another.
fn traces() -> Vec<Trace> {
    let word = |n: usize| ["union", "inter", "image", "preimage", "closure", "interior"][n % 6];
    (0..300)
        .map(|n| {
            let m = if n % 3 == 2 { n - 1 } else { n };
            let statement = format!(
                "theorem t{n} (x : S) : {} ({} ({} x)) = gap{}",
                word(m),
                word(m / 6),
                word(m / 36),
                "q".repeat(m + 3)
            );
            let statement = if n % 3 == 2 {
                statement.replace("(x ", "(y ").replace(" x)", " y)")
            } else {
                statement
            };
            trace(&format!("t{n}"), &statement)
        })
        .collect()
}

#[test]
fn no_theorem_and_no_near_duplicate_is_in_two_parts() {
    for split in ["rest,40,40", "0.8,0.1,0.1", "rest,0.1,0.2"] {
        let parts = split.parse::<Split>().unwrap().apply(traces(), 5, text_key).unwrap();
        let keys = |part: &[Trace]| part.iter().map(text_key).collect::<HashSet<_>>();
        let (train, valid, test) = (keys(&parts.train), keys(&parts.valid), keys(&parts.test));
        assert!(
            train.is_disjoint(&valid) && train.is_disjoint(&test) && valid.is_disjoint(&test),
            "{split}"
        );
        assert_eq!(parts.train.len() + parts.valid.len() + parts.test.len(), 300, "{split}");
        assert!(!parts.valid.is_empty() && !parts.test.is_empty());
    }
    let keys: HashSet<String> = traces().iter().map(text_key).collect();
    assert_eq!(
        keys.len(),
        200,
        "each renamed copy shares its key with its original, nothing else does"
    );
}

#[test]
fn counts_are_exact_and_the_seed_and_nothing_else_decides() {
    let split: Split = "rest,50,70".parse().unwrap();
    let parts = split.apply(traces(), 1, text_key).unwrap();
    assert_eq!((parts.train.len(), parts.valid.len(), parts.test.len()), (180, 50, 70));
    let mut shuffled = traces();
    shuffled.reverse();
    shuffled.rotate_left(77);
    let names =
        |part: &[Trace]| part.iter().map(|t| t.theorem.name.clone()).collect::<HashSet<_>>();
    let again = split.apply(shuffled, 1, text_key).unwrap();
    assert_eq!(names(&parts.test), names(&again.test));
    assert_ne!(names(&parts.test), names(&split.apply(traces(), 2, text_key).unwrap().test));
}

#[test]
fn fractions_do_not_move_theorems_when_data_is_added() {
    let split: Split = "0.6,0.2,0.2".parse().unwrap();
    let all = split.apply(traces(), 9, text_key).unwrap();
    let half = split.apply(traces().into_iter().take(150).collect(), 9, text_key).unwrap();
    assert!(
        half.test.iter().all(|trace| all.test.contains(trace))
            && half.train.iter().all(|trace| all.train.contains(trace))
    );
    assert!((40..=80).contains(&all.test.len()), "{}", all.test.len());
}

#[test]
fn impossible_splits_are_refused() {
    for text in [
        "",
        "0.9,0.1",
        "a,b,c",
        "0.9,0.9,0.1",
        "rest,rest,5",
        "-1,2,3",
        "0.5,-0.1,0.2",
        "0.5,0.2,NaN.",
    ] {
        assert!(text.parse::<Split>().is_err(), "{text}");
    }
    let split = Split { train: Share::Rest, valid: Share::Count(200), test: Share::Count(200) };
    assert!(split.apply(traces(), 1, text_key).is_err());
    let twice = vec![trace("a", "x = y"), trace("a", "y < z")];
    let error =
        "0.5,0.2,0.3".parse::<Split>().unwrap().apply(twice, 1, text_key).unwrap_err().to_string();
    assert!(error.contains("\"a\" occurs twice"), "{error}");
}

#[test]
fn the_text_key_sees_renaming_and_numerals_only() {
    let key = |name: &str, statement: &str| text_key(&trace(name, statement));
    let base = key("Foo.add", "theorem add (n m : ℕ) :  n + m < 12");
    assert_eq!(base, key("Foo.add'", "theorem add' (a b : ℕ) : a + b\n < 3"));
    assert_ne!(base, key("Foo.add", "theorem add (n m : ℕ) : n + n < 12"));
    assert_ne!(base, key("Foo.add", "theorem add (n m : ℕ) : n * m < 12"));
    assert_eq!(
        key("a", ""),
        key("b", ""),
        "without statement or state only names are left, and short names are variables"
    );
}

#[test]
fn ranges_of_steps() {
    for (text, inside, outside) in
        [("2-5", [2, 5], [1, 6]), ("3", [3, 3], [2, 4]), ("6-", [6, 999], [5, 1])]
    {
        let steps: Steps = text.parse().unwrap();
        assert_eq!(steps.to_string(), text);
        assert!(
            inside.iter().all(|n| steps.contains(*n))
                && !outside.iter().any(|n| steps.contains(*n)),
            "{text}"
        );
    }
    for text in ["", "-", "-3", "0-5", "5-2", "a", "1-2-3", "+3", "99999999999999999999999"] {
        let error = text.parse::<Steps>().unwrap_err().to_string();
        assert!(error.contains("write 3, 2-5 or 6-"), "{error}");
    }
}

#[test]
fn statistics_count() {
    let mut traces: Vec<Trace> =
        (0..10).map(|n| trace(&format!("t{n}"), &format!("p{}", "( q )".repeat(n)))).collect();
    let extra = traces[3].steps[0].clone();
    traces[3].steps.resize(12, extra);
    let statistics = Statistics::of(&traces);
    assert_eq!(
        (statistics.traces, statistics.steps, statistics.lengths[&12], statistics.duplicate_steps),
        (10, 21, 1, 11)
    );
    assert_eq!(statistics.pool("1".parse().unwrap()), 9);
    // Token lengths 1, 4, 7, 10 (twelve times), 13, ..., 28: rank 11 of 21 is 10, rank 19 is 22.
    assert_eq!(
        (statistics.states.median, statistics.states.p90, statistics.states.max),
        (10, 22, 28)
    );
    let text = statistics.to_string();
    assert!(text.contains(&format!("    1       9  {}", "#".repeat(40))), "{text}");
    assert!(text.contains("11-20       1  #####\n"), "{text}");
}
