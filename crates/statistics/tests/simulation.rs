//! A planted difference is found, and no difference is called one at the nominal rate at most.

use catamount_statistics::{Comparison, Random, Theorem, bootstrap, wilson};

const THEOREMS: usize = 458;

/// Cells that solve theorem i with probability `easy(i)`, the second `gain` more often.
fn pairs(random: &mut Random, gain: f64) -> Vec<(bool, bool)> {
    (0..THEOREMS)
        .map(|_| {
            // Most theorems are hopeless or easy, as in practice; only those between can differ.
            let u = random.uniform();
            let p = if u < 0.6 {
                0.01
            } else if u < 0.75 {
                0.97
            } else {
                0.2 + 0.5 * random.uniform()
            };
            (
                random.uniform() < p,
                random.uniform() < (p + gain * f64::from(u >= 0.75) / 0.25).min(1.0),
            )
        })
        .collect()
}

#[test]
fn one_seed_has_the_nominal_size_and_covers() {
    let mut random = Random::new(20);
    let (runs, truth) = (4000, 0.0);
    let (mut rejected, mut covered) = (0, 0);
    for _ in 0..runs {
        let found = Comparison::of_pairs(pairs(&mut random, 0.0));
        rejected += u32::from(found.p < 0.05);
        covered += u32::from((found.ci_low..=found.ci_high).contains(&truth));
    }
    let (size, coverage) =
        (f64::from(rejected) / f64::from(runs), f64::from(covered) / f64::from(runs));
    // The exact test is conservative; three standard errors of 4000 runs are about 0.01.
    assert!((0.015..0.06).contains(&size), "size {size}");
    assert!((0.935..0.975).contains(&coverage), "coverage {coverage}");
}

#[test]
fn a_planted_difference_is_found() {
    let mut random = Random::new(21);
    let runs = 500;
    let (mut found, mut gains) = (0, 0.0);
    for _ in 0..runs {
        let ours = Comparison::of_pairs(pairs(&mut random, 0.06));
        found += u32::from(ours.p < 0.05 && ours.gain_pp > 0.0);
        gains += ours.gain_pp / f64::from(runs);
    }
    assert!(f64::from(found) / f64::from(runs) > 0.85, "{found} of {runs}");
    assert!((gains - 6.0).abs() < 0.4, "mean gain {gains}");
}

/// Five seeds of cells that differ from theorem to theorem, by luck of training, but not on
/// average.
fn clustered(random: &mut Random) -> Vec<Theorem> {
    (0..120)
        .map(|_| {
            let (first, second) = if random.uniform() < 0.5 { (0.8, 0.15) } else { (0.15, 0.8) };
            let mut theorem = Theorem { seeds: 5, ..Theorem::default() };
            for _ in 0..5 {
                let (a, b) = (random.uniform() < first, random.uniform() < second);
                theorem.b += u64::from(b && !a);
                theorem.c += u64::from(a && !b);
            }
            theorem
        })
        .collect()
}

#[test]
fn pooled_seeds_keep_the_nominal_size_where_naive_pooling_does_not() {
    let mut random = Random::new(22);
    let runs = 2000;
    let (mut pooled, mut naive, mut covered) = (0, 0, 0);
    for _ in 0..runs {
        let theorems = clustered(&mut random);
        let ours = Comparison::of_theorems(&theorems).unwrap();
        pooled += u32::from(ours.p < 0.05);
        covered += u32::from(ours.ci_low <= 0.0 && ours.ci_high >= 0.0);
        naive += u32::from(Comparison::of_counts(600, ours.b, ours.c).unwrap().p < 0.05);
    }
    let share = |k: u32| f64::from(k) / f64::from(runs);
    assert!((0.03..0.065).contains(&share(pooled)), "pooled {}", share(pooled));
    assert!((0.93..0.97).contains(&share(covered)), "coverage {}", share(covered));
    assert!(share(naive) > 0.15, "naive pooling should show why it is not used: {}", share(naive));
}

#[test]
fn one_seed_pooled_is_the_plain_comparison() {
    let mut random = Random::new(23);
    let pairs = pairs(&mut random, 0.05);
    let theorems: Vec<Theorem> = pairs
        .iter()
        .map(|&(a, b)| Theorem { b: u64::from(b && !a), c: u64::from(a && !b), seeds: 1 })
        .collect();
    let (plain, pooled) =
        (Comparison::of_pairs(pairs), Comparison::of_theorems(&theorems).unwrap());
    assert_eq!((plain.n, plain.b, plain.c), (pooled.n, pooled.b, pooled.c));
    for (x, y) in [
        (plain.gain_pp, pooled.gain_pp),
        (plain.ci_low, pooled.ci_low),
        (plain.ci_high, pooled.ci_high),
        (plain.p, pooled.p),
    ] {
        assert!((x - y).abs() < 1e-9, "{plain:?} {pooled:?}");
    }
    let impossible = [Theorem { b: 1, c: 1, seeds: 1 }];
    assert!(Comparison::of_theorems(&impossible).is_err());
    assert_eq!(Comparison::of_theorems(&[]).unwrap().p, 1.0);
}

