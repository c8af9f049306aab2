use std::collections::HashSet;

use super::*;
use crate::file::LeanFile;
use crate::presets::{PRESETS, preset};
use crate::step::Fit;

#[test]
fn no_two_steps_of_a_preset_share_a_name_a_key_or_a_file() {
    for (name, ..) in PRESETS {
        let plan = Plan::new(&preset(name).unwrap(), &crate::Inputs::named("source")).unwrap();
        let mut seen = HashSet::new();
        for planned in &plan.steps {
            assert!(seen.insert(planned.name.clone()) && seen.insert(planned.key.clone()));
            assert!(seen.insert(format!("id {}", planned.step.id())), "{}", planned.name);
            for file in planned.step.outputs().made {
                assert!(seen.insert(format!("file {}", file.display())), "{file:?}");
            }
        }
    }
}

/// A base of other content is another warm-up, and so is everything after it; the data are the
/// same.
#[test]
fn what_a_base_holds_is_in_the_keys() {
    let text = "name = \"n\"\nfolds = 2\nprobabilities = \"cross-fitted\"\nobjectives = [{ \
                objective = \"bfs\" }]\ndata = { environment = \"metamath\", database = \"x.mm\" \
                }\nmodel = { base = \"b\" }\n";
    let experiment = Experiment::parse(text, "x.toml").unwrap();
    let of = |base: &str| {
        let inputs = Inputs { base: Some(base.into()), ..Inputs::named("source") };
        Plan::new(&experiment, &inputs).unwrap().steps
    };
    let (one, other) = (of("one"), of("other"));
    assert!(one.iter().any(|planned| matches!(planned.step, Step::Fold(_))));
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one.key == other.key, one.step == Step::Data, "{}", one.name);
    }
}

/// What people call an objective is never where its files are.
#[test]
fn names_cannot_escape_or_evict() {
    let names = ["/etc/x", "../../x", "warm-up", "a b", "a-b", "a@16", "x.trees"];
    let objectives: String = names
        .iter()
        .map(|name| format!("[[objectives]]\nobjective = \"bfs\"\nname = \"{name}\"\n"))
        .collect();
    let text = format!(
        "name = \"n\"\ndata = {{ environment = \"metamath\", database = \"x.mm\" }}\nmodel = \
             {{ base = \"b\" }}\nevaluation = {{ budgets = [16, 64] }}\n{objectives}"
    );
    let experiment = Experiment::parse(&text, "x.toml").unwrap();
    let plan = Plan::new(&experiment, &crate::Inputs::named("source")).unwrap();
    let mut files = HashSet::new();
    for file in plan.steps.iter().flat_map(|planned| planned.step.outputs().made) {
        let parts: Vec<_> = file.components().collect();
        let normal = parts.iter().all(|part| matches!(part, std::path::Component::Normal(_)));
        assert!(normal && parts.len() <= 2, "{}", file.display());
        let shown = file.display().to_string();
        assert!(files.insert(shown.clone()), "{shown} is made by two steps");
    }
}

#[test]
fn objectives_share_folds_and_scores() {
    let text = r#"
name = "n"
probabilities = "cross-fitted"
folds = 2
data = { environment = "metamath", database = "x.mm" }
model = { base = "b" }
objectives = [
    { objective = "ce" },
    { objective = "ua" },
    { objective = "bfs", temperature = "deployed" },
    { objective = "bfs", name = "cool", temperature = "deployed", floor = 0.1 },
    { objective = "bfs", name = "plain", probabilities = "training" },
]
"#;
    let plan =
        Plan::new(&Experiment::parse(text, "x.toml").unwrap(), &Inputs::named("source")).unwrap();
    let names: Vec<&str> = plan.steps.iter().map(|planned| planned.name.as_str()).collect();
    let wanted = [
        "data",
        "warm-up",
        "branch ce",
        "fold 1 of 2",
        "fold 2 of 2",
        "scores cross-fitted-2 t1",
        "branch ua",
        "scores cross-fitted-2 t0.8",
        "branch bfs",
        "branch cool",
        "branch plain",
    ];
    assert_eq!(names[..wanted.len()], wanted);
}

