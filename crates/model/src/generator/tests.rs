//! Batches of one shape, as devices need them that round differently from shape to shape, give the
//! samples that others give.

use std::collections::HashMap;
use std::sync::Arc;

use catamount_search::Stream;

use super::*;
use crate::{Config, Cpu};

fn generator(fixed: Option<usize>, batch: usize, cache: usize) -> Generator<Cpu> {
    let tokenizer =
        Tokenizer::train_symbols(["|- ( ph -> ps )", "|- ph", "mp2 ax-1 syl"].iter(), 280).unwrap();
    let model =
        Model::init(Arc::new(Cpu), Config::small(tokenizer.vocab(), 32, 2, 96), Stream::new(3))
            .unwrap();
    // Hot enough for tactics of every length up to the limit.
    let sampling = Sampling { temperature: 1.5, top_p: 1.0 };
    let config = GeneratorConfig { sampling, max_tokens: 8, max_prompt: 40, batch, cache };
    Generator::with_shapes(model, tokenizer, config, "test", fixed).unwrap()
}

fn request(id: u64, urns: bool) -> Request {
    Request {
        id,
        state: ["|- ph", "|- ( ph -> ps )", "ax-1 syl", ""][id as usize % 4]
            .repeat(1 + id as usize % 5),
        samples: 1 + (id as usize * 7) % 6,
        stream: Stream::new(5).child(id),
        urn: urns.then(Urn::default),
    }
}

/// Asks in two waves, the second while the first is being answered.
fn answers(mut generator: Generator<Cpu>, urns: bool) -> (HashMap<RequestId, Vec<Sample>>, Work) {
    let request = |id| request(id, urns);
    let (mut all, mut next) = (HashMap::new(), 20);
    (0..20).for_each(|id| generator.submit(request(id)));
    loop {
        let some = generator.poll();
        if some.is_empty() {
            assert!(generator.is_idle());
            return (all, generator.work());
        }
        all.extend(some.into_iter().map(|(id, answer)| (id, answer.unwrap())));
        if next < 40 {
            generator.submit(request(next));
            next += 1;
        }
    }
}

#[test]
fn a_fixed_shape_changes_nothing() {
    for urns in [false, true] {
        shapes(urns);
    }
}

fn shapes(urns: bool) {
    let (plain, work) = answers(generator(None, 16, 4000), urns);
    assert_eq!(plain.len(), 40);
    let lengths: std::collections::HashSet<usize> =
        plain.values().flatten().map(|s| s.tokens).collect();
    assert!(
        lengths.contains(&8) && lengths.len() > 3,
        "tactics end at the limit and before it: {lengths:?}"
    );
    assert_eq!(work.tokens, plain.values().flatten().map(|s| s.tokens as u64).sum::<u64>());
    assert!(work.known_tokens > 50, "{} of {}", work.known_tokens, work.prompt_tokens);
    // Prompts of up to 40 tokens in batches of 16 are computed in pieces; a cache of 72 rows has
    // room for few of them, so that rows that are copied from are soon others'.
    for (rows, batch, cache) in
        [(2048, 16, 4000), (2048, 3, 4000), (2048, 7, 72), (16, 16, 4000), (16, 7, 72)]
    {
        let (fixed, work) = answers(generator(Some(rows), batch, cache), urns);
        assert_eq!(fixed, plain, "batch {batch}, prompts in {rows} rows");
        assert!(work.known_tokens > 0);
        assert_eq!(work.tokens, plain.values().flatten().map(|s| s.tokens as u64).sum::<u64>());
    }
}

/// What a prompt shares with others changes no sample: a generator that has seen nothing else
/// gives the same.
#[test]
fn what_is_known_of_a_prompt_changes_nothing() {
    let (all, _) = answers(generator(Some(16), 16, 4000), false);
    for id in 0..40 {
        let mut alone = generator(Some(16), 16, 4000);
        alone.submit(request(id, false));
        let (_, answer) = alone.poll().remove(0);
        assert_eq!(answer.unwrap(), all[&id], "question {id}");
        assert_eq!(alone.work().known_tokens, 0);
    }
}

/// Where shapes are fixed, another batch is another shape, and may be rounded otherwise: logs of
/// the two are not mixed. Elsewhere a batch changes nothing.
#[test]
fn a_fixed_shape_is_a_part_of_the_identity() {
    let identity = |fixed, batch| generator(fixed, batch, 4000).identity();
    assert_eq!(identity(None, 3), identity(None, 16));
    assert_ne!(identity(Some(64), 3), identity(Some(64), 16));
    assert_eq!(identity(Some(64), 16).get("rows of a step"), Some("16"));
}
