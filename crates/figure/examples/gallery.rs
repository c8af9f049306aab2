//! Draws one chart of every kind into a folder: `cargo run --release -p catamount-figure --example
//! gallery -- FOLDER`.

use std::path::PathBuf;

use catamount_figure::{Axis, Chart, Figure, Grid, SaveError, Series};

fn main() -> Result<(), SaveError> {
    let dir = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("gallery"), PathBuf::from);

    let budgets = [16.0, 64.0, 256.0, 1024.0];
    Figure::new("Paired gain over CE")
        .subtitle("Error bars are 95 % intervals; hollow markers have p \u{2265} 0.05")
        .x(Axis::log("budget N (expansions)").ticks(budgets))
        .y(Axis::linear("gain (percentage points)"))
        .reference(0.0)
        .add(
            Series::line("Pass@N", budgets.into_iter().zip([2.0, 4.4, 4.2, 8.8]))
                .bars([(0.5, 3.4), (1.8, 6.9), (1.1, 7.2), (-0.3, 17.9)])
                .hollow([false, false, false, true]),
        )
        .add(
            Series::line("BFS", budgets.into_iter().map(|b| b * 1.06).zip([4.4, 4.6, 6.9, 5.4]))
                .bars([(1.8, 6.9), (1.7, 7.5), (3.6, 10.1), (-3.9, 14.6)])
                .hollow([false, false, false, true]),
        )
        .save(&dir, "gain")?;

    let strategies = ["Pass@N", "BFS", "DFS", "RDFS", "VDFS", "MCTS"];
    let bar = |name: &str, values: [f64; 6]| {
        Series::bars_of(name, values).bars(values.map(|v| (v - 3.7, v + 3.9)))
    };
    Figure::new("Proofs found at N = 256")
        .x(Axis::categories("deployed strategy", strategies))
        .y(Axis::linear("theorems proved").suffix("%"))
        .add(bar("CE", [21.2, 23.8, 19.2, 20.7, 21.2, 20.3]))
        .add(bar("Search-aware CAT", [26.6, 25.1, 20.7, 23.6, 23.8, 22.5]))
        .add(bar("Shared UA", [25.1, 26.9, 23.6, 25.3, 24.5, 25.1]))
        .save(&dir, "rates")?;

    let edges: Vec<f64> = (0..=24).map(|i| f64::from(i) / 24.0).collect();
    let sample = |power: f64| {
        (0..600).map(|i| ((f64::from(i) + 0.5) / 600.0).powf(power)).collect::<Vec<f64>>()
    };
    Figure::new("Distribution of p before and after training")
        .x(Axis::linear("probability of the demonstrated tactic"))
        .y(Axis::linear("share of steps"))
        .add(Series::histogram("before", &sample(3.0), &edges))
        .add(Series::histogram("after", &sample(1.2), &edges))
        .save(&dir, "distribution")?;

    let curve = |rate: f64| {
        (0..9).map(move |k| (f64::from(1 << k), 40.0 * (1.0 - (-rate * f64::from(1 << k)).exp())))
    };
    let panel = |title: &str, shift: f64| {
        Figure::new(title)
            .x(Axis::log("expansions").ticks([1.0, 4.0, 16.0, 64.0, 256.0]))
            .y(Axis::linear("proved").suffix("%").from(0.0).to(45.0))
            .add(Series::step("ce", curve(0.01 + shift)))
            .add(
                Series::line("ua", curve(0.02 + shift))
                    .plain()
                    .band(curve(0.02 + shift).map(|(_, y)| (y - 4.0, y + 4.0))),
            )
    };
    let grid = Grid::new("Success against expansions", 3)
        .subtitle("Every curve comes from one run at the largest budget");
    strategies
        .iter()
        .enumerate()
        .fold(grid, |g, (i, s)| g.panel(panel(s, 0.004 * i as f64)))
        .save(&dir, "curves")?;
    Ok(())
}