/// Candidates rest on mapped probabilities, are trained and fitted for the temperature that they
/// are sampled at, and their floors are in their recipes.
#[test]
fn candidates_share_scores_and_have_their_floors() {
    let text = r#"
name = "n"
data = { environment = "metamath", database = "x.mm" }
model = { base = "b" }
branch = { weights = { min = 0.05 } }
objectives = [{ objective = "ce" }, { objective = "auto" }]
evaluation = { strategies = ["bfs"], budgets = [64] }
tune = { objectives = ["ua"], floors = [0, 0.2], temperatures = [0.8, 1.2] }
"#;
    let experiment = Experiment::parse(text, "x.toml").unwrap();
    let plan = Plan::new(&experiment, &crate::Inputs::named("source")).unwrap();
    let scores = plan.steps.iter().filter(|planned| matches!(planned.step, Step::Scores(_)));
    let scores: Vec<_> = scores.map(|planned| &planned.name).collect();
    assert_eq!(scores, ["scores mapped t0.8", "scores mapped t1.2"]);
    let branches = plan.steps.iter().filter_map(|planned| match &planned.step {
        Step::Branch(branch) => Some(branch),
        _ => None,
    });
    let made: Vec<_> = branches
        .map(|branch| {
            let recipe = branch.objective.recipe(&experiment.branch);
            (branch.scoring.is_some(), recipe.temperature, recipe.weights.min)
        })
        .collect();
    let each = [(true, 0.8, 0.05), (true, 1.2, 0.05), (true, 0.8, 0.2), (true, 1.2, 0.2)];
    assert_eq!(made, [&[(false, 1.0, 0.05)][..], &each, &each].concat());
    let fits = plan.steps.iter().filter(|p| matches!(p.step, Step::Calibration(_)));
    let fits: Vec<_> = fits.map(|planned| planned.name.as_str()).collect();
    assert_eq!(fits, ["calibration ua n64 t0.8", "calibration ua n64 t1.2"]);
    let contenders = plan.steps.iter().find_map(|planned| match &planned.step {
        Step::Tournament(tournament) => Some(&tournament.contenders),
        _ => None,
    });
    for contender in contenders.unwrap().iter().filter(|contender| !contender.control) {
        let own = format!("-t{}", contender.deployment.temperature());
        assert!(contender.trained.name().ends_with(&own), "{contender:?}");
    }
    // What is held against searches only rests on no scores.
    let calibration = Plan::calibration(&experiment, &crate::Inputs::named("source")).unwrap();
    assert!(calibration.steps.iter().all(|p| !matches!(p.step, Step::Scores(_))));
}

/// What a surrogate is fitted to, what weights are computed from and what is searched with have one
/// temperature, also in the demo.
#[test]
fn fitted_objectives_have_the_temperature_of_their_searches() {
    let demo = preset("demo").unwrap();
    let plan = Plan::new(&demo, &Inputs::named("source")).unwrap();
    let names: Vec<&str> = plan.steps.iter().map(|planned| planned.name.as_str()).collect();
    assert!(names.contains(&"scores mapped t0.8"), "{names:?}");
    for planned in &plan.steps {
        let Step::Branch(branch) = &planned.step else { continue };
        if branch.objective.prior == PriorChoice::Fitted {
            let fit = Fit::of(&branch.objective, &demo.evaluation, branch.budget).unwrap();
            assert_eq!(branch.objective.temperature, fit.temperature(), "{}", planned.name);
        }
    }
}

