//! A device that computes nothing: every operation is free, and tokens are drawn from one fixed
//! distribution. What is left is the host's own work.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use catamount_model::{
    AdamW, Affine, Attended, Decode, Direction, Draws, Head, HeadGradients, Heads, Inner, Kind,
    Layers, Lora, LoraGradients, Memory, Norm, NormInput, Normed, Optimize, Packed, Result,
    Sampling, Scores, Shape, Update,
};
use catamount_search::Stream;

/// See the module's documentation.
pub struct Idle {
    /// The tokens' probabilities, and their running sums.
    p: Vec<f32>,
    sums: Vec<f64>,
    /// The row that a token was last scarce in.
    scarce_in: Mutex<Vec<u64>>,
    /// Time spent drawing, which is the device's.
    drawing: Mutex<Duration>,
}

impl Idle {
    /// The end token has probability `end`; the others share the rest, the `n`-th in proportion to
    /// 1 / n.
    pub fn new(vocab: usize, end: u32, share: f64) -> Self {
        let mut p: Vec<f64> = (1..=vocab).map(|n| 1.0 / n as f64).collect();
        p[end as usize] = 0.0;
        let total: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p *= (1.0 - share) / total);
        p[end as usize] = share;
        let sums = p.iter().scan(0.0, |sum, p| {
            *sum += p;
            Some(*sum)
        });
        Idle {
            sums: sums.collect(),
            p: p.into_iter().map(|p| p as f32).collect(),
            scarce_in: Mutex::new(vec![u64::MAX; vocab]),
            drawing: Mutex::default(),
        }
    }

    /// Time spent drawing so far.
    pub fn drawing(&self) -> Duration {
        *self.drawing.lock().expect("one thread")
    }

    fn pick(&self, uniform: f64) -> usize {
        self.sums.partition_point(|sum| *sum <= uniform).min(self.p.len() - 1)
    }
}

impl Memory for Idle {
    type Tensor = usize;
    type Index = ();

    fn describe(&self) -> String {
        "no device".into()
    }

    fn zeros(&self, len: usize, _: Kind) -> Result<usize> {
        Ok(len)
    }

    fn len(&self, tensor: &usize) -> usize {
        *tensor
    }

    fn upload(&self, _: &[f32], _: &mut usize, _: usize) -> Result<()> {
        Ok(())
    }

    fn download(&self, _: &usize, _: usize, _: &mut [f32]) -> Result<()> {
        Ok(())
    }

    fn clear(&self, _: usize, _: &mut usize) -> Result<()> {
        Ok(())
    }

    fn indices(&self, _: usize) -> Result<()> {
        Ok(())
    }

    fn upload_indices(&self, _: &[u32], (): &mut ()) -> Result<()> {
        Ok(())
    }
}

impl Decode for Idle {
    /// As on a GPU: every batch has the same shape.
    fn decode_rows(&self, n: usize) -> usize {
        n.next_multiple_of(64)
    }

    fn gather(&self, _: usize, _: usize, _: &usize, (): &(), _: &mut usize) -> Result<()> {
        Ok(())
    }

    fn cache_write(&self, _: usize, _: Heads, _: &usize, (): &(), _: &mut usize) -> Result<()> {
        Ok(())
    }

    fn cache_attention(
        &self,
        _: usize,
        _: Heads,
        _: &usize,
        _: &usize,
        (): &(),
        _: &mut usize,
    ) -> Result<()> {
        Ok(())
    }

    fn cache_copy(&self, _: usize, _: Heads, (): &(), _: &mut usize) -> Result<()> {
        Ok(())
    }

    fn prompt_attention(
        &self,
        _: Heads,
        _: &Packed<Self>,
        _: &usize,
        _: &usize,
        (): &(),
        _: &mut usize,
    ) -> Result<()> {
        Ok(())
    }

    fn sample(&self, _: usize, _: &usize, _: Sampling, draws: &mut Draws) -> Result<()> {
        let started = Instant::now();
        let mut scarce_in = self.scarce_in.lock().expect("one thread");
        draws.make_room();
        for row in 0..draws.len() {
            let (scarce, left) = draws.scarce_of(row);
            let (mut whole, mut scarce_left) = (0.0, 0.0);
            for (&token, &left) in scarce.iter().zip(left) {
                scarce_in[token as usize] = row as u64;
                whole += self.p[token as usize];
                scarce_left += self.p[token as usize] * left;
            }
            let others = (1.0 - whole).max(0.0);
            let mut aim = draws.uniforms[row] * (others + scarce_left);
            let (token, weight) = if aim < others || scarce.is_empty() {
                // Until it is one that is not scarce.
                let stream = Stream::new(u64::from(draws.uniforms[row].to_bits()));
                let token = (0..)
                    .map(|n| self.pick(stream.uniform(n)))
                    .find(|token| scarce_in[*token] != row as u64)
                    .expect("others have something left");
                (token as u32, self.p[token])
            } else {
                aim -= others;
                let weight = |at: usize| self.p[scarce[at] as usize] * left[at];
                let last = (0..scarce.len()).rev().find(|&at| weight(at) > 0.0).unwrap_or(0);
                let at = (0..last).find(|&at| {
                    aim -= weight(at);
                    aim < 0.0
                });
                let at = at.unwrap_or(last);
                (scarce[at], weight(at))
            };
            let p = self.p[token as usize];
            draws.tokens[row] = token;
            (draws.log_p[row], draws.p[row]) = (p.ln(), p);
            draws.rest[row] = (others + scarce_left - weight).max(0.0);
        }
        scarce_in.fill(u64::MAX);
        *self.drawing.lock().expect("one thread") += started.elapsed();
        Ok(())
    }
}

