//! Whole runs on the small world.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::common::{data, lora, metrics, model, recipe, tokenizer, traces};
use catamount_model::{Config, Cpu, Memory, Model, load, load_adapter};
use catamount_objective::{Dual, Objective, Status, Strategy, Surrogate};
use catamount_search::Stream;
use catamount_train::{
    Card, Custom, Dataset, Example, LoraRecipe, Outcome, Recipe, Run, Scored, Snapshot, export,
    prepare, score, train,
};

fn ce() -> Surrogate {
    Surrogate::new(Objective::Ce, 0)
}

#[test]
fn a_batch_is_learned_by_heart() {
    let traces = traces(6);
    let tokenizer = tokenizer(&traces);
    let data = data(&tokenizer, &traces);
    let folder = tempfile::tempdir().unwrap();
    let go = AtomicBool::new(false);
    let mut recipe = Recipe { epochs: 200, ..recipe() };
    (recipe.batch.examples, recipe.optimizer.lr) = (100, 1e-2);
    for (name, objective) in [("ce", ce()), ("bfs", Surrogate::new(Objective::Bfs, 8))] {
        let mut model = model(&tokenizer);
        train(&mut model, &data, &objective, &recipe, &Run::new(folder.path(), name, &go)).unwrap();
        let lines = metrics(&folder.path().join(format!("{name}.metrics.jsonl")));
        let (first, last) = (&lines[0], &lines[199]);
        assert_eq!((first.step, last.step, last.steps), (1, 200, 200));
        assert!(
            first.minus_log_j > 5.0 && last.minus_log_j < 0.01,
            "{name}: from {} to {}",
            first.minus_log_j,
            last.minus_log_j
        );
        assert!(
            first.loss > 1.0 && last.loss < 0.01,
            "{name}: from {} to {}",
            first.loss,
            last.loss
        );
    }
}

#[test]
fn branches_see_the_same_data_in_the_same_order() {
    let traces = traces(40);
    let tokenizer = tokenizer(&traces);
    let data = data(&tokenizer, &traces);
    let folder = tempfile::tempdir().unwrap();
    let go = AtomicBool::new(false);
    let mut recipe = Recipe { epochs: 2, ..recipe() };
    // So small that no parameter changes: a step's scores then tell which traces it had.
    recipe.optimizer.lr = 1e-15;
    let mut seen = Vec::new();
    for objective in [ce(), Surrogate::new(Objective::Bfs, 64), Surrogate::new(Objective::Pass, 16)]
    {
        let name = objective.objective().name();
        train(
            &mut model(&tokenizer),
            &data,
            &objective,
            &recipe,
            &Run::new(folder.path(), name, &go),
        )
        .unwrap();
        let lines = metrics(&folder.path().join(format!("{name}.metrics.jsonl")));
        seen.push(
            lines
                .iter()
                .map(|l| (l.ce, l.p_quantiles, l.tactics, l.traces, l.lr))
                .collect::<Vec<_>>(),
        );
        assert!(
            lines.windows(2).all(|w| w[0].ce != w[1].ce),
            "different steps have different traces"
        );
    }
    assert!(seen[0] == seen[1] && seen[1] == seen[2]);
}

#[test]
fn infeasible_traces_are_counted_and_trained_as_with_cross_entropy() {
    let traces = traces(20);
    let tokenizer = tokenizer(&traces);
    let data = data(&tokenizer, &traces);
    let folder = tempfile::tempdir().unwrap();
    let go = AtomicBool::new(false);
    let recipe = Recipe { max_steps: Some(3), ..recipe() };
    let run = |name, objective: Surrogate| {
        let mut model = model(&tokenizer);
        let outcome =
            train(&mut model, &data, &objective, &recipe, &Run::new(folder.path(), name, &go))
                .unwrap();
        (Snapshot::take(&model).unwrap(), outcome.summary().clone())
    };
    let (ce, summary) = run("ce", ce());
    assert_eq!(summary.infeasible, 0);
    // No trace can be found with a budget of zero.
    let (none, summary) = run("none", Surrogate::new(Objective::Bfs, 0));
    let lines = metrics(&folder.path().join("none.metrics.jsonl"));
    assert_eq!(summary.infeasible, lines.iter().map(|l| l.traces).sum::<usize>());
    assert_eq!(ce, none);
}

