//! The learning rate of every step.

use crate::Schedule;

impl Schedule {
    /// The factor of step `step` (from 0) of `total`: rises over the first `warmup` of the steps,
    /// then falls linearly towards zero. No step has a factor of zero.
    pub fn factor(&self, step: usize, total: usize) -> f64 {
        let rising = (self.warmup * total as f64).ceil() as usize;
        if step < rising {
            return (step + 1) as f64 / rising as f64;
        }
        if self.decay {
            total.saturating_sub(step) as f64 / (total - rising).max(1) as f64
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_for_a_twentieth_and_falls_to_the_end() {
        let schedule = Schedule::default();
        let course: Vec<f64> = (0..100).map(|s| schedule.factor(s, 100)).collect();
        assert_eq!(&course[..6], [0.2, 0.4, 0.6, 0.8, 1.0, 1.0]);
        assert!(course[5..].windows(2).all(|w| (w[0] - w[1] - 1.0 / 95.0).abs() < 1e-12));
        assert!((course[99] - 1.0 / 95.0).abs() < 1e-12);
    }

    #[test]
    fn one_step_is_a_whole_course() {
        assert_eq!(Schedule::default().factor(0, 1), 1.0);
        assert_eq!(Schedule { warmup: 0.0, decay: true }.factor(0, 1), 1.0);
        assert_eq!(Schedule { warmup: 0.0, decay: false }.factor(9, 10), 1.0);
    }
}