#[test]
fn a_change_reaches_what_depends_on_it_and_nothing_else() {
    let limit = changed(PRESETS[0].2, "limit = 220", "limit = 221");
    assert!(limit.iter().all(|name| name.starts_with("cell") || name == "report"), "{limit:?}");
    // Longer held-out theorems are not in data that were extracted without them.
    let steps = changed(PRESETS[0].2, "steps = \"2-5\"", "steps = \"2-15\"");
    assert!(steps.contains(&"data".to_string()), "{steps:?}");
    let concurrency = changed(PRESETS[0].2, "concurrency = 220", "concurrency = 64");
    assert_eq!(concurrency, Vec::<String>::new());
    // Where files are does not count where their contents do; of what kind they are does.
    assert_eq!(changed(PRESETS[0].2, "\"set.mm\"", "\"/elsewhere/set.mm\""), Vec::<String>::new());
    let project = "environment = \"lean\"\nproject = \"here\"\ntraces = \"here/x.jsonl\"\n";
    let text = format!("{SERVED}[data]\n{project}");
    assert_eq!(changed(&text, "\"here", "\"b/c"), Vec::<String>::new());
    let parts = "train = \"x.jsonl\"\nvalid = \"x.jsonl\"\ntest = \"x.jsonl\"";
    let parts = changed(&text, "traces = \"here/x.jsonl\"", parts);
    assert!(parts.contains(&"data".to_string()), "{parts:?}");
    // A server's samples are what it was asked for, however often and for however long.
    for (old, new) in [("concurrency = 8", "concurrency = 80"), ("timeout = 9", "timeout = 90")] {
        assert_eq!(changed(&text, old, new), Vec::<String>::new(), "{new}");
    }
    assert_eq!(changed(&text, "retries = 2", "retries = 7"), Vec::<String>::new());
    // Whatever is trained or sampled in other numbers is something else.
    let changed_by_fp8 = changed(&text, "base = \"b\"", "base = \"b\", arithmetic = \"fp8\"");
    for step in ["warm-up", "branch ce", "cell ce bfs n64"] {
        assert!(changed_by_fp8.contains(&step.to_string()), "{step} is not in {changed_by_fp8:?}");
    }
    for (old, new) in
        [("a-model", "b-model"), ("grouped = false", "grouped = true"), ("host", "guest")]
    {
        let changed = changed(&text, old, new);
        for step in ["trial bfs n64 t0.8", "tune bfs n64", "cell ce bfs n64", "report"] {
            assert!(changed.contains(&step.to_string()), "{new}: {step} is not in {changed:?}");
        }
        for step in ["data", "warm-up", "branch ce"] {
            assert!(!changed.contains(&step.to_string()), "{new}: {step} is in {changed:?}");
        }
    }
}

/// Searches by a server, of everything that is searched.
const SERVED: &str = r#"
name = "n"
model = { base = "b" }
warm_up = { lora = { rank = 4 } }
branch = { lora = { rank = 4 } }
objectives = [
    { objective = "ce" },
    { objective = "bfs", prior = "fitted" },
    { objective = "auto" },
]
evaluation = { strategies = ["bfs"], budgets = [64] }

[policy]
url = "http://host:8000"
concurrency = 8
timeout = 9
retries = 2
grouped = false
adapters = { ce = "a-model" }

"#;

/// The steps whose keys a change in an experiment's file changes.
fn changed(text: &str, old: &str, new: &str) -> Vec<String> {
    assert!(text.contains(old), "{old}");
    let keys = |text: &str| {
        let experiment = Experiment::parse(text, "x.toml").unwrap();
        let plan = Plan::new(&experiment, &Inputs::named("source")).unwrap();
        plan.steps.into_iter().map(|planned| (planned.name, planned.key)).collect::<Vec<_>>()
    };
    let pairs = keys(text).into_iter().zip(keys(&text.replace(old, new)));
    let changed = pairs.filter(|(old, new)| old != new);
    changed.map(|((name, _), _)| name).collect()
}

#[test]
fn what_lean_may_spend_reaches_searches_and_how_many_workers_nothing() {
    let mut experiment = preset("lean-demo").unwrap();
    let mut keys = |lean: LeanFile| {
        experiment.file.data.lean = Some(lean);
        Plan::new(&experiment, &Inputs::named("source")).unwrap().steps
    };
    let before = keys(LeanFile::default());
    assert_eq!(keys(LeanFile { workers: Some(16), ..LeanFile::default() }), before);
    for lean in [
        LeanFile { heartbeats: Some(1), ..LeanFile::default() },
        LeanFile { tactic_limit: Some(1.0), ..LeanFile::default() },
        LeanFile { check_limit: Some(1.0), ..LeanFile::default() },
    ] {
        for (old, new) in before.iter().zip(keys(lean)) {
            let searched = matches!(old.step, Step::Cell(_) | Step::Report);
            assert_eq!(old.key != new.key, searched, "{}", old.name);
        }
    }
}