impl Layers for Idle {
    fn embed(&self, _: usize, _: usize, _: &usize, (): &(), _: &mut usize) -> Result<()> {
        Ok(())
    }

    fn embed_backward(&self, _: usize, _: usize, _: &usize, (): &(), _: &mut usize) -> Result<()> {
        Ok(())
    }

    fn rms_norm(
        &self,
        _: usize,
        _: Norm<'_, usize>,
        _: &usize,
        _: Normed<'_, usize>,
    ) -> Result<()> {
        Ok(())
    }

    fn add_rms_norm(
        &self,
        _: usize,
        _: Norm<'_, usize>,
        _: &usize,
        _: &usize,
        _: &mut usize,
        _: Normed<'_, usize>,
    ) -> Result<()> {
        Ok(())
    }

    fn rms_norm_backward(
        &self,
        _: usize,
        _: Norm<'_, usize>,
        _: NormInput<'_, usize>,
        _: &usize,
        _: &mut usize,
        _: Option<&mut usize>,
    ) -> Result<()> {
        Ok(())
    }

    fn linear(&self, _: usize, _: Affine<'_, usize>, _: &usize, _: &mut usize) -> Result<()> {
        Ok(())
    }

    fn linear_backward_input(
        &self,
        _: usize,
        _: Affine<'_, usize>,
        _: &usize,
        _: &mut usize,
    ) -> Result<()> {
        Ok(())
    }

    fn linear_backward_weight(
        &self,
        _: usize,
        _: Shape,
        _: &usize,
        _: &usize,
        _: &mut usize,
        _: Option<&mut usize>,
    ) -> Result<()> {
        Ok(())
    }

    fn lora(
        &self,
        _: usize,
        _: &Lora<'_, usize>,
        _: &usize,
        _: &mut usize,
        _: &mut usize,
    ) -> Result<()> {
        Ok(())
    }

    fn lora_backward(
        &self,
        _: usize,
        _: &Lora<'_, usize>,
        _: Inner<'_, usize>,
        _: &usize,
        _: &mut usize,
        _: LoraGradients<'_, usize>,
    ) -> Result<()> {
        Ok(())
    }

    fn rope(
        &self,
        _: usize,
        _: Heads,
        _: Direction,
        (): &(),
        _: &usize,
        _: &mut usize,
    ) -> Result<()> {
        Ok(())
    }

    fn attention(
        &self,
        _: Heads,
        _: &Packed<Self>,
        _: &usize,
        _: &mut usize,
        _: &mut usize,
    ) -> Result<()> {
        Ok(())
    }

    fn attention_backward(
        &self,
        _: Heads,
        _: &Packed<Self>,
        _: Attended<'_, usize>,
        _: &usize,
        _: &mut usize,
    ) -> Result<()> {
        Ok(())
    }

    fn swiglu(&self, _: usize, _: usize, _: &usize, _: &mut usize) -> Result<()> {
        Ok(())
    }

    fn swiglu_backward(
        &self,
        _: usize,
        _: usize,
        _: &usize,
        _: &usize,
        _: &mut usize,
    ) -> Result<()> {
        Ok(())
    }

    fn head(&self, _: &Head<'_, usize, ()>, _: &usize, _: Scores<'_, usize>) -> Result<()> {
        Ok(())
    }

    fn head_backward(
        &self,
        _: usize,
        _: &Head<'_, usize, ()>,
        _: &usize,
        _: &usize,
        _: &usize,
        _: HeadGradients<'_, usize>,
    ) -> Result<()> {
        Ok(())
    }
}

impl Optimize for Idle {
    fn clear_all(&self, _: &mut [&mut usize]) -> Result<()> {
        Ok(())
    }

    fn sum_of_squares(&self, _: &[&usize]) -> Result<f64> {
        Ok(0.0)
    }

    fn adamw(&self, _: &AdamW, _: &mut [Update<'_, usize>]) -> Result<()> {
        Ok(())
    }
}