/// Three seeds with splits of their own: a theorem is held out by some of them, and what it takes
/// to prove it is common to its seeds. The second cell gains `gain` on theorems that can differ.
fn own_splits(random: &mut Random, gain: f64) -> Vec<Theorem> {
    let mut theorems = Vec::new();
    while theorems.len() < 300 {
        let (ease, differs) = (random.uniform(), random.uniform() < 0.3);
        let luck = if random.uniform() < 0.5 { 0.25 } else { -0.25 };
        let mut theorem = Theorem::default();
        for _ in 0..3 {
            if random.uniform() > 0.4 {
                continue;
            }
            let (first, second) = match differs {
                true => (0.5 - luck, 0.5 + luck + gain / 0.3),
                false => (ease, ease),
            };
            // Where nothing differs both cells share their luck.
            let u = random.uniform();
            let v = if differs { random.uniform() } else { u };
            let (a, b) = (u < first, v < second);
            theorem.seeds += 1;
            theorem.b += u64::from(b && !a);
            theorem.c += u64::from(a && !b);
        }
        if theorem.seeds > 0 {
            theorems.push(theorem);
        }
    }
    theorems
}

/// The interval from the theorems' variance against the bootstrap over theorems: both cover, and
/// the first is the one that is used, because it needs no resampling and never covers less.
#[test]
fn theorems_with_different_numbers_of_seeds_are_covered() {
    for (seed, gain) in [(25, 0.0), (26, 0.05)] {
        let mut random = Random::new(seed);
        let runs = 1000;
        let (mut covered, mut resampled, mut rejected) = (0, 0, 0);
        for run in 0..runs {
            let theorems = own_splits(&mut random, gain);
            let found = Comparison::of_theorems(&theorems).unwrap();
            covered += u32::from((found.ci_low..=found.ci_high).contains(&(100.0 * gain)));
            rejected += u32::from(found.p < 0.05);
            // Resampled theorems weigh as many searches as they have: the mean of d over the mean
            // number of searches.
            let searches = theorems.iter().map(|t| t.seeds as f64).sum::<f64>();
            let mean = searches / theorems.len() as f64;
            let values: Vec<f64> =
                theorems.iter().map(|t| (t.b as f64 - t.c as f64) / mean).collect();
            let boot = bootstrap(&values, 200, run).unwrap();
            resampled += u32::from((boot.low..=boot.high).contains(&gain));
        }
        let share = |k: u32| f64::from(k) / runs as f64;
        assert!((0.93..0.975).contains(&share(covered)), "gain {gain}: {}", share(covered));
        assert!((0.915..0.975).contains(&share(resampled)), "gain {gain}: {}", share(resampled));
        assert!(share(covered) >= share(resampled) - 0.01);
        match gain {
            0.0 => assert!((0.03..0.065).contains(&share(rejected)), "{}", share(rejected)),
            _ => assert!(share(rejected) > 0.3, "{}", share(rejected)),
        }
    }
}

#[test]
fn an_interval_ends_where_gains_do() {
    let all = Comparison::of_counts(3, 3, 0).unwrap();
    assert_eq!((all.gain_pp, all.ci_high), (100.0, 100.0));
    let none = Comparison::of_counts(3, 0, 2).unwrap();
    assert!(none.ci_low == -100.0 && none.ci_high < 100.0);
    let pooled = Comparison::of_theorems(&[Theorem { b: 4, c: 0, seeds: 4 }]).unwrap();
    assert_eq!((pooled.ci_low, pooled.ci_high), (-95.9963984540054, 100.0));
}

#[test]
fn wilson_and_bootstrap_cover() {
    let mut random = Random::new(24);
    let (runs, n, p) = (600, 200usize, 0.22);
    let (mut wilson_covers, mut bootstrap_covers) = (0, 0);
    for run in 0..runs {
        let solved: Vec<f64> = (0..n).map(|_| f64::from(u8::from(random.uniform() < p))).collect();
        let rate = wilson(solved.iter().sum(), n as u64);
        wilson_covers += u32::from((rate.low..=rate.high).contains(&p));
        let boot = bootstrap(&solved, 400, run).unwrap();
        bootstrap_covers += u32::from((boot.low..=boot.high).contains(&p));
    }
    for covers in [wilson_covers, bootstrap_covers] {
        let share = f64::from(covers) / runs as f64;
        assert!((0.915..0.98).contains(&share), "{share}");
    }
}
