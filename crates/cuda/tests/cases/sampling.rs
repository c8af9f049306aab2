//! Drawing tokens: the same uniforms must draw the same tokens.

use catamount_model::{Backend, Kind, Sampling};

use super::{Bench, random};

/// The tokens and log-probabilities of one setting.
pub struct Drawn {
    pub name: String,
    pub tokens: Vec<u32>,
    pub log_p: Vec<f32>,
}

/// Draws in every mode, from rows with ties, from flat rows and from steep ones.
pub fn sampling<B: Backend>(b: &B) -> Vec<Drawn> {
    let t = Bench::new(b);
    let mut drawn = Vec::new();
    for (vocab, n) in [(5, 40), (1000, 100), (4099, 64), (40_000, 16)] {
        // Steeper and steeper rows; coarse numbers, so that many tokens tie.
        let mut logits = random(n * vocab, vocab as u64);
        for (i, row) in logits.chunks_mut(vocab).enumerate() {
            row.iter_mut().for_each(|l| *l = (*l * 8.0).round() * (0.2 + (i % 7) as f32 * 0.3));
        }
        let logits = t.tensor(&logits, Kind::Exact);
        let uniforms: Vec<f32> =
            random(n, 9).iter().map(|u| (u + 1.0) / 2.0).map(|u| u.clamp(0.0, 0.999_999)).collect();
        for (temperature, top_p) in
            [(1.0, 1.0), (0.7, 1.0), (0.0, 1.0), (1.0, 0.9), (1.3, 0.35), (1.0, 1e-6)]
        {
            let (mut tokens, mut log_p) = (vec![u32::MAX; n], vec![f32::NAN; n]);
            let sampling = Sampling { temperature, top_p };
            b.sample(n, vocab, &logits, sampling, &uniforms, &mut tokens, &mut log_p).unwrap();
            assert!(tokens.iter().all(|t| (*t as usize) < vocab));
            drawn.push(Drawn {
                name: format!("sample {n}x{vocab} T={temperature} top_p={top_p}"),
                tokens,
                log_p,
            });
        }
    }
    drawn
}
