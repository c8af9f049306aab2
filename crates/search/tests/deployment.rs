//! A deployment is checked when it is made: nothing that was accepted can fail hours later.

use catamount_search::{Deployment, Overrides, StrategyKind, Value};

fn overrides(text: &str) -> Result<Overrides, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn what_a_setting_cannot_be_is_refused_by_name_and_range() {
    for (text, range) in [
        ("temperature = -1.0", "0.001 to 1000"),
        ("temperature = 0", "0.001 to 1000"),
        ("temperature = inf", "0.001 to 1000"),
        ("temperature = nan", "0.001 to 1000"),
        ("top_p = 1.5", "0.001 to 1"),
        ("max_tokens = 0", "1 to"),
        ("max_tokens = 9999999999", "1 to 16384"),
        ("max_depth = 0", "1 to"),
        ("bfs_beam = 0", "1 to 65536"),
        ("bfs_samples = -4", "1 to 65536"),
        ("bfs_alpha = nan", "0 to 10"),
        ("bfs_restart_after = 0", "or `none`"),
        ("mcts_exploration = nan", "0 to"),
        ("pass_batch = 9223372036854775807", "1 to 65536"),
        ("distinct = 1", "true or false"),
    ] {
        let error = overrides(text).unwrap_err();
        let key = text.split(' ').next().unwrap();
        assert!(error.contains(key) && error.contains(range), "{text}: {error}");
    }
    for budget in [0, Deployment::MOST_EXPANSIONS + 1] {
        let error = Deployment::new(StrategyKind::Bfs, budget).unwrap_err().to_string();
        assert!(error.contains(&format!("budget is {budget}; it must be")), "{error}");
    }
}

#[test]
fn a_command_line_says_it_in_pairs() {
    let mut set = Overrides::default();
    for pair in ["bfs_beam=7", "mcts_exploration=1", "bfs_restart_after=none", "distinct=true"] {
        set.set_pair(pair).unwrap();
    }
    assert_eq!(set.get("bfs_beam"), Some(&Value::Whole(7)));
    for bad in [
        "max_depth=",
        "max_depth",
        "=3",
        "pass_batch=18446744073709551615",
        "bfs_beam=2.5",
        "pass_batch=99999999999999999999999",
        "mcts_exploration=NaN",
        "bfs_beem=3",
    ] {
        assert!(set.set_pair(bad).is_err(), "{bad}");
    }
    let error = set.set_pair("bfs_beem=3").unwrap_err().to_string();
    assert!(error.contains("did you mean `bfs_beam`"), "{error}");
    let bfs = Deployment::overridden(StrategyKind::Bfs, 64, &set).unwrap();
    let text = serde_json::to_string(&bfs).unwrap();
    assert!(text.contains("\"bfs_beam\":7") && !text.contains("mcts"), "only its own: {text}");
    assert!(bfs.distinct());
}

#[test]
fn a_deployment_survives_json_and_toml() {
    for kind in StrategyKind::ALL {
        let deployment = Deployment::new(kind, 256).unwrap().with("temperature", 0.7).unwrap();
        let text = serde_json::to_string(&deployment).unwrap();
        assert_eq!(serde_json::from_str::<Deployment>(&text).unwrap(), deployment, "{text}");
        let text = toml::to_string(&deployment).unwrap();
        assert_eq!(toml::from_str::<Deployment>(&text).unwrap(), deployment, "{text}");
    }
    let foreign =
        serde_json::from_str::<Deployment>(r#"{"strategy": "dfs", "budget": 4, "bfs_beam": 2}"#);
    assert!(foreign.unwrap_err().to_string().contains("bfs_beam"));
    let missing = serde_json::from_str::<Deployment>(r#"{"strategy": "dfs"}"#);
    assert!(missing.unwrap_err().to_string().contains("budget"));
}

/// The paper's table of search parameters.
#[test]
fn the_defaults_are_the_papers() {
    let text = |kind| serde_json::to_value(Deployment::new(kind, 256).unwrap()).unwrap();
    let bfs = text(StrategyKind::Bfs);
    for (key, value) in [
        ("max_depth", 5.into()),
        ("temperature", 0.8.into()),
        ("top_p", 1.0.into()),
        ("max_tokens", 128.into()),
        ("distinct", false.into()),
        ("bfs_beam", 2.into()),
        ("bfs_samples", 4.into()),
        ("bfs_alpha", serde_json::Value::from(0.5)),
    ] {
        assert_eq!(bfs[key], value, "{key}");
    }
    assert_eq!(text(StrategyKind::Pass)["pass_batch"], 16);
    assert_eq!(text(StrategyKind::Mcts)["mcts_exploration"], 0.5);
}
