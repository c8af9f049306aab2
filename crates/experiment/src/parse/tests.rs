//! What a file may say, and what each slip is told.

use catamount_data::LeanLimits;
use catamount_search::StrategyKind;
use catamount_train::{Probabilities, Recipe};

use super::*;
use crate::experiment::{Environment, TraceChoice};
use crate::file::EvaluationFile;

/// The least that a file must say; the rest is the paper's.
const SHORT: &str = r#"
name = "mine"
data = { environment = "metamath", database = "set.mm" }
model = { base = "model" }

[[objectives]]
objective = "ce"

[evaluation]
"#;

fn refusal(text: &str) -> String {
    Experiment::parse(text, "short.toml").unwrap_err().to_string()
}

#[test]
fn a_short_file_is_filled_in_and_survives_toml() {
    let short = Experiment::parse(SHORT, "short.toml").unwrap();
    assert_eq!((short.seed, short.branch.clone()), (42, Recipe::default()));
    assert_eq!(short.file.evaluation, EvaluationFile::default());
    let deployment = short.evaluation.deployment(StrategyKind::Bfs, 256).unwrap();
    assert_eq!((deployment.temperature(), deployment.max_tokens()), (0.8, 128));
    let whole = toml::to_string(&short.file).unwrap();
    assert_eq!(Experiment::parse(&whole, "whole.toml").unwrap(), short);
}