#[test]
fn what_is_not_finite_is_skipped_and_counted() {
    let tokens = |first: u32| Example { prompt: vec![first, 1, 2], tactic: vec![3, 4] };
    // Only one trace has token 9, whose embedding is broken.
    let data = Dataset::new((0..8).map(|t| vec![tokens(t + 2), tokens(t + 2)]), 64).unwrap();
    // A head of its own, else the broken row would be in every token's logits.
    let config = Config { tied: false, ..Config::small(16, 32, 2, 64) };
    let mut model = Model::init(Arc::new(Cpu), config, Stream::new(42)).unwrap();
    let hidden = model.config.hidden;
    Cpu.upload(&vec![f32::NAN; hidden], &mut model.embedding.value, 9 * hidden).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let go = AtomicBool::new(false);
    let mut recipe = Recipe { max_steps: Some(8), ..recipe() };
    (recipe.batch.examples, recipe.batch.tokens) = (4, 64);
    let outcome =
        train(&mut model, &data, &ce(), &recipe, &Run::new(folder.path(), "run", &go)).unwrap();
    // Eight traces are four steps of two; the one with the broken token takes its micro-batch with
    // it.
    assert_eq!((outcome.summary().steps, outcome.summary().skipped), (4, 1));
    for line in metrics(&folder.path().join("run.metrics.jsonl")) {
        assert!(line.loss.is_finite() && line.grad_norm.is_finite(), "{line:?}");
    }
    let broken = |values: &[f32]| values.iter().filter(|x| !x.is_finite()).count();
    let embedding = model.embedding.to_host(&Cpu).unwrap();
    assert_eq!(broken(&embedding), hidden, "nothing that was finite has been spoiled");
    assert!(model.blocks.iter().all(|b| broken(&b.norm1.to_host(&Cpu).unwrap()) == 0));
}

#[test]
fn scores_come_in_order_and_agree_with_training() {
    let mut traces = traces(150);
    let tokenizer = tokenizer(&traces);
    traces[3].steps[0].state = "ph ".repeat(80);
    let model = model(&tokenizer);
    let mut scored: Vec<Scored> = Vec::new();
    let go = AtomicBool::new(false);
    let stream = traces.iter().cloned().map(Ok);
    let all = score(&model, &tokenizer, 0.8, stream, 100, &go, |s| {
        scored.push(s);
        Ok(())
    });
    assert!(all.unwrap());
    assert!(scored.iter().map(|s| &s.trace).eq(&traces));
    let error = scored[3].log_p.as_ref().unwrap_err();
    assert!(error.contains("step 1") && error.contains("only 64 positions"), "{error}");
    let mut long = Vec::new();
    let few = traces[..4].iter().cloned().map(Ok);
    let narrow = score(&model, &tokenizer, 1.0, few, 5, &go, |s| {
        long.extend(s.log_p.err());
        Ok(())
    });
    assert!(
        narrow.unwrap() && long.iter().all(|e| e.contains("only 5 rows")) && !long.is_empty(),
        "{long:?}"
    );
    // An untrained model finds every tactic about as likely as its number of tokens says.
    for (i, s) in scored.iter().enumerate().filter(|(i, _)| *i != 3) {
        let log_p = s.log_p.as_ref().unwrap();
        assert_eq!(log_p.len(), traces[i].steps.len());
        let uniform = -3.0 * (model.config.vocab as f64).ln();
        assert!(log_p.iter().all(|l| (l - uniform).abs() < 2.0), "{log_p:?} {uniform}");
    }
    // The first line of a run's metrics is measured before the first update.
    let (folder, mut trained) = (tempfile::tempdir().unwrap(), crate::common::model(&tokenizer));
    let mut recipe = Recipe { max_steps: Some(1), temperature: 0.8, ..recipe() };
    (recipe.batch.examples, recipe.batch.tokens) = (10_000, 700);
    let data = Dataset::tokenize(&tokenizer, &traces[10..], 64).unwrap();
    train(&mut trained, &data, &ce(), &recipe, &Run::new(folder.path(), "one", &go)).unwrap();
    let line = &metrics(&folder.path().join("one.metrics.jsonl"))[0];
    let flat: Vec<f64> = scored[10..].iter().flat_map(|s| s.log_p.clone().unwrap()).collect();
    assert_eq!(line.tactics, flat.len());
    assert!((line.ce + flat.iter().sum::<f64>() / flat.len() as f64).abs() < 1e-9);

    go.store(true, std::sync::atomic::Ordering::Relaxed);
    let stream = traces.into_iter().map(Ok);
    assert!(!score(&model, &tokenizer, 1.0, stream, 100, &go, |_| Ok(())).unwrap());
}

