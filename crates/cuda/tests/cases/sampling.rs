//! Drawing tokens: the same uniforms must draw the same tokens.

use catamount_model::{Backend, Draws, Kind, Sampling};

use super::{Bench, random};

/// The tokens and log-probabilities of one setting.
pub struct Drawn {
    pub name: String,
    pub draws: Draws,
}

impl Drawn {
    /// The rows in which both drew the same token.
    pub fn agreeing(&self, other: &Drawn) -> Vec<usize> {
        (0..self.draws.len()).filter(|&i| self.draws.tokens[i] == other.draws.tokens[i]).collect()
    }

    /// How far apart log p, p and what is left are at most, where both drew the same token.
    pub fn worst(&self, other: &Drawn) -> f32 {
        let lists = |d: &Drawn, i: usize| [d.draws.log_p[i], d.draws.p[i], d.draws.rest[i]];
        let apart = |i: usize| {
            let both = lists(self, i).into_iter().zip(lists(other, i));
            both.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        self.agreeing(other).into_iter().map(apart).fold(0.0, f32::max)
    }
}

/// A third of the rows has some scarce tokens, a third has many: the likely ones among them, what
/// is left of them nothing, little or much, in no order.
fn make_scarce(draws: &mut Draws, row: usize, vocab: usize, logits: &[f32]) {
    let count = [0, 3, vocab / 2][row % 3];
    let mut tokens: Vec<u32> = (0..vocab as u32).collect();
    tokens.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b)));
    for (i, token) in tokens.into_iter().take(count).enumerate() {
        draws.make_scarce(token, [0.0, 1e-7, 0.3, 1.0][(i + row) % 4]);
    }
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
        let on_device = t.tensor(&logits, Kind::Exact);
        let uniforms: Vec<f32> =
            random(n, 9).iter().map(|u| (u + 1.0) / 2.0).map(|u| u.clamp(0.0, 0.999_999)).collect();
        for (temperature, top_p, scarce) in [
            (1.0, 1.0, false),
            (0.7, 1.0, false),
            (0.0, 1.0, false),
            (1.0, 0.9, false),
            (1.3, 0.35, false),
            (1.0, 1e-6, false),
            (1.0, 1.0, true),
            (0.7, 1.0, true),
            (1.3, 0.9, true),
        ] {
            let (mut draws, sampling) = (Draws::default(), Sampling { temperature, top_p });
            for (row, &uniform) in uniforms.iter().enumerate() {
                draws.begin(uniform);
                if scarce {
                    make_scarce(&mut draws, row, vocab, &logits[row * vocab..][..vocab]);
                }
            }
            b.sample(vocab, &on_device, sampling, &mut draws).unwrap();
            assert!(draws.tokens.iter().all(|t| (*t as usize) < vocab));
            // Whatever was taken out of the logits is back.
            let mut after = vec![0.0; logits.len()];
            b.download(&on_device, 0, &mut after).unwrap();
            assert_eq!(after, logits, "the logits are read and not changed");
            let with = if scarce { ", some scarce" } else { "" };
            let name = format!("sample {n}x{vocab} T={temperature} top_p={top_p}{with}");
            drawn.push(Drawn { name, draws });
        }
    }
    drawn
}