/// Every slip is refused before any work starts, with the file, the line and the key.
#[test]
fn what_cannot_be_followed_is_refused_with_its_line_and_key() {
    for (line, key, reason) in [
        ("temperature = -1", "evaluation.temperature", "is -1"),
        ("temperature = nan", "evaluation.temperature", "NaN"),
        ("max_tokens = 0", "evaluation.max_tokens", "is 0"),
        ("batch = 0", "evaluation.batch", "is 0"),
        ("concurrency = 0", "evaluation.concurrency", "is 0"),
        ("limit = 0", "evaluation.limit", "is 0"),
        ("time_limit = -1", "evaluation.time_limit", "is -1"),
        ("theorem_time_limit = inf", "evaluation.theorem_time_limit", "is inf"),
        ("search = { bfs_beam = 0 }", "evaluation.search.bfs_beam", "is 0"),
        ("search = { mcts_exploration = nan }", "evaluation.search.mcts_exploration", "NaN"),
        ("search = { bfs_baem = 2 }", "evaluation.search.bfs_baem", "did you mean `bfs_beam`"),
        ("search = { pass_batch = 18446744073709551615 }", "evaluation.search", ""),
        ("search = { temperature = 1 }", "evaluation.search.temperature", "[evaluation]"),
        ("budgets = []", "evaluation.budgets", "is empty"),
        ("budgets = [16, 64, 16]", "evaluation.budgets[2]", "twice"),
        ("budgets = [0]", "evaluation.budgets[0]", "is 0"),
        ("budgets = [-4]", "evaluation.budgets[0]", "integer"),
        ("budgets = [9000000000000000000]", "evaluation.budgets[0]", "it must be from 1"),
        ("strategies = [\"bfs\", \"bfs\"]", "evaluation.strategies[1]", "twice"),
        ("strategies = [\"astar\"]", "evaluation.strategies", "unknown strategy `astar`"),
        ("batch = 16384\nmax_tokens = 16384", "evaluation.batch", "tokens at once"),
        ("steps = \"5-2\"", "evaluation.steps", "before the start"),
        ("budget = [4]", "evaluation.budget", "did you mean `budgets`"),
    ] {
        let said = refusal(&format!("{SHORT}{line}\n"));
        assert!(said.starts_with(&format!("short.toml:10: {key}")), "{line}: {said}");
        assert!(said.contains(reason), "{line}: {said}");
    }
    let lean = "environment = \"lean\"";
    for (old, new, line, key, reason) in [
        ("environment = \"metamath\"", lean, 3, "data.database", "is for Metamath"),
        ("environment = \"metamath\"", "environment = \"coq\"", 3, "data.environment", "coq"),
        (", database = \"set.mm\"", "", 3, "data.database", "is missing"),
        ("\"set.mm\"", "\"set.mm\", limit = 0", 3, "data.limit", "is 0"),
        ("\"set.mm\"", "\"set.mm\", split = \"0.9\"", 3, "data.split", "not a split"),
        ("\"set.mm\"", "\"set.mm\", train = \"a\"", 3, "data.valid", "is missing"),
        ("\"set.mm\"", "\"set.mm\", test = \"a\", traces = \"b\"", 3, "data.traces", "with a part"),
        ("objective = \"ce\"", "objective = \"ce\"\nprior = \"fitted\"", 8, PRIOR, "no budget"),
        ("objective = \"ce\"", "objective = \"auto\"", 6, "objectives", "only `auto`"),
        ("objective = \"ce\"", "objective = \"auto\"\nfloor = 1", 8, "objectives[0].floor", "auto"),
        ("[evaluation]", "[tune]\ntemperatures = [0]", 10, "tune.temperatures[0]", "is 0"),
        ("[evaluation]", "[tune]\nobjectives = [\"ce\"]", 10, "tune.objectives[0]", "always"),
        ("[evaluation]", "[tune]\nshares = [5]", 10, "tune.shares[0]", "at most 4"),
        ("[evaluation]", "[tune]\nfloors = [2]", 10, "tune.floors[0]", "is 2"),
        ("[evaluation]", "[evaluation]\ntrials = 39", 10, "evaluation.trials", "from 40"),
        ("objective = \"ce\"", "objective = \"bfs\"\nprior = \"guessed\"", 8, PRIOR, "guessed"),
        ("objective = \"ce\"", "objective = \"bfs\"\nprior = { kappa = 0 }", 8, PRIOR, "kappa"),
        ("objective = \"ce\"", "objective = \"bfs\"\nbudget = 0", 8, "objectives[0].budget", "0"),
        (
            "objective = \"ce\"",
            "objective = \"ce\"\nname = \" \"",
            8,
            "objectives[0].name",
            "empty",
        ),
        ("objective = \"ce\"", "objective = \"cee\"", 7, "objectives[0].objective", "cee"),
        ("model = { base = \"model\" }", "", 0, "model", "is missing"),
        ("base = \"model\"", "hidden = 64", 4, "model.layers", "is missing"),
        ("base = \"model\"", "base = \"m\", hidden = 64", 4, "model.hidden", "new model"),
        (
            "base = \"model\"",
            "base = \"m\", arithmetic = \"fp8\"",
            4,
            "model.arithmetic",
            "frozen base",
        ),
        ("base = \"model\"", "base = \"m\", arithmetic = \"fp9\"", 4, "model.arithmetic", "fp8"),
        ("base = \"model\"", "hidden = 64, arithmetic = \"fp8\"", 4, "model.arithmetic", "new one"),
        ("base = \"model\"", shape(64, 1 << 40).as_str(), 4, "model.layers", "it must be from 1"),
        ("base = \"model\"", shape(16384, 256).as_str(), 4, "model.hidden", "billion parameters"),
        ("[evaluation]", "[warm_up]\nepochs = 0", 10, "warm_up.epochs", "at least 1"),
        ("[evaluation]", "[branch]\nepochs = 1\nlora = { rank = 4 }", 11, "branch.lora", "warm_up"),
        (
            "[evaluation]",
            "[warm_up]\nbatch = { tokens = 99999999999 }",
            10,
            "warm_up.batch",
            "most",
        ),
    ] {
        let said = refusal(&SHORT.replace(old, new));
        let place = if line == 0 { String::new() } else { format!(":{line}") };
        let expected = format!("short.toml{place}");
        assert!(said.starts_with(&expected) && said.contains(&format!(": {key}")), "{new}: {said}");
        assert!(said.contains(reason), "{new}: {said}");
    }
    let twice =
        format!("{}[[objectives]]\nobjective = \"ce\"\n", SHORT.replace("[evaluation]", ""));
    assert!(refusal(&twice).contains("objectives[1].name: two objectives are called `ce`"));
    assert!(refusal("name = ").starts_with("short.toml:1: "));
}

