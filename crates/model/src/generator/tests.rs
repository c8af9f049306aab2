//! Batches of one shape, as devices need them that round differently from shape to shape, give the
//! samples that others give.

use std::collections::HashMap;
use std::sync::Arc;

use catamount_search::Stream;

use super::*;
use crate::{Config, Cpu};

fn generator(fixed: bool, batch: usize, cache: usize) -> Generator<Cpu> {
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

/// Asks in two waves, the second while the first is being answered.
fn answers(mut generator: Generator<Cpu>, urns: bool) -> (HashMap<RequestId, Vec<Sample>>, Work) {
    let request = |id: u64| Request {
        id,
        state: ["|- ph", "|- ( ph -> ps )", "ax-1 syl", ""][id as usize % 4]
            .repeat(1 + id as usize % 5),
        samples: 1 + (id as usize * 7) % 6,
        stream: Stream::new(5).child(id),
        urn: urns.then(Urn::default),
    };
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
    let (plain, work) = answers(generator(false, 16, 4000), urns);
    assert_eq!(plain.len(), 40);
    let lengths: std::collections::HashSet<usize> =
        plain.values().flatten().map(|s| s.tokens).collect();
    assert!(
        lengths.contains(&8) && lengths.len() > 3,
        "tactics end at the limit and before it: {lengths:?}"
    );
    assert_eq!(work.tokens, plain.values().flatten().map(|s| s.tokens as u64).sum::<u64>());
    // Fixed shapes share nothing: what is compared below is with prompts that are computed whole.
    assert!(work.known_tokens > 50, "{} of {}", work.known_tokens, work.prompt_tokens);
    for (batch, cache) in [(16, 4000), (3, 4000), (7, 72)] {
        let (fixed, work) = answers(generator(true, batch, cache), urns);
        assert_eq!(fixed, plain, "batch {batch}");
        assert_eq!(work.tokens, plain.values().flatten().map(|s| s.tokens as u64).sum::<u64>());
    }
}

/// Where shapes are fixed, another batch is another shape, and may be rounded otherwise: logs of
/// the two are not mixed. Elsewhere a batch changes nothing.
#[test]
fn a_fixed_shape_is_a_part_of_the_identity() {
    let identity = |fixed, batch| generator(fixed, batch, 4000).identity();
    assert_eq!(identity(false, 3), identity(false, 16));
    assert_ne!(identity(true, 3), identity(true, 16));
    assert_eq!(identity(true, 16).get("rows of a step"), Some("16"));
}