#[test]
fn what_was_trained_is_exported_for_others() {
    let traces = traces(20);
    let tokenizer = tokenizer(&traces);
    let data = data(&tokenizer, &traces);
    let folder = tempfile::tempdir().unwrap();
    let go = AtomicBool::new(false);
    let mut base = model(&tokenizer);
    train(&mut base, &data, &ce(), &recipe(), &Run::new(folder.path(), "full", &go)).unwrap();
    let path = folder.path().join("full/model");
    export(&base, &tokenizer, &Card::default(), &path).unwrap();
    // A second time replaces the first.
    export(&base, &tokenizer, &Card::default(), &path).unwrap();
    let (loaded, _) = load(&path, base.backend.clone(), true).unwrap();
    assert_eq!(Snapshot::take(&base).unwrap(), Snapshot::take(&loaded).unwrap());

    let recipe = Recipe { lora: lora(), ..recipe() };
    prepare(&mut base, &recipe).unwrap();
    let objective = Surrogate::new(Objective::Ua, 16);
    let outcome =
        train(&mut base, &data, &objective, &recipe, &Run::new(folder.path(), "ua", &go)).unwrap();
    assert!(matches!(outcome, Outcome::Finished(_)));
    let path = folder.path().join("ua/adapter");
    let card = Card { objective: "ua".into(), budget: Some(16), ..Card::default() };
    let card = Card { base: Some("full/model".into()), ..card };
    export(&base, &tokenizer, &card, &path).unwrap();
    let card = std::fs::read_to_string(path.join("README.md")).unwrap();
    assert!(card.contains("library_name: peft") && card.contains("| base model | full/model |"));
    let trained = Snapshot::take(&base).unwrap();
    let adapter = load_adapter(&Cpu, &base.config, &path, true).unwrap();
    base.swap_adapter(Some(adapter));
    assert_eq!(trained, Snapshot::take(&base).unwrap());
    // The warm-up's adapter is what a branch starts from: preparing again keeps it.
    prepare(&mut base, &recipe).unwrap();
    assert_eq!(trained, Snapshot::take(&base).unwrap());
    let leftovers = |folder: &std::path::Path| {
        let names = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|n| n.starts_with('.')).count()
    };
    assert_eq!(leftovers(&folder.path().join("full")) + leftovers(&folder.path().join("ua")), 0);
}

#[test]
fn models_that_cannot_be_trained_are_refused_in_words() {
    let traces = traces(4);
    let tokenizer = tokenizer(&traces);
    let data = data(&tokenizer, &traces);
    let (folder, go) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let mut frozen = model(&tokenizer);
    frozen.base_mut().for_each(|p| p.grad = None);
    let error = prepare(&mut frozen, &recipe()).unwrap_err().to_string();
    assert!(error.contains("loaded as frozen"), "{error}");
    let error = train(&mut frozen, &data, &ce(), &recipe(), &Run::new(folder.path(), "x", &go))
        .unwrap_err()
        .to_string();
    assert!(error.contains("no trained parameter"), "{error}");
    let mut adapted = model(&tokenizer);
    prepare(&mut adapted, &Recipe { lora: lora(), ..recipe() }).unwrap();
    assert!(prepare(&mut adapted, &recipe()).unwrap_err().to_string().contains("[lora]"));
    // A warm-up's adapter is never thrown away in silence.
    let wider = LoraRecipe { rank: 3, ..lora().unwrap() };
    let error =
        prepare(&mut adapted, &Recipe { lora: Some(wider), ..recipe() }).unwrap_err().to_string();
    assert!(error.contains("rank 2") && error.contains("rank 3"), "{error}");
    let mut turned = lora().unwrap();
    turned.targets.reverse();
    turned.dropout = 0.0;
    let before = Snapshot::take(&adapted).unwrap();
    prepare(&mut adapted, &Recipe { lora: Some(turned), ..recipe() }).unwrap();
    assert_eq!(before, Snapshot::take(&adapted).unwrap());
    assert_eq!(
        adapted.adapter.as_ref().unwrap().config.dropout,
        0.0,
        "the recipe's dropout is in force"
    );
    adapted.adapter.iter_mut().flat_map(|a| a.parameters_mut()).for_each(|p| p.grad = None);
    let error =
        prepare(&mut adapted, &Recipe { lora: lora(), ..recipe() }).unwrap_err().to_string();
    assert!(error.contains("loaded as frozen"), "{error}");
    let mut bad = recipe();
    bad.optimizer.lr = 40.0;
    let error =
        train(&mut model(&tokenizer), &data, &ce(), &bad, &Run::new(folder.path(), "y", &go))
            .unwrap_err();
    assert!(error.to_string().contains("optimizer.lr = 40"), "{error}");
}