const PRIOR: &str = "objectives[0].prior";

/// Put in place of an objective's line, under a study whose probabilities are made beforehand.
const AUTO: &str = "objective = \"ce\"\n[[objectives]]\nobjective = \"auto\"";

#[test]
fn probabilities_temperatures_and_floors_are_resolved_for_each_objective() {
    let text = SHORT.replace(
        "objective = \"ce\"",
        "objective = \"ce\"\n[[objectives]]\nobjective = \"ua\"\nprobabilities = \"mapped\"\n\
         temperature = \"deployed\"\nfloor = 0.1\n[[objectives]]\nobjective = \"bfs\"\n\
         temperature = 1.2",
    );
    let text = text.replace("name = \"mine\"", "name = \"mine\"\nfolds = 5");
    let study = Experiment::parse(&text, "short.toml").unwrap();
    assert_eq!(study.folds, 5);
    let of = |i: usize| {
        let recipe = study.objectives[i].recipe(&study.branch);
        (study.objectives[i].made_beforehand(), recipe.temperature, recipe.weights.min)
    };
    assert_eq!(of(0), (None, 1.0, 0.0));
    assert_eq!(of(1), (Some(Probabilities::Mapped), 0.8, 0.1));
    assert_eq!((of(2).1, of(2).2), (1.2, 0.0));
    let whole = toml::to_string(&study.file).unwrap();
    assert_eq!(Experiment::parse(&whole, "whole.toml").unwrap(), study);
}

/// A surrogate that is fitted to theorems which the model has not seen weighs by mapped
/// probabilities, unless somebody says otherwise; the paper's objectives by those of training.
#[test]
fn fitted_objectives_weigh_by_mapped_probabilities() {
    let of = |objective: &str, head: &str| {
        let text = SHORT.replace("objective = \"ce\"", objective);
        let text = text.replace("name = \"mine\"", &format!("name = \"mine\"\n{head}"));
        Experiment::parse(&text, "short.toml").unwrap().objectives[0].probabilities
    };
    let fitted = "objective = \"bfs\"\nprior = \"fitted\"";
    assert_eq!(of(fitted, ""), Probabilities::Mapped);
    assert_eq!(of("objective = \"bfs\"", ""), Probabilities::Training);
    assert_eq!(of(fitted, "probabilities = \"training\""), Probabilities::Training);
    let own = format!("{fitted}\nprobabilities = \"cross-fitted\"");
    assert_eq!(of(&own, ""), Probabilities::CrossFitted);
}

/// One row under every strategy, sampled in its own way; what is the same training is the same.
#[test]
fn matched_objectives_and_their_deployments_are_resolved() {
    let text = SHORT.replace(
        "objective = \"ce\"",
        "objective = \"ce\"\n[[objectives]]\nobjective = \"ce\"\ndeployed = { temperature = 1.2 }\n\
         [[objectives]]\nobjective = \"matched\"\nprior = \"fitted\"\n\
         temperature = \"deployed\"\ndeployed = { temperature = 1.5, distinct = true }",
    );
    let study = Experiment::parse(&text, "short.toml").unwrap();
    let [ce, hot, matched @ ..] = study.objectives.as_slice() else { panic!("{text}") };
    assert!(hot.trains_as(ce) && hot.name == "ce+t1.2");
    let deployed = hot.deployment(StrategyKind::Bfs, 64).unwrap();
    assert_eq!((deployed.temperature(), deployed.distinct()), (1.2, false));
    assert_eq!(matched.len(), study.evaluation.strategies.len());
    for (choice, &strategy) in matched.iter().zip(&study.evaluation.strategies) {
        assert_eq!(choice.row, "matched+fitted+t1.5+distinct");
        assert_eq!((choice.under, choice.temperature), (Some(strategy), 1.5));
        assert_eq!(choice.objective.name(), strategy.name());
        assert!(choice.deployment(strategy, 64).unwrap().distinct() && !choice.trains_as(ce));
    }
    let refused = text.replace("temperature = 1.2", "temperature = 0");
    let said = refusal(&refused);
    assert!(said.contains("objectives[1].deployed.temperature"), "{said}");
    let whole = toml::to_string(&study.file).unwrap();
    assert_eq!(Experiment::parse(&whole, "whole.toml").unwrap(), study);
}

