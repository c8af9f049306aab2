//! The tournament: who survives, who wins, and how often chance wins.

use catamount_calibration::{Candidate, Choice, Halving, HalvingError};
use catamount_statistics::Random;

fn candidates(controls: usize, challengers: usize) -> Vec<Candidate> {
    let control = |i| Candidate { name: format!("ce-{i}"), control: true };
    let challenger = |i| Candidate { name: format!("ua-{i}"), control: false };
    (0..controls).map(control).chain((0..challengers).map(challenger)).collect()
}

/// Plays a tournament whose candidates prove theorem t with probability `rate(candidate, t)`, the
/// theorem's own luck being shared by all.
fn play(
    candidates: Vec<Candidate>,
    theorems: usize,
    seed: u64,
    rate: impl Fn(usize, usize) -> f64,
) -> (Choice, usize) {
    let mut random = Random::new(seed);
    let luck: Vec<f64> = (0..theorems).map(|_| random.uniform()).collect();
    let noise: Vec<Vec<f64>> = candidates
        .iter()
        .map(|_| (0..theorems).map(|_| 0.1 * (random.uniform() - 0.5)).collect())
        .collect();
    let mut halving = Halving::new(candidates, theorems).unwrap();
    let mut searches = 0;
    while let Some(task) = halving.ask().into_iter().next() {
        let c = task.candidate;
        let proved: Vec<bool> = task.theorems.map(|t| luck[t] + noise[c][t] < rate(c, t)).collect();
        searches += proved.len();
        halving.tell(c, &proved).unwrap();
    }
    (halving.choice().unwrap(), searches)
}

#[test]
fn a_clear_winner_wins_and_halving_is_cheaper_than_all() {
    let rate = |c: usize, _| if c == 6 { 0.5 } else { 0.3 };
    let (choice, searches) = play(candidates(4, 12), 800, 1, rate);
    assert_eq!((choice.chosen.as_str(), choice.control.starts_with("ce-")), ("ua-2", true));
    assert!(searches < 16 * 800 / 3, "{searches}");
    let winner = choice.outcomes.iter().find(|o| o.candidate.name == choice.chosen).unwrap();
    assert!(winner.theorems == 800 && winner.holm_p.unwrap() < 0.05);
    let text = serde_json::to_string(&choice).unwrap();
    assert_eq!(serde_json::from_str::<Choice>(&text).unwrap(), choice);
}

#[test]
fn among_equals_the_control_stays_nineteen_times_in_twenty() {
    let changed = (0..400)
        .filter(|&seed| play(candidates(3, 9), 300, seed, |_, _| 0.35).0.chosen.starts_with("ua"));
    let share = changed.count() as f64 / 400.0;
    assert!(share < 0.05, "{share}");
}

#[test]
fn the_best_control_survives_although_every_challenger_is_ahead() {
    let rate = |c: usize, _| if c < 3 { 0.2 + 0.01 * c as f64 } else { 0.6 };
    let (choice, _) = play(candidates(3, 13), 512, 5, rate);
    let control = choice.outcomes.iter().find(|o| o.candidate.name == choice.control).unwrap();
    assert_eq!(control.theorems, 512, "searched to the end");
    assert!(choice.chosen.starts_with("ua"));
}

#[test]
fn a_challenger_that_is_ahead_by_noise_only_does_not_win() {
    let mut halving = Halving::new(candidates(1, 1), 40).unwrap();
    let ahead: Vec<bool> = (0..40).map(|t| t < 14).collect();
    let behind: Vec<bool> = (0..40).map(|t| t < 10).collect();
    halving.tell(0, &behind).unwrap();
    assert_eq!(halving.choice(), None, "one candidate is still to be searched");
    halving.tell(1, &ahead).unwrap();
    let choice = halving.choice().unwrap();
    assert_eq!(choice.chosen, "ce-0");
    let outcome = &choice.outcomes[1];
    assert!(outcome.proved == 14 && (outcome.holm_p.unwrap() - 0.125).abs() < 1e-12);
}

#[test]
fn bad_input_is_refused() {
    assert_eq!(Halving::new(candidates(1, 1), 0).unwrap_err(), HalvingError::NoTheorems);
    assert_eq!(Halving::new(candidates(0, 2), 9).unwrap_err(), HalvingError::NoControl);
    let twice = [candidates(1, 1), candidates(0, 1)].concat();
    assert_eq!(Halving::new(twice, 9).unwrap_err(), HalvingError::Twice("ua-0".into()));
    let mut halving = Halving::new(candidates(1, 1), 9).unwrap();
    assert!(halving.tell(0, &[true]).is_err() && halving.tell(7, &[true; 9]).is_err());
    // A pool that is too small to halve is searched whole, once.
    let small = Halving::new(candidates(2, 6), 20).unwrap();
    assert!(small.ask().len() == 8 && small.ask().iter().all(|task| task.theorems == (0..20)));
}
