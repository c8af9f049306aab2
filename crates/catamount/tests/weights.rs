//! `catamount weights` as a script would call it.

use assert_cmd::Command;

fn catamount(arguments: &str, input: &str) -> std::process::Output {
    let mut command = Command::cargo_bin("catamount").unwrap();
    command.args(arguments.split_whitespace()).write_stdin(input).output().unwrap()
}

fn error(arguments: &str, input: &str) -> String {
    let output = catamount(arguments, input);
    assert_eq!(output.status.code(), Some(2), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn weighs_in_input_order() {
    let input: String = (0..10_000)
        .map(|i| format!("{{\"name\": \"t{i}\", \"logp\": [-0.5, -{}]}}\n", 1 + i % 7))
        .collect();
    let output = catamount("weights --objective bfs --budget 16", &input);
    assert!(output.status.success());
    let lines: Vec<serde_json::Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 10_000);
    assert!(lines.iter().enumerate().all(|(i, line)| line["name"] == format!("t{i}")));
    assert!(
        lines[6]["weights"][1].as_f64() > lines[0]["weights"][1].as_f64(),
        "the unlikelier tactic weighs more"
    );
}

#[test]
fn infeasible_traces_are_marked_and_counted() {
    let output = catamount(
        "weights --objective bfs --budget 2",
        "{\"name\":\"a\",\"logp\":[-1,-1,-1]}\n{\"name\":\"b\",\"logp\":[-1]}\n",
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.lines().next().unwrap().contains("\"weights\":[1.0,1.0,1.0],\"infeasible\":true"),
        "{text}"
    );
    assert!(!text.lines().nth(1).unwrap().contains("infeasible"));
    assert!(String::from_utf8(output.stderr).unwrap().contains("1 of 2 traces"));
}

#[test]
fn errors_name_the_line_and_keep_what_came_before() {
    let output = catamount(
        "weights --objective ua --budget 8",
        "{\"name\":\"a\",\"logp\":[-1]}\n{\"name\": \n",
    );
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("standard input:2") && message.contains("broken JSON"), "{message}");

    assert!(error("weights --objective ua --budget 8", "{\"logp\":[0.5]}").contains("positive"));
    assert!(
        error("weights --objective ua --budget 8", "{\"logp\":[NaN]}").contains("not a number")
    );
    assert!(error("weights --objective ua --budget 8", "{\"logp\":[]}").contains("no steps"));
    assert!(error("weights --objective ua --budget -8", "").contains("at least 0"));
    assert!(error("weights --objective bfs", "").contains("--budget"));
    assert!(
        error("weights --objective foo --budget 8", "")
            .contains("ce, ua, pass, bfs, dfs, rdfs, vdfs, mcts")
    );
    assert!(error("weights --objective pass --budget 8 --kappa 2", "").contains("rollouts"));
    for missing in ["missing.jsonl", "missing.parquet --out out.parquet"] {
        let message = error(&format!("weights --objective ua --budget 8 {missing}"), "");
        assert!(message.contains("missing."), "{message}");
    }
    for (files, part) in
        [("in.parquet", "--out weights.parquet"), ("in.jsonl --out out.parquet", "are printed")]
    {
        let message = error(&format!("weights --objective ua --budget 8 {files}"), "");
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn small_weights_are_raised_and_ce_needs_no_budget() {
    let output = catamount(
        "weights --objective bfs --budget 256 --min-weight 0.25",
        "{\"logp\":[-0.1,-9]}\n",
    );
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["weights"][0], 0.25);
    assert!(line["weights"][1].as_f64().unwrap() > 0.25);
    assert!(catamount("weights --objective ce", "{\"logp\":[-1]}\n").status.success());
}

#[test]
fn a_temperature_out_of_range_is_refused_before_the_model_is_opened() {
    for temperature in ["0", "-1", "80", "nan"] {
        let message = error(&format!("score --model none --temperature {temperature} none"), "");
        assert!(message.contains("above 0 and at most 10"), "{message}");
    }
}