/// A surrogate fitted to searches at one temperature is not trained with at another.
#[test]
fn fitted_priors_are_at_the_deployed_temperature() {
    let fitted = |more: &str, head: &str| {
        let text = SHORT.replace(
            "objective = \"ce\"",
            &format!("objective = \"bfs\"\nprior = \"fitted\"\n{more}"),
        );
        text.replace("[evaluation]", &format!("{head}[evaluation]"))
    };
    for (more, wanted) in [
        ("", 0.8),
        ("temperature = \"deployed\"", 0.8),
        ("deployed = { temperature = 1.5 }", 1.5),
        ("temperature = 1.5\ndeployed = { temperature = 1.5 }", 1.5),
    ] {
        let study = Experiment::parse(&fitted(more, ""), "short.toml").unwrap();
        assert_eq!(study.objectives[0].temperature, wanted, "{more}");
    }
    let said = refusal(&fitted("temperature = 1.0", ""));
    assert!(said.starts_with("short.toml:9: objectives[0].temperature: is 1"), "{said}");
    assert!(said.contains("searches at 0.8"), "{said}");
    let said = refusal(&fitted("", "[branch]\ntemperature = 0.9\n"));
    assert!(said.starts_with("short.toml:12: branch.temperature: is 0.9"), "{said}");
    // Whatever a candidate is sampled at, it is trained at.
    let hot = SHORT.replace("[evaluation]", "[tune]\ntemperatures = [80]\n[evaluation]");
    assert!(refusal(&hot).contains("tune.temperatures[0]: is 80"), "{}", refusal(&hot));
}

#[test]
fn probabilities_that_cannot_be_made_are_refused() {
    let ua = "objective = \"ua\"\nprobabilities = \"mapped\"";
    let crossed = "objective = \"ua\"\nprobabilities = \"cross-fitted\"";
    let none = "\"set.mm\", split = \"0.9,0.0,0.1\"";
    for (objective, old, new, key, reason) in [
        (ua, "\"set.mm\"", none, "objectives[0].probabilities", "needs validation traces"),
        (crossed, "\"set.mm\"", "\"set.mm\", limit = 2", "folds", "data.limit"),
        (crossed, "\"mine\"", "\"mine\"\nfolds = 1", "folds", "from 2 to 20"),
        (crossed, "\"mine\"", "\"mine\"\nfolds = 21", "folds", "from 2 to 20"),
        (ua, "mapped", "guessed", "objectives[0].probabilities", "guessed"),
        (ua, "mapped\"", "mapped\"\nfloor = 2", "objectives[0].floor", "from 0 to 1"),
        (ua, "mapped\"", "mapped\"\ntemperature = 0", "objectives[0].temperature", "above 0"),
        (ua, "mapped\"", "mapped\"\ntemperature = \"hot\"", "objectives[0]", "deployed"),
        (AUTO, "\"set.mm\"", none, "tune.probabilities", "needs validation traces"),
        (AUTO, "\"auto\"", "\"auto\"\ntemperature = 1", "objectives[1].temperature", "[tune]"),
    ] {
        let text = SHORT.replace("objective = \"ce\"", objective).replace(old, new);
        let text = text.replace("name =", "probabilities = \"mapped\"\nname =");
        let said = refusal(&text);
        assert!(said.contains(&format!(": {key}")) && said.contains(reason), "{new}: {said}");
    }
}

