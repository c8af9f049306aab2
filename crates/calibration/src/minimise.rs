//! Nelder and Mead's simplex: enough for two or three parameters, without derivatives and without
//! chance.

/// Where `value` is smallest, searched from `start` with a simplex of the given edges. The result
/// is never worse than the start; a value that is not a number counts as infinite.
pub(crate) fn minimise<const D: usize>(
    value: impl Fn(&[f64; D]) -> f64,
    start: [f64; D],
    edges: [f64; D],
) -> ([f64; D], f64) {
    let value = |x: &[f64; D]| Some(value(x)).filter(|v| !v.is_nan()).unwrap_or(f64::INFINITY);
    let mut best = (start, value(&start));
    // A second simplex around the first one's answer: the first may have collapsed on the way.
    for shrink in [1.0, 0.3] {
        let mut simplex = vec![best];
        for axis in 0..D {
            let mut corner = best.0;
            corner[axis] += shrink * edges[axis];
            simplex.push((corner, value(&corner)));
        }
        descend(value, &mut simplex);
        if simplex[0].1 < best.1 {
            best = simplex[0];
        }
    }
    best
}

const MOST_STEPS: usize = 400;
const FLAT: f64 = 1e-9;

fn descend<const D: usize>(value: impl Fn(&[f64; D]) -> f64, simplex: &mut [([f64; D], f64)]) {
    for _ in 0..MOST_STEPS {
        // Stable, so that corners of equal value keep their order.
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (best, worst) = (simplex[0], simplex[D]);
        if worst.1 - best.1 <= FLAT * (1.0 + best.1.abs()) {
            return;
        }
        let centre: [f64; D] = std::array::from_fn(|axis| {
            simplex[..D].iter().map(|(x, _)| x[axis]).sum::<f64>() / D as f64
        });
        // On the line through the worst corner and the centre of the others.
        let along = |t: f64| {
            let x = std::array::from_fn(|axis| centre[axis] + t * (worst.0[axis] - centre[axis]));
            (x, value(&x))
        };
        let reflected = along(-1.0);
        let next = if reflected.1 < best.1 {
            let expanded = along(-2.0);
            if expanded.1 < reflected.1 { expanded } else { reflected }
        } else if reflected.1 < simplex[D - 1].1 {
            reflected
        } else {
            along(if reflected.1 < worst.1 { -0.5 } else { 0.5 })
        };
        if next.1 < worst.1 {
            simplex[D] = next;
            continue;
        }
        for (corner, at) in &mut simplex[1..] {
            *corner = std::array::from_fn(|axis| (corner[axis] + best.0[axis]) / 2.0);
            *at = value(corner);
        }
    }
    simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_bent_valley() {
        let valley = |x: &[f64; 2]| (1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2);
        let (at, value) = minimise(valley, [-1.2, 1.0], [0.5, 0.5]);
        assert!((at[0] - 1.0).abs() < 1e-2 && (at[1] - 1.0).abs() < 2e-2 && value < 1e-4, "{at:?}");
        let bowl = |x: &[f64; 3]| (x[0] - 3.0).powi(2) + (x[1] + 2.0).powi(2) + x[2].powi(2);
        let (at, _) = minimise(bowl, [0.0; 3], [1.0; 3]);
        assert!((at[0] - 3.0).abs() + (at[1] + 2.0).abs() + at[2].abs() < 1e-3, "{at:?}");
    }

    #[test]
    fn never_worse_than_the_start() {
        let nowhere = |_: &[f64; 2]| f64::NAN;
        assert_eq!(minimise(nowhere, [1.0, 2.0], [0.1, 0.1]).0, [1.0, 2.0]);
    }
}