/// Retry in place: what best-first search is on a trace.
struct Retry;

impl Strategy for Retry {
    type Configuration = (usize, u64);

    fn start(&self, _: usize, budget: u64) -> (usize, u64) {
        (0, budget)
    }

    fn status(&self, &(t, budget): &(usize, u64), length: usize) -> Status {
        match (t == length, budget) {
            (true, _) => Status::Solved,
            (false, 0) => Status::Dead,
            (false, _) => Status::Live,
        }
    }

    fn selection(&self, &(t, _): &(usize, u64), _: &[Dual]) -> Vec<(usize, Dual)> {
        vec![(t, Dual::constant(1.0))]
    }

    fn advance(&self, &(t, budget): &(usize, u64), _: usize) -> (usize, u64) {
        (t + 1, budget - 1)
    }

    fn miss(&self, &(t, budget): &(usize, u64), _: usize) -> (usize, u64) {
        (t, budget - 1)
    }
}

#[test]
fn a_strategy_of_ones_own_trains_like_a_known_one() {
    let traces = traces(30);
    let tokenizer = tokenizer(&traces);
    let data = data(&tokenizer, &traces);
    let (folder, go) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let mut recipe = Recipe { epochs: 12, ..recipe() };
    recipe.optimizer.lr = 1e-2;
    let known = Surrogate::new(Objective::Bfs, 12);
    let own = Custom { name: "retry".into(), strategy: Retry, budget: 12, absorption: 0.0 };
    train(&mut model(&tokenizer), &data, &known, &recipe, &Run::new(folder.path(), "bfs", &go))
        .unwrap();
    train(&mut model(&tokenizer), &data, &own, &recipe, &Run::new(folder.path(), "retry", &go))
        .unwrap();
    let [known, own] =
        ["bfs", "retry"].map(|name| metrics(&folder.path().join(format!("{name}.metrics.jsonl"))));
    assert_eq!(own[0].objective, "retry");
    let last = known.len() - 1;
    assert!(
        known[last].w_mean < 0.8,
        "the weights have fallen as tactics became likely: {:?}",
        known[last]
    );
    for (a, b) in known.iter().zip(&own) {
        assert!(
            (a.w_mean - b.w_mean).abs() < 1e-3 && (a.loss - b.loss).abs() < 1e-2,
            "{a:?} {b:?}"
        );
    }
}

#[test]
fn a_model_that_scores_no_numbers_is_refused() {
    let traces = traces(3);
    let tokenizer = tokenizer(&traces);
    let mut model = model(&tokenizer);
    let weights = model.base_mut().last().unwrap();
    let damaged = vec![f32::NAN; weights.len()];
    Cpu.upload(&damaged, &mut weights.value, 0).unwrap();
    let go = AtomicBool::new(false);
    let mut scored = 0;
    let refused = score(&model, &tokenizer, 1.0, traces.into_iter().map(Ok), 100, &go, |_| {
        scored += 1;
        Ok(())
    });
    assert!(refused.unwrap_err().to_string().contains("are its weights damaged?"));
    assert_eq!(scored, 0);
}