fn shape(hidden: usize, layers: u64) -> String {
    format!(
        "hidden = {hidden}, layers = {layers}, vocab = 600, positions = 256, tokenizer = \"bpe\""
    )
}

#[test]
fn official_parts_and_their_commit_are_read() {
    let parts = r#"environment = "lean", project = "mathlib4", train = "t.json", valid = "v.json",
  test = "x.json", source = { url = "https://example.org/lib", commit = "c0ffee" }"#;
    let text = SHORT.replace("environment = \"metamath\", database = \"set.mm\"", parts);
    let experiment = Experiment::parse(&text, "short.toml").unwrap();
    assert!(matches!(experiment.data.traces, TraceChoice::Parts { .. }));
    assert_eq!(experiment.data.origin.unwrap().commit, "c0ffee");
}

#[test]
fn a_corpus_has_checkouts_and_traces() {
    let with =
        |data: &str| SHORT.replace("environment = \"metamath\", database = \"set.mm\"", data);
    let whole = r#"environment = "lean", corpus = "cedar", checkouts = "c", traces = "t.jsonl""#;
    let experiment = Experiment::parse(&with(whole), "short.toml").unwrap();
    let one = |it: &Environment, all: &[&str]| match it {
        Environment::LeanCorpora { recipes, .. } => recipes == all,
        _ => false,
    };
    assert!(one(&experiment.data.environment, &["cedar"]));
    let several = whole.replace("\"cedar\"", "[\"batteries\", \"cedar\"]");
    let together = Experiment::parse(&with(&several), "short.toml").unwrap();
    assert!(one(&together.data.environment, &["batteries", "cedar"]));
    let missing = experiment.missing_tools();
    assert!(missing.iter().any(|why| why.contains("git clone")), "{missing:?}");
    let cases = [
        (r#"corpus = "cedar", traces = "t.jsonl""#, "data.checkouts"),
        (r#"checkouts = "c", traces = "t.jsonl""#, "data.checkouts"),
        (r#"corpus = "cedar", checkouts = "c", project = "p", traces = "t"#, "data.corpus"),
        (r#"corpus = [], checkouts = "c", traces = "t"#, "names no corpus"),
        (r#"corpus = ["cedar", "cedar"], checkouts = "c", traces = "t"#, "listed twice"),
        (r#"corpus = 3, checkouts = "c", traces = "t"#, "the recipe of a corpus, or a list"),
        (r#"corpus = "cedar", checkouts = "c"#, "catamount lean trace cedar --checkouts c"),
    ];
    for (data, said) in cases {
        let closed = if data.matches('"').count() % 2 == 1 { "\"" } else { "" };
        let refusal = refusal(&with(&format!("environment = \"lean\", {data}{closed}")));
        assert!(refusal.contains(said), "{refusal}");
    }
}

#[test]
fn what_lean_may_spend_is_set_and_bounded() {
    let with =
        |data: &str| SHORT.replace("environment = \"metamath\", database = \"set.mm\"", data);
    let lean = |settings: &str| with(&format!("environment = \"lean\", lean = {{ {settings} }}"));
    let all = "workers = 16, heartbeats = 50_000, tactic_limit = 2.5, check_limit = 30";
    let data = Experiment::parse(&lean(all), "short.toml").unwrap().data;
    assert_eq!((data.workers, data.limits.heartbeats), (Some(16), 50_000));
    assert_eq!([data.limits.tactic, data.limits.check].map(|it| it.as_secs_f64()), [2.5, 30.0]);
    let data = Experiment::parse(&lean(""), "short.toml").unwrap().data;
    assert_eq!((data.workers, data.limits), (None, LeanLimits::default()));
    for (text, said) in [
        (lean("workers = 0"), "data.lean.workers: is 0"),
        (lean("workers = 100_000"), "data.lean.workers: is 100000"),
        (lean("heartbeats = 0"), "data.lean.heartbeats: is 0"),
        (lean("tactic_limit = 0"), "data.lean.tactic_limit: is 0"),
        (lean("check_limit = nan"), "data.lean.check_limit: is NaN"),
        (lean("worker = 1"), "did you mean `workers`"),
        (SHORT.replace("\"set.mm\"", "\"set.mm\", lean = {}"), "data.lean: is for Lean"),
    ] {
        let refusal = refusal(&text);
        assert!(refusal.contains(said), "{refusal}");
    }
}

#[test]
fn what_is_no_number_is_in_no_range() {
    let text = format!("{SHORT}\n[tune]\nfloors = [nan]\n");
    assert!(refusal(&text).contains("tune.floors[0]: is NaN"), "{}", refusal(&text));
}

#[test]
fn a_surrogate_is_fitted_to_whole_distributions() {
    let fitted = SHORT.replace("\"ce\"", "\"bfs\"\nprior = \"fitted\"");
    let with =
        |top_p: &str| format!("{fitted}strategies = [\"bfs\"]\nsearch = {{ top_p = {top_p} }}\n");
    Experiment::parse(&with("1.0"), "short.toml").unwrap();
    let refusal = refusal(&with("0.9"));
    assert!(refusal.contains("objectives[0].prior: is \"fitted\", and"), "{refusal}");
}

#[test]
fn a_server_samples_adapters_and_nothing_else() {
    let served = format!("{SHORT}\n[policy]\nurl = \"http://127.0.0.1:8000\"\nconcurrency = 64\n");
    assert!(refusal(&served).contains("policy: a server serves one base"), "{}", refusal(&served));
    let lora = "\n[warm_up.lora]\nrank = 4\n[branch.lora]\nrank = 4\n";
    let served = format!("{served}{lora}");
    let experiment = Experiment::parse(&served, "short.toml").unwrap();
    let server = experiment.policy.clone().unwrap();
    assert_eq!((server.concurrency, server.retries, server.grouped), (64, 4, false));
    // Cells that a server samples are other cells; models are the same.
    let here = Experiment::parse(&format!("{SHORT}{lora}"), "short.toml").unwrap();
    let keys = |experiment: &Experiment| -> Vec<(String, String)> {
        let plan = crate::Plan::new(experiment, &crate::Inputs::named("source")).unwrap();
        plan.steps.iter().map(|p| (p.name.clone(), p.key.clone())).collect()
    };
    for ((name, there), (_, here)) in keys(&experiment).iter().zip(keys(&here)) {
        let searched = name.starts_with("cell") || name == "report";
        assert_eq!(*there != here, searched, "{name}");
    }
    let named = served.replace("concurrency = 64", "chat = true\nadapters = { ce = \"my-ce\" }");
    let server = Experiment::parse(&named, "short.toml").unwrap().policy.unwrap();
    assert!(server.chat && server.adapters["ce"] == "my-ce");
    let both = named.replace("chat = true", "model = \"one\"");
    assert!(refusal(&both).contains("policy.model: names one model"), "{}", refusal(&both));
    let odd = served.replace("concurrency = 64", "prompt = \"Prove it\"");
    assert!(refusal(&odd).contains("policy.prompt: has no {state}"), "{}", refusal(&odd));
    let odd = served.replace("concurrency = 64", "concurrency = 0");
    assert!(refusal(&odd).contains("policy.concurrency: is 0"), "{}", refusal(&odd));
    let odd = served.replace("http://127", "127");
    assert!(refusal(&odd).contains("policy.url: must be an address"), "{}", refusal(&odd));
}
