//! The part of the harness that every test run affords: some inputs for every target, and some
//! hundred verdicts.

use std::path::Path;
use std::time::Instant;

use catamount_hostile::fuzz;
use catamount_hostile::target::{NAMES, Target};
use catamount_hostile::verdicts::{Part, TOY, compare};

#[test]
fn no_input_makes_a_parser_panic_or_hang() {
    for name in NAMES {
        let folder = tempfile::tempdir().unwrap();
        let mut target = Target::new(name, folder.path()).unwrap();
        assert!(!target.seeds.is_empty(), "{name}");
        for number in 0..target.share as u64 * 3 {
            let bytes = fuzz::input(&target, number);
            let began = Instant::now();
            let outcome = fuzz::read(&mut target, &bytes);
            assert_eq!(outcome, Ok(()), "`fuzz show {name} {number}` prints the input");
            assert!(began.elapsed() < fuzz::LONGEST, "{name} {number}");
        }
    }
}

/// A seed that its reader refuses at once is no seed: formats grow, and mutations of what is not
/// read any more try nothing.
#[test]
fn seeds_are_of_todays_formats() {
    let folder = tempfile::tempdir().unwrap();
    let first = |name: &str| {
        let place = folder.path().join(name);
        std::fs::create_dir_all(&place).unwrap();
        (Target::new(name, &place).unwrap().seeds.swap_remove(0), place)
    };
    let (_, place) = first("log");
    catamount_evaluate::Log::read(&place.join("cell.jsonl")).unwrap();
    let (terms, _) = first("terms");
    catamount_lean::doors::terms(std::str::from_utf8(&terms).unwrap()).unwrap();
    let (answer, _) = first("wire");
    assert!(catamount_lean::doors::answer(&answer, "7"));
    let (recipe, place) = first("recipe");
    let path = place.join("recipe.toml");
    std::fs::write(&path, recipe).unwrap();
    catamount_lean::Recipe::open(&path.to_string_lossy()).unwrap();
    let (lake, place) = first("lake");
    std::fs::write(place.join("lake-manifest.json"), lake).unwrap();
    assert_eq!(catamount_lean::doors::packages(&place), 1);
    for (name, seed) in [("olean", "valid"), ("scores", "valid")] {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
        let bytes = std::fs::read(seeds.join(seed)).unwrap();
        let path = folder.path().join("input.parquet");
        match name {
            "olean" => drop(catamount_lean::doors::compiled(bytes).unwrap()),
            _ => {
                std::fs::write(&path, bytes).unwrap();
                catamount_traces::parquet::read_scores(&path).unwrap();
            }
        }
    }
}

#[test]
fn verdicts_are_those_of_metamath() {
    for part in Part::ALL {
        let compared = compare(part, 150, &[TOY.to_owned()]).unwrap();
        assert_eq!(compared.judged, 150);
        assert!(compared.accepted > 2 && compared.refused > 50, "{compared:?}");
        assert!(compared.disagreements.is_empty(), "{part}: {:?}", compared.disagreements);
        assert!(compared.lost.is_empty(), "{part}: {:?}", compared.lost);
    }
}
