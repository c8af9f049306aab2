//! Charts as a whole: well-formed whatever the data, and saved with their numbers.

use catamount_figure::{Axis, Chart, Figure, Grid, Series};
use proptest::prelude::*;

fn sweep() -> Figure {
    Figure::new("Paired gain over CE")
        .subtitle("Search-aware objective against the epoch-matched control")
        .note("Bars are 95 % intervals; hollow markers have p \u{2265} 0.05.")
        .x(Axis::log("budget N (expansions)").ticks([16.0, 64.0, 256.0, 1024.0]))
        .y(Axis::linear("gain (percentage points)"))
        .reference(0.0)
        .add(
            Series::line("Pass@N", [(16.0, 2.0), (64.0, 4.4), (256.0, 4.2), (1024.0, 8.8)])
                .bars([(0.5, 3.4), (1.8, 6.9), (1.1, 7.2), (-0.3, 17.9)])
                .hollow([false, false, false, true]),
        )
        .add(Series::line("BFS", [(16.0, 4.4), (64.0, 4.6), (256.0, 6.9)]).bars([
            (1.8, 6.9),
            (1.7, 7.5),
            (3.6, 10.1),
        ]))
}

#[test]
fn saving_leaves_picture_and_numbers() {
    let dir = std::env::temp_dir().join(format!("catamount-figure-{}", std::process::id()));
    let saved = sweep().save(&dir, "gain").unwrap();
    let png = std::fs::read(&saved.png).unwrap();
    assert_eq!(&png[1..4], b"PNG");
    assert_eq!(u32::from_be_bytes(png[16..20].try_into().unwrap()), 1440);
    let csv = std::fs::read_to_string(&saved.csv).unwrap();
    assert_eq!(csv.lines().count(), 8);
    assert!(csv.contains("Pass@N,1024,8.8,-0.3,17.9\n"), "{csv}");
    assert!(std::fs::read_to_string(&saved.svg).unwrap().contains("prefers-color-scheme"));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn an_unwritable_folder_is_named() {
    let file = std::env::temp_dir().join(format!("catamount-figure-file-{}", std::process::id()));
    std::fs::write(&file, "").unwrap();
    let error = sweep().save(&file.join("below"), "gain").unwrap_err().to_string();
    assert!(error.contains("catamount-figure-file"), "{error}");
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn panels_share_colours_by_name() {
    let panel = |title: &str, names: &[&str]| {
        names
            .iter()
            .fold(Figure::new(title), |f, n| f.add(Series::step(*n, [(0.0, 0.0), (1.0, 1.0)])))
    };
    let grid = Grid::new("All", 2).panel(panel("one", &["ce", "ua"])).panel(panel("two", &["ua"]));
    let svg = grid.to_svg();
    assert_eq!(svg.matches(">ua</text>").count(), 1, "one legend entry");
    assert!(grid.to_csv().starts_with("panel,series,x,y,low,high\none,ce,0,0,,\n"));
    // `ua` is the second colour in the legend and in both panels: sample, line and (empty) markers
    // each.
    assert_eq!(svg.matches(r#"class="cf-s1""#).count(), 5);
}

#[test]
fn markup_in_names_is_harmless() {
    let figure = Figure::new("<script>\u{1}&\"")
        .add(Series::line("a<b", [(1.0, 1.0)]))
        .add(Series::line("c,\"d\"", [(2.0, 1.0)]));
    assert!(!figure.to_inline_svg().contains("<script"));
    assert!(figure.to_png(1.0).is_ok());
    assert!(figure.to_csv().contains("\"c,\"\"d\"\"\",2,1,,"));
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![5 => -1e3..1e3f64, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(0.0),
        1 => Just(1e-300), 1 => Just(-1e300)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_data_makes_a_drawable_picture(
        points in prop::collection::vec((value(), value()), 0..9),
        intervals in prop::collection::vec((value(), value()), 0..9),
        log in any::<bool>(),
        low in prop::option::of(value()),
    ) {
        let axis = if log { Axis::log("x") } else { Axis::linear("x") };
        let y = low.map_or(Axis::linear("y"), |l| Axis::linear("y").from(l));
        let ys: Vec<f64> = points.iter().map(|p| p.1).collect();
        let lines = Figure::new("t").x(axis).y(y)
            .add(Series::line("a", points.clone()).band(intervals.clone()))
            .add(Series::step("b", points.clone()).bars(intervals.clone()));
        let bars = Figure::new("t").x(Axis::categories("c",
            ["one", "two"])).add(Series::bars_of("a", ys.clone()).bars(intervals))
            .add(Series::histogram("h", &ys, &[0.0, 1.0, 10.0]));
        for figure in [lines, bars] {
            let svg = figure.to_svg();
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", svg);
            prop_assert!(figure.to_png(0.2).is_ok());
        }
    }
}
